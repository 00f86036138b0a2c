"""The clients that a run has connected to the nodes, by the names that it gave them: their requests and pushes.

Every client subscribes to each service in which it registers, so that pushes can be held against what its node holds.
The names of clients that are gone stay known, since nodes still send requests about them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from distro_conformance.drivers.cluster import Lists
from distro_conformance.drivers.service_lists import as_text, read_list
from distro_conformance.node.answers import ClientAnswer, answer_over_grpc
from distro_conformance.node.player import NAMESPACE, RefusedError, batch_request, instance_request, service_request
from distro_conformance.targets.direct import NO_HEADERS
from distro_conformance.wire.connection import SDK_LABELS, TRANSPORT, Connection
from distro_impl.transport.transport import Transport
from distro_model.actions import Deregister, Register, RegisterBatch
from distro_protos import Json, Message
from distro_protos.addresses import split_address

ANY_INSTANCE = "10.0.0.1:80"
"""A deregistration names an instance, which servers ignore."""
SIGN_OF_LIFE_S = 5.0
"""The interval of SDKs; a server sends detections to silent clients after 20 s, and 2.3.2 was seen to expel one that
answered
(docs/real-servers.md#a-played-member)."""


@dataclass
class ConnectedClient:
    """`pushed` holds the last push of each service that it subscribes to."""

    name: str
    node: str
    connection: Connection
    pushed: dict[str, tuple[str, ...]]


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
        return {client.node for client in self.now.values() if client.pushed and not client.connection.is_closed}

    # Actions

    async def connect(self, name: str, node: str) -> None:
        """Raises TargetError."""

        def remember(client_id: str) -> None:
            self.names[client_id] = name

        pushed: dict[str, tuple[str, ...]] = {}

        def note(message: Message) -> None:
            if message.type == "NotifySubscriberRequest":
                pushed[message.body["serviceInfo"]["name"]] = read_list(message)

        connection = await Connection.open(
            self._address_of(node),
            labels=SDK_LABELS,
            on_id=remember,
            on_push=note,
            transport=self.transport,
            headers=self.headers,
        )
        connection.namespace = self.namespace
        self.now[name] = ConnectedClient(name, node, connection, pushed)

    async def act(self, action: Register | RegisterBatch | Deregister) -> ClientAnswer:
        """Raises RefusedError."""
        if not isinstance(action, Deregister):
            await self.subscribe(action.client, action.service)
        return answer_over_grpc(await self._accepted(action.client, *self.request_of(action)))

    def request_of(self, action: Register | RegisterBatch | Deregister) -> tuple[str, Json]:
        """Type and body of the request for the action."""
        match action:
            case Register(_, service, instance):
                kind = "registerInstance"
            case RegisterBatch(_, service, instances):
                return "BatchInstanceRequest", batch_request(service, map(read_instance, instances))
            case Deregister(_, service, named):
                kind, instance = "deregisterInstance", named or ANY_INSTANCE
        return "InstanceRequest", instance_request(kind, service, *read_instance(instance))

    async def subscribe(self, name: str, service: str) -> None:
        """Subscribes once. The answer is a list too, and counts as the first push. Raises RefusedError."""
        self.services[service] = None
        pushed = self.now[name].pushed
        if service not in pushed:
            body = {**service_request(service), "subscribe": True, "clusters": ""}
            reply = await self._accepted(name, "SubscribeServiceRequest", body)
            pushed.setdefault(service, read_list(reply))

    async def stay(self, paused: Collection[str] = ()) -> None:
        """Give signs of life again and again, for as long as this is not cancelled."""
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_S)
            await self.give_signs_of_life(paused)

    async def give_signs_of_life(self, paused: Collection[str] = ()) -> None:
        """As SDKs do: a busy server removes some clients although they answer its detection (docs/protocol
        #ejector-answer). Clients of a paused node send nothing; a client that leaves meanwhile affects no other one."""
        here = (each.connection for each in self.now.values() if each.node not in paused)
        await asyncio.gather(*map(_sign_of_life, here), return_exceptions=True)

    def idle_for(self, ms: int) -> tuple[str, ...]:
        """The connected clients from which a server may at least once have received nothing for this time."""
        connected = ((name, each.connection) for name, each in self.now.items())
        return tuple(name for name, each in connected if each.longest_idle_ms >= ms)

    async def leave(self, name: str) -> ConnectedClient:
        gone = self.now.pop(name)
        await gone.connection.close()
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

    async def _accepted(self, name: str, type_name: str, body: Mapping[str, object]) -> Message:
        client = self.now[name]
        reply = await client.connection.ask(type_name, body)
        if not reply.succeeded:
            message = f"{client.node} answers {type_name} of {name} with {reply}"
            raise RefusedError(message, answer_over_grpc(reply))
        return reply

    # Pushes

    def wrong_push(self, expected: Mapping[str, Lists], without: Collection[str] = ()) -> str | None:
        """The first subscriber at one of these nodes whose last push differs from what the node holds; `without` these.

        Where a subscriber does not acknowledge, retries to it delay the next push to all.
        """
        connected = [client for client in self.now.values() if not client.connection.is_closed]
        put_off = {client.node for client in connected if client.connection.is_mute}
        for client in (each for each in connected if each.name not in without):
            lists = None if client.node in put_off else expected.get(client.node)
            for service in client.pushed if lists is not None else ():
                due = lists.get(service, ()) if lists else ()
                if client.pushed[service] != due:
                    pushed = (
                        f"{client.node} last pushed {service} to {client.name} as {as_text(client.pushed[service])}"
                    )
                    return f"{pushed} and holds {as_text(due)}"
        return None


async def _sign_of_life(connection: Connection) -> None:
    """Raises nothing: the checks find a client that is unreachable."""
    if not connection.is_mute and not connection.is_closed:
        await connection.check_health()


def read_instance(text: str) -> tuple[str, int, dict[str, str]]:
    """`ip:port key=value …` as ip, port and metadata, its cluster among them."""
    address, *words = text.split()
    ip, port = split_address(address)
    return ip, int(port), dict(word.split("=", 1) for word in words)
