"""A member that the kit plays: it listens where the node expects a peer, answers as told, and remembers everything.

The member looks alive to the node for one reason: it answers member reports with success and a `node`
(docs/real-servers.md#a-played-member). Everything else is programmable: by default it acknowledges what it is sent
and holds an
empty snapshot; `answer` changes the reply to an operation, for one client or for all. In the other direction
`sync`, `verify`, `delete`, `snapshot` and `query` say to the node what a member would say.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
import grpc.aio

from distro_conformance.node.http_member import HttpMember
from distro_conformance.release import Span
from distro_conformance.targets.ports import CLUSTER_OFFSET, RAFT_OFFSET, with_offset
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_conformance.wire.messages import (
    DISTRO_REQUEST,
    DISTRO_RESPONSE,
    RESOURCE_TYPE,
    DistroCall,
    batch_data,
    distro_request,
    pack,
    read_query,
    read_request,
    read_snapshot,
    sync_data,
)
from distro_conformance.wire.silence import FOR_EVER_MS, answered_late
from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Json,
    Message,
    Payload,
    UnreadableBodyError,
    decode,
    encode,
)
from distro_traces.content import Replica

NodeContext = grpc.aio.ServicerContext[Payload, Payload]
_KEEP_ALIVE_MS = 5_000
_REPORTS_OVER_HTTP = Span(until="2.2.0")
_OK: Json = {"resultCode": 200, "errorCode": 0, "success": True}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the peer answers: the type name of a response and its body."""

    type: str
    body: Json
    after_ms: int = 0
    """How long it keeps the node waiting."""

    def __str__(self) -> str:
        wait = f" after {self.after_ms} ms" if self.after_ms else ""
        return f"{self.type} {self.body.get('resultCode')}/{self.body.get('errorCode')}{wait}"


Answer = Reply | Callable[[DistroCall], Reply]
OnArrival = Callable[["Arrival"], None]

SUCCESS = Reply(DISTRO_RESPONSE, _OK)
FAILURE = Reply(DISTRO_RESPONSE, {"resultCode": 500, "errorCode": 500, "message": "not so here", "success": False})
"""The typed failure, the only one that a sender of VERIFY reacts to (docs/protocol #sync-result)."""


NEVER = replace(SUCCESS, after_ms=FOR_EVER_MS)
"""No answer at all: the node has to give up waiting."""


def snapshot_reply(*clients: Json) -> Reply:
    """A SNAPSHOT with these ClientSyncData objects."""
    key = {"resourceKey": "SNAPSHOT", "resourceType": RESOURCE_TYPE}
    return Reply(
        DISTRO_RESPONSE, {**_OK, "distroData": {"distroKey": key, "content": pack({"clientSyncDataList": clients})}}
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request of the node, when it came, and whether the peer's answer to it was a success."""

    at_ms: int
    type: str
    call: DistroCall | None = None
    answered: bool = True
    body: Json = field(default_factory=dict)

    def is_about(self, operation: str, client: str | None = None) -> bool:
        return self.call is not None and self.call.operation == operation and client in (None, self.call.client)

    def __str__(self) -> str:
        if self.call is None:
            return self.type
        words = [self.call.operation]
        if self.call.client is not None:
            words.append(f"of {self.call.client}")
        if self.call.revision is not None:
            words.append(f"revision {self.call.revision}")
        if self.call.replica is not None:
            words.append(f"with {', '.join(p.service for p in self.call.replica.published) or 'nothing published'}")
        return " ".join(words) + f", answered with {'success' if self.answered else 'failure'}"


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRule:
    """How the member answers an operation, of one client or of all; `forget` takes it."""

    operation: str
    client: str | None
    answer: Answer


@dataclass
class PlayedPeer:
    """One member at 127.0.0.1:`port`. `now_ms` stamps what arrives; `listeners` hear of it at once.

    `in_virtual_time`: whether its silences are the node's link's to keep (wire/silence.py).
    """

    port: int
    now_ms: Callable[[], int]
    version: str = "2.2.4"
    headers: Mapping[str, str] = field(default_factory=dict)
    """What it shows of itself with each request."""
    arrivals: list[Arrival] = field(default_factory=list)
    listeners: list[OnArrival] = field(default_factory=list)
    in_virtual_time: bool = False
    http: HttpMember = field(init=False)
    """Its HTTP side; listens as long as the member does."""
    _rules: list[AnswerRule] = field(default_factory=list)
    _registered: dict[str, str] = field(default_factory=dict)  # transport -> label `source`
    _server: grpc.aio.Server | None = None
    _node: str = ""
    _to_node: Connection | None = None
    _said_ms: int = 0

    def __post_init__(self) -> None:
        self.http = HttpMember(self.port, self.as_member)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_connected(self) -> bool:
        """The node's cluster client has been set up here and is still open."""
        return "cluster" in self._registered.values()

    async def start(self) -> None:
        """Listen. Raises TargetError when the port is taken."""
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(_handlers(self._unary, self._stream))
        address = f"127.0.0.1:{self.port + CLUSTER_OFFSET}"
        try:
            self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise TargetError(f"the played member cannot listen on {address}: the port is in use") from error
        await self._server.start()
        await self.http.start()

    async def stop(self) -> None:
        await self.hang_up()
        await self.http.stop()
        if self._server is not None:
            await self._server.stop(grace=None)

    async def join(self, node: str) -> None:
        """Dial a node that has this member on its list. Up to 2.2.0 it connects only to members that have reported
        themselves (docs/protocol #member-client). Raises TargetError."""
        if f"nacos-{self.version}" in _REPORTS_OVER_HTTP:
            await self.http.report_to(node, self.version)
        await self.dial(node)

    async def dial(self, node: str) -> None:
        """Open the connection on which this member speaks to the node at host:port. Raises TargetError."""
        self._node = node
        address = with_offset(node, CLUSTER_OFFSET)
        self._to_node = await Connection.open(address, labels=CLUSTER_LABELS, headers=self.headers)

    async def hang_up(self) -> None:
        """Close what `dial` opened."""
        if self._to_node is not None:
            await self._to_node.close()
            self._to_node = None

    # What the node hears from this member, when it asks.

    def answer(self, operation: str, answer: Answer, *, client: str | None = None) -> AnswerRule:
        """From now on answer the operation so, for one client or for all; the latest matching rule counts."""
        self._rules.append(AnswerRule(operation, client, answer))
        return self._rules[-1]

    def forget(self, rule: AnswerRule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)

    def answer_normally(self) -> None:
        """Forget every rule: success, and an empty snapshot."""
        self._rules.clear()

    # What this member says of itself.

    async def sync(self, client: str, revision: int, *instances: tuple[str, str, int], **metadata: str) -> Message:
        """CHANGE: the client, owned by this member, now publishes these (service, ip, port)."""
        return await self._say("CHANGE", client, sync_data(client, revision, instances, **metadata))

    async def sync_batch(self, client: str, revision: int, service: str, ip: str, ports: Sequence[int]) -> Message:
        """CHANGE: the client, owned by this member, now publishes the service as a batch."""
        return await self._say("CHANGE", client, batch_data(client, revision, service, ip, ports))

    async def verify(self, client: str, revision: int) -> Message:
        return await self._say("VERIFY", client, {"clientId": client, "revision": revision})

    async def delete(self, client: str) -> Message:
        return await self._say("DELETE", client)

    async def snapshot(self) -> tuple[Replica, ...]:
        """Every client that the node holds. Raises ValueError when the reply is no snapshot."""
        return read_snapshot(await self._say("SNAPSHOT"))

    async def query(self, client: str) -> Replica | None:
        """What the node holds of one client; None when it does not know it."""
        return read_query(await self._say("QUERY", client))

    async def stay(self) -> None:
        """A member that has said nothing for a while checks its connection, else the node may give it up (2.4, 2.5)."""
        if self._to_node is not None and self.now_ms() - self._said_ms >= _KEEP_ALIVE_MS:
            self._said_ms = self.now_ms()
            await self._to_node.ask("HealthCheckRequest", {"headers": {}, "module": "internal"})

    async def say(self, body: Json) -> Message:
        """A Distro request as it stands, also one that no member would send."""
        if self._to_node is None:
            raise TargetError("the played member has not dialled the node")
        self._said_ms = self.now_ms()
        return await self._to_node.ask(DISTRO_REQUEST, body)

    async def _say(self, operation: str, client: str | None = None, content: Any = None) -> Message:
        target = None if operation == "VERIFY" else self._node  # docs/protocol #distro-envelope
        return await self.say(distro_request(operation, client, target=target, content=content))

    # The server side.

    async def _unary(self, payload: Payload, context: NodeContext) -> Payload:
        try:
            message = decode(payload)
        except UnreadableBodyError as error:
            return _error(502, str(error))
        if message.type == "ServerCheckRequest":
            connection_id = f"{time.time_ns() // 1_000_000}_{context.peer().removeprefix('ipv4:').replace(':', '_')}"
            return encode(
                "ServerCheckResponse", {**_OK, "connectionId": connection_id, "supportAbilityNegotiation": False}
            )
        if context.peer() not in self._registered:
            return _error(301, "Connection is unregistered.")
        return await self._handle(message)

    async def _handle(self, message: Message) -> Payload:
        call = read_request(message)
        if call is not None:
            reply = self._reply_to(call)
            is_success = reply.body.get("resultCode") == 200 and not reply.after_ms
            self._arrived(Arrival(self.now_ms(), message.type, call, is_success, message.body))
            answer = encode(reply.type, reply.body)
            if not reply.after_ms:
                return answer
            return await answered_late(answer, reply.after_ms, in_virtual_time=self.in_virtual_time)
        self._arrived(Arrival(self.now_ms(), message.type, body=message.body))
        if message.type == "MemberReportRequest":
            return encode("MemberReportResponse", {**_OK, "node": self.as_member()})
        if message.type == "HealthCheckRequest":
            return encode("HealthCheckResponse", _OK)
        return _error(302, f"RequestHandler Not Found for {message.type}")

    async def _stream(self, payloads: AsyncIterator[Payload], context: NodeContext) -> AsyncIterator[Payload]:
        """Registers the transport; says nothing, since no ability negotiation was offered."""
        transport = context.peer()
        try:
            async for payload in payloads:
                message = decode(payload)
                if message.type == "ConnectionSetupRequest":
                    self._registered[transport] = (message.body.get("labels") or {}).get("source", "")
        finally:
            self._registered.pop(transport, None)
        return
        yield  # makes this a generator, which is what gRPC takes for a stream without answers

    def _reply_to(self, call: DistroCall) -> Reply:
        for rule in reversed(self._rules):
            if rule.operation == call.operation and rule.client in (None, call.client):
                return rule.answer if isinstance(rule.answer, Reply) else rule.answer(call)
        return snapshot_reply() if call.operation == "SNAPSHOT" else SUCCESS

    def _arrived(self, arrival: Arrival) -> None:
        self.arrivals.append(arrival)
        for listener in tuple(self.listeners):
            listener(arrival)

    def as_member(self) -> Json:
        """This member as a report shows it; `address` must be there (docs/protocol #member-report)."""
        abilities = {
            "remoteAbility": {"supportRemoteConnection": True, "grpcReportEnabled": True},
            "configAbility": {"supportRemoteMetrics": False},
            "namingAbility": {"supportJraft": True},
        }
        return {
            "ip": "127.0.0.1",
            "port": self.port,
            "state": "UP",
            "address": self.address,
            "extendInfo": {
                "raftPort": str(self.port + RAFT_OFFSET),
                "readyToUpgrade": True,
                "version": self.version,
            },
            "abilities": abilities,
            "grpcReportEnabled": True,
            "failAccessCnt": 0,
        }


def _error(code: int, message: str) -> Payload:
    return encode("ErrorResponse", {"resultCode": 500, "errorCode": code, "message": message, "success": False})


def _handlers(
    unary: Callable[[Payload, NodeContext], Awaitable[Payload]],
    stream: Callable[[AsyncIterator[Payload], NodeContext], AsyncIterator[Payload]],
) -> tuple[grpc.GenericRpcHandler, ...]:
    request = grpc.unary_unary_rpc_method_handler(unary, Payload.FromString, Payload.SerializeToString)
    both_ways = grpc.stream_stream_rpc_method_handler(stream, Payload.FromString, Payload.SerializeToString)
    return (
        grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: request}),
        grpc.method_handlers_generic_handler(STREAM_SERVICE, {STREAM_METHOD: both_ways}),
    )
