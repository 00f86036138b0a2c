"""The clients that a run has connected to the nodes, by the names that it gave them: their requests and pushes.

Every client subscribes to each service in which it registers, so that pushes can be held against what its node holds.
The names of clients that are gone stay known, since nodes still send requests about them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from distro_conformance.drivers.cluster import Lists
from distro_conformance.drivers.service_lists import as_text, read_list
from distro_conformance.node.player import NAMESPACE, PUSH, ClientAnswer, Instance, PlayedClient, read_hosts
from distro_conformance.targets.direct import NO_HEADERS
from distro_conformance.wire.connection import SDK_LABELS, TRANSPORT, OnPush
from distro_impl.transport.transport import Channel, Transport
from distro_model.actions import Deregister, Register, RegisterBatch
from distro_protos import Message
from distro_protos.addresses import split_address

ANY_INSTANCE = "10.0.0.1:80"
"""A deregistration names an instance, which servers ignore."""
KEEP_ALIVE_S = 5.0
"""The interval of SDKs; a server sends detections to silent clients after 20 s, and 2.3.2 was seen to expel one that
answered
(docs/real-servers.md#a-played-member)."""


class ConnectedClient(PlayedClient):
    """A client that remembers lists instead of pushes."""

    def __init__(
        self, address: str, channel: Channel, on_push: OnPush | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(address, channel, on_push or self._note, headers)
        self.lists: dict[str, tuple[str, ...]] = {}
        """The last list of each service that it subscribes to: the answer to its subscription, then pushes."""

    def _note(self, message: Message) -> None:
        if message.type == PUSH:
            self.lists[message.body["serviceInfo"]["name"]] = read_list(read_hosts(message))


class ConnectedClients:
    """`address_of` gives the SDK port of a node."""

    def __init__(self, address_of: Callable[[str], str]) -> None:
        self._address_of = address_of
        self.transport: Transport = TRANSPORT
        self.namespace = NAMESPACE
        self.headers: Mapping[str, str] = NO_HEADERS
        """The headers of their requests."""
        self.now: dict[str, ConnectedClient] = {}
        """The connected clients."""
        self.names: dict[str, str] = {}
        """Connection id -> name, of all clients so far. The name of a client of the HTTP API is its id."""
        self.services: dict[str, None] = {}
        """The services in which a client ever registered, in order."""

    def name_of(self, client_id: str | None) -> str | None:
        """The name of the client; an unknown id is returned unchanged."""
        return client_id if client_id is None else self.names.get(client_id, client_id)

    def id_of(self, name: str | None) -> str | None:
        return next((client_id for client_id, known in self.names.items() if known == name), name)

    @property
    def subscribed(self) -> set[str]:
        """The nodes to which a client with a subscription is connected."""
        return {client.node for client in self.now.values() if client.lists and not client.is_closed}

    # Actions

    async def connect(self, name: str, node: str) -> None:
        """Raises TargetError."""

        def remember(client_id: str) -> None:
            self.names[client_id] = name

        client = await ConnectedClient.open(
            self._address_of(node), labels=SDK_LABELS, on_id=remember, transport=self.transport, headers=self.headers
        )
        client.namespace, client.name, client.node = self.namespace, name, node
        self.now[name] = client

    async def act(self, action: Register | RegisterBatch | Deregister) -> ClientAnswer:
        """Raises RefusedError."""
        client = self.now[action.client]
        match action:
            case Register(_, service, instance):
                ip, port, metadata = read_instance(instance)
                return await client.register(service, ip, port, **metadata)
            case RegisterBatch(_, service, instances):
                return await client.register_batch(service, map(read_instance, instances))
            case Deregister(_, service, named):
                ip, port, metadata = read_instance(named or ANY_INSTANCE)
                return await client.deregister(service, ip, port, **metadata)

    async def subscribe(self, name: str, service: str) -> None:
        """Subscribes once. The answer is a list too, and counts as the first push. Raises RefusedError."""
        self.services[service] = None
        client = self.now[name]
        if service not in client.lists:
            client.lists.setdefault(service, read_list(await client.subscribe(service)))

    async def keep_alive(self, paused: Collection[str] = ()) -> None:
        """Give signs of life again and again, for as long as this is not cancelled."""
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            await self.send_keep_alives(paused)

    async def send_keep_alives(self, paused: Collection[str] = ()) -> None:
        """As SDKs do: a busy server removes some clients although they answer its detection (docs/protocol
        #ejector-answer). Clients of a paused node send nothing; a client that leaves meanwhile affects no other one."""
        here = (each for each in self.now.values() if each.node not in paused)
        signs = (each.check_health() for each in here if not each.is_silent and not each.is_closed)
        await asyncio.gather(*signs, return_exceptions=True)  # the checks find a client that is unreachable

    def idle_for(self, ms: int) -> tuple[str, ...]:
        """The connected clients from which a server may at least once have received nothing for this time."""
        return tuple(name for name, each in self.now.items() if each.longest_idle_ms >= ms)

    async def leave(self, name: str) -> ConnectedClient:
        gone = self.now.pop(name)
        await gone.close()
        return gone

    async def leave_with(self, node: str) -> None:
        """Disconnects the clients of a node that is gone."""
        for name in [name for name, client in self.now.items() if client.node == node]:
            await self.leave(name)

    async def close(self) -> None:
        await asyncio.gather(*map(self.leave, tuple(self.now)))

    async def forget(self) -> None:
        """All clients leave, and their names become free."""
        await self.close()
        self.names.clear()

    # Pushes

    def wrong_push(self, expected: Mapping[str, Lists], without: Collection[str] = ()) -> str | None:
        """The first subscriber at one of these nodes whose last push differs from what the node holds, of the services
        in these lists; `without` these clients.

        Where a subscriber does not acknowledge, retries to it delay the next push to all.
        """
        connected = [client for client in self.now.values() if not client.is_closed]
        put_off = {client.node for client in connected if client.is_silent}
        for client in (each for each in connected if each.name not in without):
            lists = expected.get(client.node, {}) if client.node not in put_off else {}
            for service, due in lists.items():
                if client.lists.get(service, due) != due:
                    pushed = f"{client.node} last pushed {service} to {client.name} as {as_text(client.lists[service])}"
                    return f"{pushed} and holds {as_text(due)}"
        return None


def read_instance(text: str) -> Instance:
    """`ip:port key=value …` as ip, port and metadata, its cluster among them."""
    address, *words = text.split()
    ip, port = split_address(address)
    return ip, int(port), dict(word.split("=", 1) for word in words)
