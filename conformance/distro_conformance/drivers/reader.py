"""Reads what nodes hold with the requests of a member: a SNAPSHOT, a QUERY of each client, the list of a service.

Each node is asked on a connection of the kit's own, which is opened when it is needed. An error is never read as an
answer: a failure of the kit or the wire leaves it unknown (TargetError), and a node that refuses a request that it has
to answer is reported as refusing it (RefusedError).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

import grpc.aio

from distro_conformance.drivers.cluster import Lists
from distro_conformance.drivers.service_lists import read_list
from distro_conformance.node.player import NAMESPACE, RefusedError, query_request, read_hosts
from distro_conformance.targets.direct import NO_HEADERS
from distro_conformance.verdict import TargetError, UnreadableError
from distro_conformance.wire.connection import CLUSTER_LABELS, TRANSPORT, UNREGISTERED, Connection
from distro_conformance.wire.messages import (
    DISTRO_REQUEST,
    distro_request,
    outcome_of,
    read_query,
    read_snapshot,
)
from distro_impl.transport.transport import Transport
from distro_model.clock.cluster import View
from distro_protos import Message, Payload, decode, encode
from distro_traces.content import Replica
from distro_traces.event import Outcome

Views = Mapping[str, View]


class Reader:
    """`address_of` gives the cluster port of a node; `by_name` calls clients by the names of the run, `known` are the
    ids of those that it has made."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        by_name: Callable[[Iterable[Replica]], Views],
        known: Collection[str],
    ) -> None:
        self._address_of, self._by_name, self._known = address_of, by_name, known
        self.transport: Transport = TRANSPORT
        self.headers: Mapping[str, str] = NO_HEADERS
        """Sent with each request, as members do."""
        self.namespace = NAMESPACE
        self._connections: dict[str, Connection] = {}
        self._turn = asyncio.Lock()  # several concurrent readers share one connection
        self._snapshots: dict[str, tuple[bytes, Views]] = {}  # the last ones, as read

    async def held(self, node: str) -> Views:
        """What the node holds, by name. The same answer is not read twice. Raises TargetError."""
        payload = await self._snapshot(node)
        answered, held = self._snapshots.get(node, (b"", {}))
        if payload.body.value == answered:
            return held
        reply = decode(payload)
        held = self._by_name(await self._read(node, reply))
        if outcome_of(reply) is Outcome.FAIL:
            return held  # what it holds may change while it refuses in the same words
        self._snapshots[node] = payload.body.value, held
        return held

    async def replicas(self, node: str) -> tuple[Replica, ...]:
        """The same, unnamed."""
        return await self._read(node, decode(await self._snapshot(node)))

    async def listed(self, node: str, service: str) -> tuple[str, ...]:
        """The list that the node shows. Raises RefusedError, TargetError."""
        asked = {**query_request(service), "namespace": self.namespace}
        reply = decode(await self._ask(node, "ServiceQueryRequest", asked))
        if not reply.succeeded:
            raise RefusedError(f"{node} answers a query of {service} with {reply}")
        return read_list(read_hosts(reply))

    async def lists(self, node: str, services: Iterable[str]) -> Lists:
        return {service: await self.listed(node, service) for service in services}

    async def leave(self, node: str) -> None:
        """Closes the connection to a node that is gone or about to stop."""
        if node in self._connections:
            await self._connections.pop(node).close()

    async def close(self) -> None:
        await asyncio.gather(*map(self.leave, tuple(self._connections)))

    def forget(self) -> None:
        """Forgets what was read: names now belong to other clients."""
        self._snapshots = {}

    async def _snapshot(self, node: str) -> Payload:
        return await self._ask(node, DISTRO_REQUEST, distro_request("SNAPSHOT"))

    async def _read(self, node: str, reply: Message) -> tuple[Replica, ...]:
        """The clients in its answer to SNAPSHOT; a node that has not loaded yet refuses it and gets a QUERY for each
        client."""
        if outcome_of(reply) is Outcome.FAIL:
            return await self._queried(node)
        try:
            return read_snapshot(reply)
        except ValueError as error:
            raise UnreadableError(
                f"{node} does not say what it holds, which is read from its answer to SNAPSHOT"
                f" (docs/protocol #distro-snapshot): {error}; 'distrocheck test node' does without"
            ) from error

    async def _queried(self, node: str) -> tuple[Replica, ...]:
        found = []
        for client_id in tuple(self._known):
            reply = decode(await self._ask(node, DISTRO_REQUEST, distro_request("QUERY", client_id)))
            try:
                found.append(read_query(reply))
            except ValueError as error:
                raise TargetError(f"{node} cannot be asked for {client_id}: {error}") from error
        return tuple(replica for replica in found if replica is not None)

    async def _ask(self, node: str, type_name: str, body: Mapping[str, object]) -> Payload:
        """Asks on a connection that the node knows, since the node may have ended the previous one."""
        asked = encode(type_name, body, headers=self.headers, client_ip="127.0.0.1")
        try:
            connection = await self._connection(node)
            reply = await connection.call(asked)
            if is_unregistered(reply):
                reply = await (await self._connection(node, unless=connection)).call(asked)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{node} cannot be read: {error.details()}; is the node up?") from error
        if is_unregistered(reply):
            raise TargetError(f"{node} does not know the connection on which it is asked, although it took it")
        return reply

    async def _connection(self, node: str, unless: Connection | None = None) -> Connection:
        """The open connection, or a new one; `unless` is a connection that the node has ended."""
        async with self._turn:
            if unless is not None and self._connections.get(node) is unless:
                await self.leave(node)
            if node not in self._connections:
                self._connections[node] = await Connection.open(
                    self._address_of(node), labels=CLUSTER_LABELS, transport=self.transport, headers=self.headers
                )
            return self._connections[node]


def is_unregistered(reply: Payload) -> bool:
    """Whether the server answers that it does not know the connection of the request."""
    return reply.metadata.type == "ErrorResponse" and decode(reply).body.get("errorCode") == UNREGISTERED
