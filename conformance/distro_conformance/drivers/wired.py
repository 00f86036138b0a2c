"""Clusters whose nodes are spoken to over the wire, wherever they run: what all of them have in common.

Clients are played, faults are put on the links, each node is asked for a SNAPSHOT, or where it gives none yet about
each client, as any peer may. How a node is started and killed is its `Server`'s matter; how the servers and the links
between them come about is the subclass's (`embedded.py`, `nacos.py`, `mixed.py`, `process.py`, `attach.py`).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import grpc.aio

from distro_conformance.drivers.cluster import CannotError, Ends, Lists
from distro_conformance.drivers.service_lists import instance_text, read_list
from distro_conformance.node.http_player import PlayedHttpClient
from distro_conformance.node.player import NAMESPACE, RefusedError, batch_request, instance_request, service_request
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.recording.traffic import TrafficLog
from distro_conformance.targets.identity import NO_HEADERS
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, with_offset
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import Clock, RealClock, eventually
from distro_conformance.wire.connection import CLUSTER_LABELS, SDK_LABELS, TRANSPORT, Connection
from distro_conformance.wire.links import Fate, Link
from distro_conformance.wire.messages import DISTRO_REQUEST, distro_request, outcome_of, read_query, read_snapshot
from distro_impl.transport.transport import Transport
from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    Blackhole,
    Connect,
    Crash,
    Cut,
    Delay,
    Deregister,
    Disconnect,
    FallSilent,
    Fault,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    HttpRequest,
    ListMembers,
    OfRequest,
    OverHttp,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Reply,
    Restart,
    Resume,
    Throttle,
)
from distro_model.clock import View
from distro_model.possible import Observation
from distro_protos import Message, Payload, decode, encode
from distro_traces.content import Replica
from distro_traces.event import Outcome
from distro_traces.ndjson import Recorder

NOTICED_WITHIN_MS = 5_000
"""What a real server may take until it has noticed the end of a client's connection."""


class Server(Protocol):
    """One node. `start` and `stop` may alternate; `address` is the node's name in every message, host:port."""

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """Of its process while it runs; None for a node without a process of its own."""
        ...

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when it serves. Raises TargetError."""
        ...

    async def stop(self) -> None:
        """At once, as SIGKILL does: nothing more is said, all memory is gone."""
        ...

    async def close(self) -> None:
        """Stop, and leave nothing behind."""
        ...

    async def change_members(self, addresses: Sequence[str]) -> None: ...

    async def members(self) -> Mapping[str, str]:
        """Address of a member to its state as this node sees it; empty while it does not answer."""
        ...


@dataclass
class _Client:
    """A connected client. It subscribes to every service in which it registers; `pushed` is what it was sent last."""

    node: str
    connection: Connection
    pushed: dict[str, tuple[str, ...]]


class WiredCluster:
    """`names` in ascending order; the nodes' ports ascend with them, so that both sort alike."""

    kind = "wired"
    incomparable: str | None = "the model can follow embedded nodes step by step, in virtual time, and no others"

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.names: tuple[str, ...] = ()
        self.servers: dict[str, Server] = {}
        self.links: dict[Ends, Link] = {}
        self.up: tuple[str, ...] = ()
        self.clock: Clock = RealClock()
        self.namespace = NAMESPACE
        self.only_own = False
        """Whether `observe` leaves out clients that this run did not make."""
        self.traffic = TrafficLog(self.client_name)
        self.journal: TraceJournal | None = None
        self._recorder = recorder
        self._checkpoints = 0
        self._clients: dict[str, _Client] = {}
        self._client_names: dict[str, str] = {}
        self._probes: dict[str, Connection] = {}
        self._snapshots: dict[str, tuple[bytes, Mapping[str, View]]] = {}  # the last ones, as read
        self._services: dict[str, None] = {}  # those in which anybody ever registered, in order
        self._paused: set[str] = set()
        self._transport: Transport = TRANSPORT
        self._member_headers: Mapping[str, str] = NO_HEADERS
        """What whoever asks as a member puts into its requests."""

    # The contract

    def cannot(self, action: Action) -> str | None:
        match action:
            case Cut() | Heal() | Hold() | Release() | Blackhole() | Delay() | Throttle() | OfRequest() if (
                action.source,
                action.target,
            ) not in self.links:
                return f"no link of ours leads from {action.source} to {action.target} on {self.kind}"
            case Pause(node) | Resume(node) if self.servers and self.servers[node].pid is None:
                return f"{node} has no process of its own that could be paused"
        return None

    async def perform(self, action: Action) -> None:
        """Do it, and return when the nodes have nothing left to do, where that can be told."""
        why_not = self.cannot(action)
        if why_not is not None:
            raise CannotError(f"'{action}': {why_not}")
        if isinstance(action, Advance):
            await self.clock.pass_ms(action.ms)
            return
        try:
            await self._perform(action)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"'{action}': a node stopped answering: {error.details()}") from error
        await self._settle()

    async def observe(self) -> Sequence[Observation]:
        return [await self.held_by(self.names)]

    async def query(self, node: str, service: str) -> Sequence[tuple[str, ...]]:
        return [await self._list(node, service)]

    async def subscribe(self, client: str, service: str) -> None:
        await self._subscribe(client, service)
        await self._settle()

    async def subscription(self, client: str, service: str) -> Sequence[tuple[str, ...]]:
        subscriber = self._clients.get(client)
        if subscriber is None or service not in subscriber.pushed:
            raise CannotError(f"{client} has no subscription of {service}")
        return [subscriber.pushed[service]]

    async def members(self, node: str) -> Sequence[Mapping[str, str]]:
        states = await self.servers[node].members() if node in self.up else {}
        names = {server.address: name for name, server in self.servers.items()}
        return [{names.get(address, address): state for address, state in states.items()}]

    async def givers(self, node: str) -> frozenset[str]:
        return frozenset(self.traffic.givers[node])

    async def checkpoint(self) -> None:
        if self.journal is not None:
            await self._record_held()
            self._checkpoints += 1
            self.journal.checkpoint(self._checkpoints, self.up)

    async def stop(self) -> None:
        connections = [*self._probes.values(), *(client.connection for client in self._clients.values())]
        await asyncio.gather(*(connection.close() for connection in connections))
        for link in self.links.values():
            link.source_gone()
            link.cut()
        await asyncio.gather(*(server.close() for server in self.servers.values()))
        self._probes, self._clients, self.up = {}, {}, ()
        if self._recorder is not None:
            self._recorder.close()

    async def forget_clients(self) -> None:
        """All of them leave, and nobody is called by their names any more: the next run has its own."""
        await asyncio.gather(*(client.connection.close() for client in self._clients.values()))
        self._clients, self._client_names, self._snapshots = {}, {}, {}

    # What lockstep looks at besides

    def node_of(self, client: str) -> str:
        return self._clients[client].node

    @property
    def subscribed(self) -> tuple[str, ...]:
        """The nodes to which a client with a subscription is connected."""
        at = {client.node for client in self._clients.values() if client.pushed}
        return tuple(name for name in self.names if name in at)

    async def held_by(self, nodes: Sequence[str]) -> Observation:
        """What each of these nodes holds, as its SNAPSHOT tells; None for a node that is down."""
        up = [name for name in nodes if name in self.up and name not in self._paused]
        held = await asyncio.gather(*map(self._observe, up))
        return {**dict.fromkeys(nodes), **dict(zip(up, held, strict=True))}

    async def shown(self, nodes: Iterable[str]) -> Mapping[str, Lists]:
        """What each of these nodes that is up answers to a query of each service."""
        up = [name for name in nodes if name in self.up]
        return dict(zip(up, await asyncio.gather(*map(self._shown, up)), strict=True))

    def name_of(self, address: str) -> str:
        return next(name for name, server in self.servers.items() if server.address == address)

    def wrong_push(self, expected: Mapping[str, Lists]) -> str | None:
        """Which subscriber at one of these nodes was sent something else last."""
        for name, client in self._clients.items():
            lists = expected.get(client.node)
            for service in client.pushed if lists is not None else ():
                due = lists.get(service, ()) if lists else ()
                if client.pushed[service] != due:
                    told = " and ".join(client.pushed[service]) or "empty"
                    held = " and ".join(due) or "empty"
                    return f"{client.node} told {name} last that {service} is {told} and holds {held}"
        return None

    def client_name(self, client_id: str | None) -> str | None:
        """The name that the run gave to a connection; an id that it never gave out stays as it is."""
        return client_id if client_id is None else self._client_names.get(client_id, client_id)

    # For subclasses

    async def _settle(self) -> None:
        """Until the nodes have nothing left to do now. In real time nobody can tell."""

    async def _started(self, name: str) -> None:
        """A node serves again."""

    async def _left(self, node: str, client_id: str) -> None:
        """Until the node has noticed that the connection is gone. A real one is asked."""

        async def gone() -> bool | None:
            return None if any(replica.client == client_id for replica in await self._replicas(node)) else True

        if node in self.up and await eventually(gone, self.clock, NOTICED_WITHIN_MS) is None:
            name = self.client_name(client_id)
            raise TargetError(f"{node} still holds {name}, {NOTICED_WITHIN_MS} ms after its connection ended")

    def _records(self, journal: TraceJournal, profile: str) -> None:
        """From now on what happens is written there, by the names of this run."""
        self.journal = self.traffic.recording = journal
        journal.client_name = self.client_name
        journal.run_started(self.names[0], profile)

    async def _bring_up(self, name: str, *, until_loaded: bool) -> None:
        if self.journal is not None:
            self.journal.node_started(name, self.names)
        for ends, link in self.links.items():
            if ends[0] == name:
                link.source_back()
        self.traffic.givers[name].clear()
        await self.servers[name].start(until_loaded=until_loaded)
        self.up = tuple(each for each in self.names if each in self.up or each == name)

    # Actions

    async def _perform(self, action: Action) -> None:
        match action:
            case Connect() | Register() | RegisterBatch() | Deregister():
                await self._client_acts(action)
                await self._record_client(action, action.client)
            case Disconnect(client):
                await self._disconnect(client)
            case FallSilent(client) | AnswerAgain(client):
                ends = isinstance(action, AnswerAgain)
                self._clients[client].connection.is_mute = not ends
                if self.journal is not None:
                    self.journal.silence(self._clients[client].node, client, ends=ends)
            case OverHttp():
                await self._over_http(action)
            case Cut() | Heal() | Hold() | Release() | Blackhole() | Delay() | Throttle() | OfRequest():
                await self._fault(action)
            case Crash(node):
                await self._crash(node)
            case Restart(node):
                await self._bring_up(node, until_loaded=False)
                await self._started(node)
            case Pause(node):
                self._paused.add(node)
                self._signal(node, signal.SIGSTOP)
            case Resume(node):
                self._signal(node, signal.SIGCONT)
                self._paused.discard(node)
            case ListMembers(node, members):
                await self.servers[node].change_members([self.servers[member].address for member in members])

    async def _client_acts(self, action: Connect | Register | RegisterBatch | Deregister) -> None:
        match action:
            case Connect(client, node):
                await self._connect(client, node)
            case Register(client, service, instance):
                await self._subscribe(client, service)
                await self._ask(client, "registerInstance", service, instance)
            case RegisterBatch(client, service, instances):
                await self._subscribe(client, service)
                body = batch_request(service, map(read_instance, instances), self.namespace)
                await self._accepted(self._clients[client], "BatchInstanceRequest", body)
            case Deregister(client, service):
                await self._ask(client, "deregisterInstance", service, "10.0.0.1:80")

    async def _connect(self, client: str, name: str) -> None:
        def remember(client_id: str) -> None:
            self._client_names[client_id] = client

        pushed: dict[str, tuple[str, ...]] = {}

        def note(message: Message) -> None:
            if message.type == "NotifySubscriberRequest":
                pushed[message.body["serviceInfo"]["name"]] = read_list(message)

        address = with_offset(self.servers[name].address, SDK_OFFSET)
        connection = await Connection.open(
            address, labels=SDK_LABELS, on_id=remember, on_push=note, transport=self._transport
        )
        self._clients[client] = _Client(name, connection, pushed)

    async def _subscribe(self, client: str, service: str) -> None:
        """Once. The answer is a list as well, and counts as the first that was sent."""
        self._services[service] = None
        subscriber = self._clients[client]
        if service not in subscriber.pushed:
            body = {**service_request(service, self.namespace), "subscribe": True, "clusters": ""}
            reply = await self._accepted(subscriber, "SubscribeServiceRequest", body)
            subscriber.pushed.setdefault(service, read_list(reply))

    async def _disconnect(self, client: str) -> None:
        gone = self._clients.pop(client)
        await gone.connection.close()
        await self._left(gone.node, gone.connection.id)
        if self.journal is not None and self.journal.infers_state:
            self.journal.client_disconnected(gone.node, client)

    async def _ask(self, client: str, what: str, service: str, instance: str) -> None:
        ip, port, metadata = read_instance(instance)
        body = instance_request(what, service, ip, port, metadata, self.namespace)
        await self._accepted(self._clients[client], "InstanceRequest", body)

    async def _accepted(self, client: _Client, type_name: str, body: Mapping[str, object]) -> Message:
        reply = await client.connection.ask(type_name, body)
        if not reply.succeeded:
            name = self.client_name(client.connection.id)
            raise RefusedError(f"{client.node} answers {type_name} of {name} with {reply.type}: {reply.body}")
        return reply

    async def _over_http(self, action: HttpRequest) -> None:
        self._services[action.service] = None
        ip, port, metadata = read_instance(action.instance)
        client = PlayedHttpClient(self.servers[action.node].address, ip, port)
        match action:
            case HttpRegister():
                reply = await client.register(action.service, metadata)
            case HttpDeregister():
                reply = await client.deregister(action.service)
            case HttpBeat():
                reply = await client.beat(action.service, metadata)
        if reply.status != 200:
            raise RefusedError(f"{action.node} answers '{action}' with {reply}")

    async def _fault(self, action: Cut | Heal | Hold | Release | Blackhole | Delay | Throttle | OfRequest) -> None:
        link = self.links[action.source, action.target]
        match action:
            case Cut():
                link.cut()
            case Hold(distro=distro):
                link.hold(distro=distro)
            case Heal():
                link.heal()
            case Release():
                link.release()
            case Blackhole():
                link.blackhole()
            case Delay(ms=ms):
                link.delay(ms)
            case Throttle(ms=ms):
                link.throttle(ms)
            case Fault(held=False):
                link.arm(Fate(action.verb), action.operation, self._client_id(action.client))
            case OfRequest():
                await self._decide(link, action)

    async def _decide(self, link: Link, action: OfRequest) -> None:
        """In real time the request may still be on its way to the link."""
        client = self._client_id(action.client)

        async def decided() -> bool | None:
            if isinstance(action, Reply):
                return link.reply(action.operation, client) or None
            return link.decide(Fate(action.verb), action.operation, client) or None

        if await eventually(decided, self.clock, 0) is None:
            raise TargetError(f"'{action}': no such message waits on the link")

    async def _crash(self, name: str) -> None:
        for (source, target), link in self.links.items():
            if source == name:
                link.source_gone()
            elif target == name:
                link.target_gone()
        if self.journal is not None:
            self.journal.node_stopped(name, "crash")
        if name in self._probes:
            await self._probes.pop(name).close()
        self._paused.discard(name)
        self.up = tuple(each for each in self.up if each != name)
        await self.servers[name].stop()
        for client in [client for client, at in self._clients.items() if at.node == name]:
            await self._clients.pop(client).connection.close()

    def _signal(self, name: str, number: int) -> None:
        pid = self.servers[name].pid
        if pid is None:
            raise TargetError(f"{name} has ended")
        os.killpg(pid, number)

    def _client_id(self, name: str | None) -> str | None:
        return next((client_id for client_id, known in self._client_names.items() if known == name), name)

    # Reading

    async def _probe(self, name: str) -> Connection:
        if name not in self._probes:
            address = with_offset(self.servers[name].address, CLUSTER_OFFSET)
            self._probes[name] = await Connection.open(
                address, labels=CLUSTER_LABELS, transport=self._transport, headers=self._member_headers
            )
        return self._probes[name]

    async def _observe(self, name: str) -> Mapping[str, View]:
        payload = await self._snapshot(name)
        answered, held = self._snapshots.get(name, (b"", {}))
        if payload.body.value == answered:
            return held
        reply = decode(payload)
        held = self._by_name(await self._read(name, reply))
        if outcome_of(reply) is Outcome.FAIL:
            return held  # what it holds may change while it refuses in the same words
        self._snapshots[name] = payload.body.value, held
        return held

    async def _snapshot(self, name: str) -> Payload:
        asked = encode(DISTRO_REQUEST, distro_request("SNAPSHOT"), headers=self._member_headers, client_ip="127.0.0.1")
        return await (await self._probe(name)).call(asked)

    async def _replicas(self, name: str) -> tuple[Replica, ...]:
        """What the node holds, unnamed. Raises TargetError when it cannot be read."""
        try:
            return await self._read(name, decode(await self._snapshot(name)))
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{name} cannot be read: {error.details()}; is the node up?") from error

    async def _read(self, name: str, reply: Message) -> tuple[Replica, ...]:
        """Of its answer to SNAPSHOT; a node that has not loaded yet refuses it, and is asked for each client."""
        if outcome_of(reply) is Outcome.FAIL:
            return await self._queried(name)
        try:
            return read_snapshot(reply)
        except ValueError as error:
            raise TargetError(f"{name} cannot be read: {error}") from error

    def _by_name(self, replicas: Iterable[Replica]) -> Mapping[str, View]:
        seen = [each for each in replicas if not self.only_own or each.client in self._client_names]
        return {self._client_names.get(r.client, r.client): View(r.revision, content_of(r)) for r in seen}

    async def _queried(self, name: str) -> tuple[Replica, ...]:
        probe = await self._probe(name)
        requests = [distro_request("QUERY", client_id) for client_id in self._client_names]
        answers = [read_query(await probe.ask("DistroDataRequest", request)) for request in requests]
        return tuple(answer for answer in answers if answer is not None)

    async def _shown(self, name: str) -> Lists:
        lists = await asyncio.gather(*(self._list(name, service) for service in self._services))
        return dict(zip(self._services, lists, strict=True))

    async def _list(self, name: str, service: str) -> tuple[str, ...]:
        body = {**service_request(service, self.namespace), "cluster": "", "healthyOnly": False, "udpPort": 0}
        return read_list(await (await self._probe(name)).ask("ServiceQueryRequest", body))

    # Recording of nodes that say nothing themselves

    async def _record_client(self, action: Action, client: str) -> None:
        """What the owner holds of its client after an operation; its syncs leave later."""
        journal, at = self.journal, self._clients[client]
        if journal is None or not journal.infers_state:
            return
        held = next((r for r in await self._replicas(at.node) if r.client == at.connection.id), None)
        if held is None:
            raise TargetError(f"{at.node} does not hold its own client {client}")
        write = journal.client_connected if isinstance(action, Connect) else journal.client_changed
        write(at.node, client, held.revision, held.digest)

    async def _record_held(self, *, only_news: bool = False) -> None:
        """Every node read into the trace."""
        journal = self.journal
        if journal is None or not journal.infers_state:
            return
        for name in self.up:
            await journal.probe(name, partial(self._replicas, name), only_news=only_news)


def read_instance(text: str) -> tuple[str, int, dict[str, str]]:
    """`ip:port key=value …` as ip, port and metadata."""
    address, *words = text.split()
    ip, _, port = address.rpartition(":")
    return ip, int(port), dict(word.split("=", 1) for word in words)


def content_of(replica: Replica) -> tuple[tuple[str, str], ...]:
    """A replica's content in the words of the model: sorted pairs of service and instance text."""
    return tuple(sorted((p.service, instance_text(p.ip, p.port, p.attributes)) for p in replica.published))
