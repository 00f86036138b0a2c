"""Several reference nodes in this process, with the kit as network, clients and clock.

Everything is said over real gRPC on loopback; only time is virtual, and every directed link between two nodes is a
`Link` of ours. `perform` does one action of the model's vocabulary and returns when nothing is left to do, `observe`
asks each node for a SNAPSHOT, or where it gives none yet about each client, as any peer may. Lockstep and replay both
stand on this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from distro_conformance.drivers.service_lists import Lists, instance_text, read_list
from distro_conformance.node.player import RefusedError, instance_request, service_request
from distro_conformance.wire.connection import CLUSTER_LABELS, SDK_LABELS, Connection
from distro_conformance.wire.links import Journal, Link
from distro_conformance.wire.messages import distro_request, outcome_of, read_query, read_snapshot
from distro_impl import Node, NodeConfig, NodeEvent, Profile, VirtualClock
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.clock import View
from distro_model.possible import Observation
from distro_protos import Message, decode, encode
from distro_traces.content import Replica
from distro_traces.event import Outcome

_SNAPSHOT = encode("DistroDataRequest", distro_request("SNAPSHOT"), client_ip="127.0.0.1")


@dataclass
class _Client:
    """A connected client. It subscribes to every service in which it registers; `pushed` is what it was last told."""

    node: str
    connection: Connection
    pushed: dict[str, tuple[str, ...]]


@dataclass
class EmbeddedCluster:
    """`names` in ascending order; the node's ports ascend with them, so that both sort alike. All nodes start down."""

    names: Sequence[str]
    profile: Profile
    journal: Journal
    clock: VirtualClock
    ports: Sequence[int]
    observer: Callable[[NodeEvent], None] | None = None
    links: dict[tuple[str, str], Link] = field(init=False)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _clients: dict[str, _Client] = field(default_factory=dict)
    _client_names: dict[str, str] = field(default_factory=dict)
    _probes: dict[str, Connection] = field(default_factory=dict)
    _snapshots: dict[str, tuple[bytes, Mapping[str, View]]] = field(default_factory=dict)  # the last ones, as read
    _services: dict[str, None] = field(default_factory=dict)  # those in which anybody ever registered, in order

    def __post_init__(self) -> None:
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(self.names, self.ports, strict=True)}
        self.names_by_address = {address: name for name, address in self.addresses.items()}
        self.links = {
            (source, target): Link(source, target, self.journal, self.clock)
            for source in self.names
            for target in self.names
            if source != target
        }

    async def perform(self, action: Action) -> None:
        """Do it, and return when the nodes have nothing left to do. Raises RefusedError when a node refuses."""
        match action:
            case Advance(ms):
                await self.clock.advance(ms)
                return
            case Connect(client, node):
                await self._connect(client, node)
            case Register(client, service, instance):
                await self._subscribe(client, service)
                await self._ask(client, "registerInstance", service, instance)
            case Deregister(client, service):
                await self._ask(client, "deregisterInstance", service, "10.0.0.1:80")
            case Disconnect(client):
                await self._disconnect(client)
            case Cut() | Heal() | Hold() | Release() | Drop() | Swallow():
                self._fault(action)
            case Crash(node):
                await self._crash(node)
            case Restart(node):
                await self._start(node)
        await self.clock.settle()

    @property
    def up(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in self._nodes)

    def node_of(self, client: str) -> str:
        return self._clients[client].node

    @property
    def subscribed(self) -> tuple[str, ...]:
        """The nodes to which a client with a subscription is connected."""
        at = {client.node for client in self._clients.values() if client.pushed}
        return tuple(name for name in self.names if name in at)

    async def observe(self, nodes: Sequence[str]) -> Observation:
        """What each of these nodes holds, as its SNAPSHOT tells; None for a node that is down."""
        up = [name for name in nodes if name in self._nodes]
        held = await asyncio.gather(*map(self._observe, up))
        return {**dict.fromkeys(nodes), **dict(zip(up, held, strict=True))}

    async def shown(self, nodes: Iterable[str]) -> Mapping[str, Lists]:
        """What each of these nodes that is up answers to a query of each service."""
        up = [name for name in nodes if name in self._nodes]
        return dict(zip(up, await asyncio.gather(*map(self._shown, up)), strict=True))

    def wrong_push(self, expected: Mapping[str, Lists]) -> str | None:
        """Which subscriber at one of these nodes was told something else last."""
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

    def _client_id(self, name: str | None) -> str | None:
        return next((client_id for client_id, known in self._client_names.items() if known == name), name)

    async def close(self) -> None:
        """Drop every connection and stop every node; safe to call twice."""
        connections = [*self._probes.values(), *(client.connection for client in self._clients.values())]
        await asyncio.gather(*(connection.close() for connection in connections))
        for link in self.links.values():
            link.source_gone()
            link.cut()
        await asyncio.gather(*(node.crash() for node in self._nodes.values()))
        self._probes, self._clients, self._nodes = {}, {}, {}

    async def _start(self, name: str) -> None:
        config = NodeConfig(
            port=self.ports[list(self.names).index(name)],
            members=tuple(self.addresses.values()),
            profile=self.profile.acquainted(),  # the model begins with members that are connected
            serves_http=False,
        )
        for peer in self.names:
            if peer != name:
                self.links[name, peer].source_back()
        node = Node(config, clock=self.clock, observer=self.observer, links=self._links_of(name))
        await node.start()
        self._nodes[name] = node
        self._probes[name] = await Connection.open(config.cluster_target, labels=CLUSTER_LABELS)

    def _links_of(self, name: str) -> Callable[[str], Link]:
        return lambda peer: self.links[name, self.names_by_address[peer]]

    async def _crash(self, name: str) -> None:
        for (source, target), link in self.links.items():
            if source == name:
                link.source_gone()
            elif target == name:
                link.target_gone()
        await self._probes.pop(name).close()
        await self._nodes.pop(name).crash()
        for client in [client for client, at in self._clients.items() if at.node == name]:
            await self._clients.pop(client).connection.close()

    async def _connect(self, client: str, name: str) -> None:
        def remember(client_id: str) -> None:
            self._client_names[client_id] = client

        pushed: dict[str, tuple[str, ...]] = {}

        def told(message: Message) -> None:
            if message.type == "NotifySubscriberRequest":
                pushed[message.body["serviceInfo"]["name"]] = read_list(message)

        address = self._nodes[name].config.sdk_target
        connection = await Connection.open(address, labels=SDK_LABELS, on_id=remember, on_push=told)
        self._clients[client] = _Client(name, connection, pushed)

    async def _subscribe(self, client: str, service: str) -> None:
        """Once. The answer is a list as well, and counts as the first thing told."""
        self._services[service] = None
        subscriber = self._clients[client]
        if service not in subscriber.pushed:
            body = {**service_request(service), "subscribe": True, "clusters": ""}
            reply = await subscriber.connection.ask("SubscribeServiceRequest", body)
            if not reply.succeeded:
                raise RefusedError(f"{subscriber.node} answers a subscription of {client} with {reply.body}")
            subscriber.pushed.setdefault(service, read_list(reply))

    async def _disconnect(self, client: str) -> None:
        gone = self._clients.pop(client)
        await gone.connection.close()

    async def _ask(self, client: str, what: str, service: str, instance: str) -> None:
        address, *words = instance.split()
        ip, _, port = address.rpartition(":")
        body = instance_request(what, service, ip, int(port), dict(word.split("=", 1) for word in words))
        reply = await self._clients[client].connection.ask("InstanceRequest", body)
        if not reply.succeeded:
            raise RefusedError(
                f"{self._clients[client].node} answers {what} of {client} with {reply.type}: {reply.body}"
            )

    def _fault(self, action: Cut | Heal | Hold | Release | Drop | Swallow) -> None:
        link = self.links[action.source, action.target]
        match action:
            case Cut():
                link.cut()
            case Hold():
                link.hold()
            case Heal():
                link.heal()
            case Release():
                link.release()
            case Drop():
                link.drop(action.operation, self._client_id(action.client))
            case Swallow():
                link.swallow(action.operation, self._client_id(action.client))

    async def _observe(self, name: str) -> Mapping[str, View]:
        payload = await self._probes[name].call(_SNAPSHOT)
        answered, held = self._snapshots.get(name, (b"", {}))
        if payload.body.value == answered:
            return held
        reply = decode(payload)
        if outcome_of(reply) is Outcome.FAIL:  # it has not loaded yet, and says so
            return self._by_name(await self._queried(name))
        held = self._by_name(read_snapshot(reply))
        self._snapshots[name] = payload.body.value, held
        return held

    def _by_name(self, replicas: Iterable[Replica]) -> Mapping[str, View]:
        return {self._client_names.get(r.client, r.client): View(r.revision, content_of(r)) for r in replicas}

    async def _queried(self, name: str) -> tuple[Replica, ...]:
        requests = [distro_request("QUERY", client_id) for client_id in self._client_names]
        answers = [read_query(await self._probes[name].ask("DistroDataRequest", request)) for request in requests]
        return tuple(answer for answer in answers if answer is not None)

    async def _shown(self, name: str) -> Lists:
        lists = await asyncio.gather(*(self._list(name, service) for service in self._services))
        return dict(zip(self._services, lists, strict=True))

    async def _list(self, name: str, service: str) -> tuple[str, ...]:
        body = {**service_request(service), "cluster": "", "healthyOnly": False, "udpPort": 0}
        return read_list(await self._probes[name].ask("ServiceQueryRequest", body))


def content_of(replica: Replica) -> tuple[tuple[str, str], ...]:
    """A replica's content in the words of the model: sorted pairs of service and instance text."""
    return tuple(sorted((p.service, instance_text(p.ip, p.port, p.attributes)) for p in replica.published))
