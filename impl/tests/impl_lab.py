"""The tools of the wire tests: clusters on a virtual clock, links that can fail, clients that speak the raw protocol.

The client shares nothing with the node but the envelope and the body of a Distro request.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from distro_impl import PROFILES, Clock, Cluster, Node, NodeConfig, NodeEvent, Profile, VirtualClock, free_main_ports
from distro_impl.clocks.clock import Waiting
from distro_impl.distro.transport_agent import DataOperation, distro_body
from distro_impl.logs import LOG_FILES
from distro_impl.options import DEFAULT_OPTIONS, NodeOptions
from distro_impl.transport.grpc_transport import GrpcChannel, GrpcTransport
from distro_impl.transport.memory import MemoryTransport
from distro_impl.transport.transport import Channel, Forward, PeerLink
from distro_protos import Json, Message, Payload, decode, encode

STRICT, NACOS_2_2_4, NACOS_2_0_4 = PROFILES["strict"], PROFILES["nacos-2.2.4"], PROFILES["nacos-2.0.4"]
SERVICE = {"namespace": "public", "groupName": "DEFAULT_GROUP"}
LOST_BUT_ACKNOWLEDGED = ("DistroDataResponse", {"resultCode": 200, "errorCode": 0})
REAL_TIMEOUT_S = 10.0
PUSHED_WITHIN_MS = 600
"""The push delay and a tick: after it queries of a release show what happened before."""


def errors_logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Unhandled exceptions of tasks included, but for what gRPC says to the loops of earlier tests, and for what real
    servers call an error too."""
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR and record.name not in LOG_FILES]
    return [record.getMessage() for record in errors if "Event loop is closed" not in str(record.exc_info)]


def sync_data(client_id: str, revision: int, **ports: int) -> Json:
    """ClientSyncData of a client that publishes one instance in each of the named services."""
    return {
        "clientId": client_id,
        "attributes": {"clientAttributes": {"revision": revision}},
        "namespaces": ["public"] * len(ports),
        "groupNames": ["DEFAULT_GROUP"] * len(ports),
        "serviceNames": list(ports),
        "instancePublishInfos": [
            {"ip": "10.0.0.1", "port": port, "healthy": True, "cluster": "DEFAULT", "extendDatum": {}}
            for port in ports.values()
        ],
        "batchInstanceData": {},
    }


class RawClient:
    """One connection to one server of a node."""

    def __init__(self, channel: Channel, labels: dict[str, str]) -> None:
        self._channel = channel
        self.headers: dict[str, str] = {}
        """Sent with every request."""
        self._labels = labels
        self._stream: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._arrived: deque[Message] = deque()
        self._arrival = asyncio.Event()
        self.answers_detection = True
        self.acknowledges = False
        """Whether it answers pushes by itself."""
        self.reads = asyncio.Event()
        """Cleared, the client reads no message after the next one on its stream."""
        self.reads.set()
        self.id = ""

    async def check(self) -> Message:
        reply = await self.ask("ServerCheckRequest", {})
        self.id = reply.body["connectionId"]
        return reply

    async def connect(self, ability_table: dict[str, bool] | None = None) -> RawClient:
        await self.set_up(abilityTable=ability_table)
        for _ in range(1000):
            if (await self.ask("HealthCheckRequest", {})).succeeded:
                return self
        raise AssertionError("the node did not register the connection")

    async def set_up(self, **further: Any) -> None:
        """Open the stream and send the set-up message, without waiting for a result."""
        await self.check()
        self._begin_stream()
        await self.say("ConnectionSetupRequest", {"labels": self._labels, "clientVersion": "test", **further})

    async def open(self) -> RawClient:
        """Open the stream, with a message that is not a set-up."""
        await self.check()
        self._begin_stream()
        await self.say("HealthCheckResponse", {})
        return self

    def _begin_stream(self) -> None:
        self._stream = self._channel.open_stream()
        self._reader = asyncio.create_task(self._read())

    async def say(self, type_name: str, body: Json) -> None:
        """Write a message on the stream."""
        await self.say_bytes(encode(type_name, body).SerializeToString())

    async def say_bytes(self, serialized: bytes) -> None:
        """Write bytes on the stream; they need not be a Payload."""
        await self._stream.write(serialized)

    async def ask(self, type_name: str, body: Json) -> Message:
        return await self.ask_bytes(encode(type_name, body, headers=self.headers).SerializeToString())

    async def ask_unchanged(self, type_name: str, body: Json) -> Message:
        """With its nulls, which `ask` leaves out."""
        payload = encode(type_name, {})
        payload.body.value = json.dumps(body).encode()
        return await self.ask_bytes(payload.SerializeToString())

    async def ask_bytes(self, serialized: bytes) -> Message:
        """A request that need not be a Payload."""
        return decode(Payload.FromString(await self._channel.call(serialized, REAL_TIMEOUT_S)))

    async def register(self, service: str, port: int, **instance: Any) -> Message:
        return await self._instance("registerInstance", service, {"ip": "10.0.0.1", "port": port, **instance})

    async def register_batch(self, service: str, *ports: int, **instance: Any) -> Message:
        instances = [{"ip": "10.0.0.1", "port": port, **instance} for port in ports]
        body = {**SERVICE, "serviceName": service, "type": "batchRegisterInstance", "instances": instances}
        return await self.ask("BatchInstanceRequest", body)

    async def services(self, **query: Any) -> tuple[int, list[str]]:
        """The total and the page."""
        query = {**SERVICE, "pageNo": 1, "pageSize": 10, **query}
        reply = await self.ask("ServiceListRequest", query)
        return reply.body["count"], reply.body["serviceNames"]

    async def deregister(self, service: str) -> Message:
        return await self._instance("deregisterInstance", service, {})

    async def subscribe(self, service: str, subscribe: bool = True, clusters: str = "") -> Message:
        body = {**SERVICE, "serviceName": service, "subscribe": subscribe, "clusters": clusters}
        return await self.ask("SubscribeServiceRequest", body)

    async def hosts(self, service: str, **query: Any) -> list[Json]:
        reply = await self.ask("ServiceQueryRequest", {**SERVICE, "serviceName": service, **query})
        hosts: list[Json] = reply.body["serviceInfo"]["hosts"]
        return hosts

    async def ports(self, service: str) -> list[int]:
        """The ports of the instances that this server shows."""
        return sorted(host["port"] for host in await self.hosts(service))

    async def distro(self, operation: str, client_id: str, data: Json | None = None) -> Message:
        return await self.ask("DistroDataRequest", distro_body(DataOperation(operation), client_id, data))

    async def change(self, client_id: str, revision: int, **ports: int) -> Message:
        return await self.distro("CHANGE", client_id, sync_data(client_id, revision, **ports))

    async def verify(self, client_id: str, revision: int) -> bool:
        reply = await self.distro("VERIFY", client_id, {"clientId": client_id, "revision": revision})
        return reply.succeeded

    async def next_request(self) -> Message:
        """The next message that the server sends on the stream, but for the detections that are answered."""
        while not self._arrived:
            self._arrival.clear()
            await asyncio.wait_for(self._arrival.wait(), REAL_TIMEOUT_S)
        return self._arrived.popleft()

    def take(self) -> list[Message]:
        """The messages that have arrived and were not taken yet."""
        taken = list(self._arrived)
        self._arrived.clear()
        return taken

    def arrived(self) -> list[Message]:
        """The messages that have arrived and were not taken with `next_request`; they stay."""
        return list(self._arrived)

    async def acknowledge(self, push: Message, type_name: str = "NotifySubscriberResponse") -> None:
        answer = {"resultCode": 200, "errorCode": 0, "requestId": push.body["requestId"]}
        await self.say(type_name, answer)

    async def stream_ended(self) -> None:
        """Until the server has ended the stream."""
        assert self._reader is not None
        await asyncio.wait_for(asyncio.shield(self._reader), REAL_TIMEOUT_S)

    async def open_another_stream_and_end_it(self) -> None:
        stream = self._channel.open_stream()
        await stream.write(encode("HealthCheckRequest", {}).SerializeToString())
        stream.cancel()

    async def complete_stream(self) -> None:
        await self._stream.done_writing()

    async def close(self) -> None:
        await self._channel.close()
        if self._reader is not None:
            self._reader.cancel()

    async def _read(self) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.CancelledError, asyncio.InvalidStateError):
            while (serialized := await self._stream.read()) is not None:
                message = decode(Payload.FromString(serialized))
                if not self.reads.is_set():
                    self._stream.stop_reading()
                    await self.reads.wait()
                    self._stream.stop_reading(False)
                if message.type == "ClientDetectionRequest" and self.answers_detection:
                    await self.acknowledge(message, "ClientDetectionResponse")
                    continue
                self._arrived.append(message)
                self._arrival.set()
                if self.acknowledges:
                    await self.acknowledge(message)

    async def _instance(self, operation: str, service: str, instance: Json) -> Message:
        body = {**SERVICE, "serviceName": service, "type": operation, "instance": instance}
        return await self.ask("InstanceRequest", body)


@dataclass(frozen=True)
class Sent:
    """A Distro request as it entered a link."""

    at_ms: int
    sender: str
    peer: str
    operation: str
    client: str


class Link(PeerLink):
    """The directed link between two nodes. `cut` and `mute` concern every request, the rest Distro operations."""

    def __init__(self, links: Links, sender: str, peer: str) -> None:
        self._links, self._sender, self._peer = links, sender, peer
        self.cut = False
        self.mute = False
        self.unanswered: set[str] = set()
        self.breaks_at: set[str] = set()
        """Operations at which something in the sender itself raises."""
        self.answers: dict[str, tuple[str, Json]] = {}
        """Operation -> the answer that the sender receives; the request is not delivered."""

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        if self.cut:
            raise ConnectionError("cut")
        if request.metadata.type == "ServerCheckRequest":
            self._links.set_ups.append((self._sender, self._peer))
        body = decode(request).body
        operation = body.get("dataOperation")
        if operation is not None:
            client = body.get("distroData", {}).get("distroKey", {}).get("resourceKey", "")
            now_ms = self._links.clock.now_ms()
            self._links.sent.append(Sent(now_ms, self._sender, self._peer, operation, client))
            if operation in self.breaks_at:
                raise RuntimeError("the sender broke down")
            if operation in self.answers:
                return encode(*self.answers[operation])
        if self.mute or operation in self.unanswered:
            await Waiting[None](self._links.clock).taken()
        return await forward(request)


@dataclass
class Links:
    """All links of a cluster, and what was sent over them."""

    clock: Clock
    sent: list[Sent] = field(default_factory=list)
    set_ups: list[tuple[str, str]] = field(default_factory=list)
    """(sender, peer) of each connection that was begun."""
    _links: dict[tuple[str, str], Link] = field(default_factory=dict)

    def __call__(self, sender: str, peer: str) -> Link:
        return self.between(sender, peer)

    def between(self, sender: str, peer: str) -> Link:
        return self._links.setdefault((sender, peer), Link(self, sender, peer))

    def operations(self, client: str, sender: str | None = None, peer: str | None = None) -> list[str]:
        """The requests that were sent about a client, in order."""
        return [
            sent.operation
            for sent in self.sent
            if sent.client == client and sender in (None, sent.sender) and peer in (None, sent.peer)
        ]


class GrpcInMemory(MemoryTransport):
    """HTTP stays on loopback, where any client can call it."""

    serve_http = GrpcTransport.serve_http
    http_connector = GrpcTransport.http_connector


class Run:
    """A cluster on a virtual clock, with its links and all events that its nodes reported."""

    def __init__(self, profile: Profile, size: int, options: NodeOptions = DEFAULT_OPTIONS, *, over_grpc: bool) -> None:
        self.clock = VirtualClock()
        self.transport = GrpcTransport() if over_grpc else GrpcInMemory(self.clock, seed=0)
        self.start_ms = self.clock.now_ms()
        self.links = Links(self.clock)
        self.events: list[NodeEvent] = []
        self.cluster = Cluster(
            size,
            profile=profile,
            options=options,
            clock=self.clock,
            observer=self.events.append,
            transport=self.transport,
            links=self.links,
        )

    def serves(self, target: str) -> bool:
        return any(target in (node.config.sdk_target, node.config.cluster_target) for node in self.cluster.nodes)

    def link(self, sender: int, peer: int) -> Link:
        return self.links.between(self.cluster.addresses[sender], self.cluster.addresses[peer])

    async def restart_two_without_the_third(self) -> list[Link]:
        """The first two of three nodes crash and come back cut off from the third; returns the links that are cut."""
        far = [self.link(*ends) for node in range(2) for ends in ((node, 2), (2, node))]
        for node in range(2):
            await self.cluster.crash(node)
        for link in far:
            link.cut = True
        for node in range(2):
            await self.cluster.restart(node)
        return far

    def kinds(self, node: int, client: str) -> list[str]:
        """The events that a node reported about a client, in order."""
        return [event.kind for event in self.events if self._is_about(event, node, client)]

    def last(self, node: int, client: str) -> NodeEvent:
        return [event for event in self.events if self._is_about(event, node, client)][-1]

    def _is_about(self, event: NodeEvent, node: int, client: str) -> bool:
        return (event.node, event.client) == (self.cluster.addresses[node], client)


class Lab:
    """Starts clusters and clients, and ends them with the test. A node alone is called over gRPC, and a cluster in
    memory unless `over_grpc`."""

    def __init__(self, *, over_grpc: bool = False) -> None:
        self._over_grpc = over_grpc
        self._runs: list[Run] = []
        self._nodes: list[Node] = []
        self._clients: list[RawClient] = []

    async def cluster(
        self,
        profile: Profile = STRICT,
        size: int = 3,
        options: NodeOptions = DEFAULT_OPTIONS,
        *,
        strangers: bool = False,
        before_start: Callable[[Run], None] = lambda _: None,
    ) -> Run:
        """Nodes that have loaded, at virtual time 0; `strangers` of an old release have to report themselves first."""
        run = Run(profile if strangers else profile.with_known_members(), size, options, over_grpc=self._over_grpc)
        self._runs.append(run)
        before_start(run)
        await run.cluster.start()
        await run.clock.settle()
        return run

    async def node(self, **config: Any) -> tuple[Node, VirtualClock]:
        """One node alone, `config` as of NodeConfig."""
        clock = VirtualClock()
        node = Node(NodeConfig(port=free_main_ports(1)[0], **config), clock=clock)
        self._nodes.append(node)
        await node.start()
        await clock.settle()
        return node, clock

    async def naming(self, node: Node, ability_table: dict[str, bool] | None = None) -> RawClient:
        """A naming client on the SDK port."""
        return await self.raw(node.config.sdk_target, module="naming", source="sdk").connect(ability_table)

    async def member(self, node: Node) -> RawClient:
        """A peer on the cluster port."""
        return await self.raw(node.config.cluster_target, source="cluster").connect()

    def raw(self, target: str, credentials: grpc.ChannelCredentials | None = None, **labels: str) -> RawClient:
        """A client that has not connected yet."""
        in_memory = (run.transport for run in self._runs if not self._over_grpc and run.serves(target))
        transport = next(in_memory, None)
        channel = transport.channel(target) if transport else GrpcChannel(target, credentials=credentials)
        client = RawClient(channel, labels)
        self._clients.append(client)
        return client

    def forget_clients(self) -> None:
        """Those that are closed already, so that nothing of them is held here."""
        self._clients.clear()

    async def leave(self, run: Run, client: RawClient) -> None:
        """Close a client's connection; returns when its node has handled that."""
        await client.close()
        await run.clock.settle()

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        for run in self._runs:
            await run.cluster.stop()
        for node in self._nodes:
            await node.stop()
