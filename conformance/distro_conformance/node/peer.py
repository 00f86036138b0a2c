"""A member that the kit plays: it listens where the node expects a peer, answers as configured, and records everything.

The node considers the member alive since it answers member reports with success and a `node`
(docs/real-servers.md#a-played-member). Everything else is programmable: by default it acknowledges every request
and holds an empty snapshot; `answer` changes the reply to an operation, for one client or for all. In the other
direction `sync`, `verify`, `delete`, `snapshot` and `query` send to the node what a member would send.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from distro_conformance.node.errors import BeyondError
from distro_conformance.node.http_member import HttpMember
from distro_conformance.node.replies import (
    NEVER,
    OK,
    REPORT_RESPONSE,
    SUCCESS,
    Answer,
    AnswerRule,
    Reply,
    answered_late,
    snapshot_reply,
)
from distro_conformance.release import Span
from distro_conformance.targets.ports import CLUSTER_OFFSET, RAFT_OFFSET, with_offset
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection, Context, node_server
from distro_conformance.wire.links import LinkCutError
from distro_conformance.wire.messages import (
    DISTRO_REQUEST,
    DistroCall,
    batch_data,
    distro_request,
    read_query,
    read_request,
    read_snapshot,
    sync_data,
)
from distro_impl.clocks.clock import Clock as NodesClock
from distro_impl.options import GrpcServerOptions
from distro_impl.remote.payloads import SENDER_HEADER
from distro_impl.transport.health import Health
from distro_impl.transport.transport import Listener, PeerLink, Server, ServerStream, Transport
from distro_protos import (
    Json,
    Message,
    Payload,
    UnreadableBodyError,
    decode,
    encode,
)
from distro_traces.content import Published, Replica

REPORT_REQUEST = "MemberReportRequest"
_KEEP_ALIVE_MS = 5_000
_DELIVERED_WITHIN_S = 0.2
_READING = ("SNAPSHOT", "QUERY")
_REPORTS_OVER_HTTP = Span(until="2.2.0")
OnArrival = Callable[["Arrival"], None]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request of the node, when it came, and whether the peer's answer to it was a success."""

    at_ms: int
    type: str
    call: DistroCall | None = None
    answered: bool = True
    is_typed: bool = True
    """It was answered with the response that belongs to it, success or not."""
    body: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def replica(self) -> Replica | None:
        """The client that it carries, if any."""
        return None if self.call is None else self.call.replica

    @property
    def published(self) -> Sequence[Published]:
        """What that client publishes."""
        return () if self.replica is None else self.replica.published

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


@dataclass
class PlayedPeer:
    """One member at 127.0.0.1:`port`. `now_ms` stamps arrivals; `listeners` are called for each at once.

    `in_virtual_time`: whether its silences are the node's link's to keep (node/replies.py).
    """

    port: int
    now_ms: Callable[[], int]
    version: str = "2.2.4"
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of its requests."""
    arrivals: list[Arrival] = field(default_factory=list)
    listeners: list[OnArrival] = field(default_factory=list)
    sent_contents: dict[str, Json | None] = field(default_factory=dict)
    """The last content that this member sent of each of its clients; None: a DELETE."""
    in_virtual_time: bool = False
    only_reads: bool = False
    """Whether it sends the node only requests that read."""
    on_connection: Callable[[], None] = lambda: None
    """Called when a connection to this member begins or ends."""
    http: HttpMember = field(init=False)
    """Its HTTP side; listens as long as the member does."""
    _rules: list[AnswerRule] = field(default_factory=list)
    _registered: dict[str, str] = field(default_factory=dict)  # transport -> label `source`
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A restart waits until a stop under way is done."""
    _leaving: set[asyncio.Future[None]] = field(default_factory=set)  # of calls that are answered and not yet over
    _is_gone: bool = False
    _silent: frozenset[str] = frozenset()  # transports on which nothing is answered
    pid: None = field(default=None, init=False)
    logs: Sequence[Path] = field(default=(), init=False)
    link: PeerLink | None = None
    """The link that requests to this member pass if the node's own side has none."""
    _server: grpc.aio.Server | Server | None = None
    _transport: Transport | None = None
    _node: str = ""
    _to_node: Connection | None = None
    _sent_ms: int = 0

    def __post_init__(self) -> None:
        self.http = HttpMember(self.port, self.as_member)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def is_connected(self) -> bool:
        """The node's cluster client has been set up here and is still open."""
        return "cluster" in self._registered.values()

    async def start_in(self, transport: Transport, clock: NodesClock) -> None:
        """Listen in a transport that is no network, where there is no HTTP."""
        self._transport = transport
        listener = Listener(
            ip="127.0.0.1",
            port=self.port + CLUSTER_OFFSET,
            purpose="played member",
            options=GrpcServerOptions(),
            health=Health(),
            service=_Service(self),
            clock=clock,
        )
        self._server = await transport.serve(listener)

    async def start(self, *, until_loaded: bool = True) -> None:  # noqa: ARG002 - it loads nothing
        """Listen; listen again if an earlier start was broken off while listening. Raises TargetError when the port is
        taken."""
        async with self._turn:
            if self._server is not None:
                await self._stop()
            await self._start()

    async def stop(self) -> None:
        async with self._turn:
            await self._stop()

    async def close(self) -> None:
        await self.stop()

    async def change_members(self, addresses: Sequence[str]) -> None:
        raise TargetError(f"{self.address} is played and has no list: {', '.join(addresses)}")

    async def members(self) -> Mapping[str, str]:
        """It has no view of the members."""
        return {}

    async def _start(self) -> None:
        self._server = server = node_server(self._unary, self._stream)
        self._is_gone = False
        address = f"127.0.0.1:{self.port + CLUSTER_OFFSET}"
        try:
            server.add_insecure_port(address)
        except RuntimeError as error:
            raise TargetError(f"the played member cannot listen on {address}: the port is in use") from error
        await server.start()
        await self.http.start()

    async def _stop(self) -> None:
        await self.disconnect_from_node()
        if self._transport is None:
            await self.http.stop()
        if isinstance(self._server, grpc.aio.Server):
            await self._end(self._server)
            self._server = None
        elif self._server is not None:
            await self._server.stop(None)
            self._server = None
        self._registered.clear()

    async def _end(self, server: grpc.aio.Server) -> None:
        """No more requests are accepted, and answers are delivered before the connections end: the record says so.

        The server is stopped once: gRPC may crash where a stop with a grace is overtaken by one without.
        """
        self._is_gone = True
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_DELIVERED_WITHIN_S)
        await server.stop(None)

    async def join(self, node: str) -> None:
        """Dial a node that has this member on its list. Up to 2.2.0 it connects only to members that have reported
        themselves (docs/protocol #member-client). Raises TargetError."""
        if f"nacos-{self.version}" in _REPORTS_OVER_HTTP:
            await self.http.report_to(node, self.version)
        await self.dial(node)

    async def dial(self, node: str) -> None:
        """Open the connection on which this member sends to the node at host:port; it replaces an open one. Raises
        TargetError."""
        self._node = node
        address = with_offset(node, CLUSTER_OFFSET)
        headers = {**self.headers, SENDER_HEADER: self.address}
        opened = await Connection.open(address, labels=CLUSTER_LABELS, headers=headers, transport=self._transport)
        await self.disconnect_from_node()
        self._to_node = opened

    async def disconnect_from_node(self) -> None:
        """Close what `dial` opened."""
        opened, self._to_node = self._to_node, None
        if opened is not None:
            await opened.close()

    # Answers to the node.

    def answer(self, operation: str, answer: Answer, *, client: str | None = None, once: bool = False) -> AnswerRule:
        """From now on, or `once`, give this answer to the operation, for one client or for all; the latest matching
        rule counts."""
        self._rules.append(AnswerRule(operation, client, answer, once))
        return self._rules[-1]

    def forget(self, rule: AnswerRule) -> None:
        if rule in self._rules:
            self._rules.remove(rule)

    def answer_normally(self) -> None:
        """Forget every rule: success, and an empty snapshot."""
        self._rules.clear()

    def fall_silent(self) -> None:
        """From now on requests on the open connections get lost, as on a link that was cut silently. New connections
        work."""
        self._silent |= self._registered.keys()

    def forget_connections(self) -> None:
        """Requests on the open connections are answered as if the connections had never been set up. New connections
        work."""
        self._registered.clear()

    # Requests to the node.

    async def sync(self, client: str, revision: int, *instances: tuple[str, str, int], **metadata: str) -> Message:
        """CHANGE: the client, owned by this member, now publishes these (service, ip, port)."""
        return await self._send("CHANGE", client, sync_data(client, revision, instances, **metadata))

    async def sync_batches(self, client: str, revision: int, ip: str, batches: Mapping[str, Sequence[int]]) -> Message:
        """CHANGE: the client, owned by this member, now publishes these services as batches, each at its ports."""
        return await self._send(
            "CHANGE",
            client,
            batch_data(
                client, revision, {service: [(ip, port) for port in ports] for service, ports in batches.items()}
            ),
        )

    async def verify(self, client: str, revision: int) -> Message:
        return await self._send("VERIFY", client, {"clientId": client, "revision": revision})

    async def delete(self, client: str) -> Message:
        return await self._send("DELETE", client)

    async def snapshot(self) -> tuple[Replica, ...]:
        """Every client that the node holds. Raises ValueError when the reply is no snapshot."""
        return read_snapshot(await self._send("SNAPSHOT"))

    async def query(self, client: str) -> Replica | None:
        """What the node holds of one client; None when it does not know it. Raises ValueError when it says neither."""
        return read_query(await self._send("QUERY", client))

    async def report(self) -> Message:
        """Report this member to the node as UP. Raises TargetError."""
        body = {"headers": {}, "node": self.as_member(), "module": "cluster"}
        return await self._dialled().ask(REPORT_REQUEST, body)

    async def keep_alive(self) -> None:
        """An idle member checks its connection, else the node may end it (2.4, 2.5)."""
        if self._to_node is not None and self.now_ms() - self._sent_ms >= _KEEP_ALIVE_MS:
            self._sent_ms = self.now_ms()
            await self._to_node.check_health()

    async def send(self, body: Json) -> Message:
        """Sends a Distro request unchanged, also a malformed one."""
        to_node = self._dialled()
        if self.only_reads and (operation := body.get("dataOperation")) not in _READING:
            raise BeyondError(f"the kit did not start {self._node}: no {operation} is sent to it as by a member")
        self._sent_ms = self.now_ms()
        return await to_node.ask(DISTRO_REQUEST, body)

    def _dialled(self) -> Connection:
        if self._to_node is None:
            raise TargetError("the played member has not dialled the node")
        return self._to_node

    async def _send(self, operation: str, client: str | None = None, content: Any = None) -> Message:
        if client is not None and operation in ("CHANGE", "DELETE"):
            self.sent_contents[client] = content
        target = None if operation == "VERIFY" else self._node  # docs/protocol #distro-envelope
        return await self.send(distro_request(operation, client, target=target, content=content))

    # The server side.

    async def _unary(self, payload: Payload, context: Context) -> Payload:
        async def handled(request: Payload) -> Payload:
            if self._is_gone:
                raise LinkCutError(f"{self.address} is gone")
            answer, after_ms = self.handled(request, context.peer())
            if after_ms:
                return await answered_late(answer, after_ms, in_virtual_time=self.in_virtual_time)
            self._leaves(context)
            return answer

        try:
            return await (handled(payload) if self.link is None else self.link.carry(payload, handled))
        except ConnectionError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise

    def _leaves(self, context: Context) -> None:
        """An answer is on its way until the call is over."""
        delivered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivered.add_done_callback(self._leaving.discard)
        self._leaving.add(delivered)
        context.add_done_callback(lambda _: delivered.set_result(None))  # type: ignore[arg-type] # stubs ask for a class

    def handled(self, payload: Payload, transport: str) -> tuple[Payload, int]:
        """The reply to a request that came over this transport, and after how many ms it is due."""
        try:
            message = decode(payload)
        except UnreadableBodyError as error:
            return _error(502, str(error)), 0
        if message.type == "ServerCheckRequest":
            connection_id = f"{time.time_ns() // 1_000_000}_{transport.removeprefix('ipv4:').replace(':', '_')}"
            body = {**OK, "connectionId": connection_id, "supportAbilityNegotiation": False}
            return encode("ServerCheckResponse", body), 0
        if transport in self._silent:
            return NEVER.encoded(), NEVER.after_ms
        if transport not in self._registered:
            return _error(301, "Connection is unregistered."), 0
        return self._handle(message)

    def _handle(self, message: Message) -> tuple[Payload, int]:
        call = read_request(message)
        if call is not None:
            reply = self._reply_to(call)
            is_success = reply.succeeds and not reply.after_ms
            self._arrived(
                Arrival(self.now_ms(), message.type, call, is_success, body=message.body, headers=message.headers)
            )
            return reply.encoded(), reply.after_ms
        if message.type == REPORT_REQUEST:
            reported = Reply(REPORT_RESPONSE, {**OK, "node": self.as_member()})
            reply = self._ruled(DistroCall("REPORT")) or reported
            typed = reply.type == REPORT_RESPONSE
            succeeded = typed and reply.succeeds
            self._arrived(Arrival(self.now_ms(), message.type, None, succeeded, typed, message.body, message.headers))
            return reply.encoded(), reply.after_ms
        self._arrived(Arrival(self.now_ms(), message.type, body=message.body))
        if message.type == "HealthCheckRequest":
            return encode("HealthCheckResponse", OK), 0
        return _error(302, f"RequestHandler Not Found for {message.type}"), 0

    async def _stream(self, _: object, context: Context) -> None:
        """Registers the transport; sends nothing, since no ability negotiation was offered."""
        transport = context.peer()
        try:
            while (message := await context.read()) is not grpc.aio.EOF:
                self.receive(Payload.FromString(message), transport)
        finally:
            self.lost(transport)

    def receive(self, payload: Payload, transport: str) -> None:
        """A message on the stream."""
        message = decode(payload)
        if message.type == "ConnectionSetupRequest":
            self._registered[transport] = (message.body.get("labels") or {}).get("source", "")
            self.on_connection()

    def lost(self, transport: str) -> None:
        self._registered.pop(transport, None)
        self.on_connection()

    def _reply_to(self, call: DistroCall) -> Reply:
        ruled = self._ruled(call)
        return ruled or (snapshot_reply() if call.operation == "SNAPSHOT" else SUCCESS)

    def _ruled(self, call: DistroCall) -> Reply | None:
        for rule in reversed(self._rules):
            if rule.operation == call.operation and rule.client in (None, call.client):
                if rule.once:
                    self._rules.remove(rule)
                return rule.answer if isinstance(rule.answer, Reply) else rule.answer(call)
        return None

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


class _Service:
    """The same calls as a transport that is no network hands them over."""

    def __init__(self, peer: PlayedPeer) -> None:
        self._peer = peer

    def unary(self, request: bytes, peer: str) -> bytes:
        return self._peer.handled(Payload.FromString(request), peer)[0].SerializeToString()

    async def stream(self, stream: ServerStream) -> None:
        try:
            while (message := await stream.read()) is not None:
                self._peer.receive(Payload.FromString(message), stream.peer)
            await stream.ended()
        finally:
            self._peer.lost(stream.peer)


def _error(code: int, message: str) -> Payload:
    return encode("ErrorResponse", {"resultCode": 500, "errorCode": code, "message": message, "success": False})
