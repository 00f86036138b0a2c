"""Reads the clients that nodes hold with the requests of a member: SNAPSHOT, QUERY of a client, list of a service.

The kit has a connection of its own to each node, which it opens at the first request. Errors and answers are never
confused: if the kit or the network fails the answer is unknown (TargetError), and if a node refuses a request that it
must answer, the refusal is reported (RefusedError).
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
    """`address_of`: the cluster port of a node; `by_name`: the clients under the names that the run gives them;
    `known`: the ids of the clients that the run has made."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        by_name: Callable[[Iterable[Replica]], Views],
        known: Collection[str],
    ) -> None:
        self._address_of, self._by_name, self._known = address_of, by_name, known
        self.transport: Transport = TRANSPORT
        self.headers: Mapping[str, str] = NO_HEADERS
        """The headers of each request, as members send them."""
        self.namespace = NAMESPACE
        self._connections: dict[str, Connection] = {}
        self._turn = asyncio.Lock()  # several concurrent readers share one connection
        self._snapshots: dict[str, tuple[bytes, Views]] = {}  # by node the last answer, and the clients in it

    async def held(self, node: str) -> Views:
        """The clients that the node holds, by name. An answer equal to the last one is not decoded again. Raises
        TargetError."""
        payload = await self._snapshot(node)
        answered, held = self._snapshots.get(node, (b"", {}))
        if payload.body.value == answered:
            return held
        reply = decode(payload)
        held = self._by_name(await self._read(node, reply))
        if outcome_of(reply) is Outcome.FAIL:
            return held  # its clients may change while the refusal stays the same
        self._snapshots[node] = payload.body.value, held
        return held

    async def replicas(self, node: str) -> tuple[Replica, ...]:
        """The clients that the node holds, by id."""
        return await self._read(node, decode(await self._snapshot(node)))

    async def listed(self, node: str, service: str) -> tuple[str, ...]:
        """The list that the node returns. Raises RefusedError, TargetError."""
        asked = {**query_request(service), "namespace": self.namespace}
        reply = decode(await self._ask(node, "ServiceQueryRequest", asked))
        if not reply.succeeded:
            raise RefusedError(f"{node} answers a query of {service} with {reply}")
        return read_list(read_hosts(reply))

    async def lists(self, node: str, services: Iterable[str]) -> Lists:
        return {service: await self.listed(node, service) for service in services}

    async def leave(self, node: str) -> None:
        """Close the connection to a node that has stopped or is about to stop."""
        if node in self._connections:
            await self._connections.pop(node).close()

    async def close(self) -> None:
        await asyncio.gather(*map(self.leave, tuple(self._connections)))

    def forget(self) -> None:
        """Drop all stored answers, since the names now belong to other clients."""
        self._snapshots = {}

    async def _snapshot(self, node: str) -> Payload:
        return await self._ask(node, DISTRO_REQUEST, distro_request("SNAPSHOT"))

    async def _read(self, node: str, reply: Message) -> tuple[Replica, ...]:
        """The clients in the answer to SNAPSHOT. A node that has not loaded yet refuses it; then each client is read by
        a QUERY."""
        if outcome_of(reply) is Outcome.FAIL:
            return await self._queried(node)
        try:
            return read_snapshot(reply)
        except ValueError as error:
            raise UnreadableError(
                f"{node} does not return its clients, which the kit reads from its answer to SNAPSHOT"
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
        """Send a request. If the node has closed the connection, open a new one and send the request again."""
        asked = encode(type_name, body, headers=self.headers, client_ip="127.0.0.1")
        try:
            connection = await self._connection(node)
            reply = await connection.call(asked)
            if is_unregistered(reply):
                reply = await (await self._connection(node, unless=connection)).call(asked)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{node} cannot be read: {error.details()}; is the node up?") from error
        if is_unregistered(reply):
            raise TargetError(f"{node} does not know the connection of the request, although it has accepted it")
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
