"""A reader of one running member. Reading changes nothing on the member.

On all releases a SNAPSHOT over the cluster port returns every client with its revision and full content; since 3.0 it
may need the identity of the cluster. If it is refused, the client list over HTTP (2.2.0 and later) has the clients, and
one call for each client, at a limited rate, returns its published addresses. The lists of services are also requested,
as a consumer does (`lists.py`). Source: docs/protocol #member-auth, #distro-envelope, #http-admin.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

import aiohttp
import grpc.aio

from distro_conformance.audit.lists import (
    LIST_PATHS,
    NOT_NAMED,
    PAGE,
    ServiceName,
    names_query,
    shown_instances,
)
from distro_conformance.recording.journal import read_state
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.nacos import NODES_PATHS
from distro_conformance.targets.ports import CLUSTER_OFFSET, with_offset
from distro_conformance.verdict import TargetError, UsageError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_protos.addresses import AddressError, parse_address
from distro_traces.content import NOTHING_PUBLISHED, Published, canonical

HTTP_TIMEOUT_S = 5.0
CALLS_PER_SECOND = 50
"""The largest rate of calls to one member about single clients or services, since it may have thousands of them."""

_CLIENT_PATHS = ("/nacos/v2/ns/client", "/nacos/v3/admin/ns/client")


@dataclass(frozen=True, slots=True)
class Holding:
    """A client on a member, as canonical text. `addresses`: the part that HTTP returns, too; `content`: the full state;
    `digest`: the digest of `content`."""

    addresses: str
    content: str | None = None
    digest: str | None = None
    revision: int | None = None
    published: tuple[str, ...] = field(default=(), compare=False)  # for printing
    services: frozenset[ServiceName] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of a member. `error`: the reason if there is none."""

    member: str
    source: str = ""  # snapshot, http
    clients: Mapping[str, Holding] = field(default_factory=dict)
    release: str | None = None
    peers: Mapping[str, str] = field(default_factory=dict)  # by address the state, in the view of this member
    error: str | None = None
    lists: Mapping[ServiceName, tuple[str, ...]] = field(default_factory=dict)
    """The lists of the requested services, as a consumer gets them."""

    @property
    def services(self) -> frozenset[ServiceName]:
        """The services in which its clients publish instances."""
        return frozenset().union(*(holding.services for holding in self.clients.values()))


class Member:
    """A member by its address host:P. Use as an async context manager."""

    def __init__(self, address: str, credentials: Credentials = NO_CREDENTIALS) -> None:
        """Raises UsageError for a text that is no address."""
        try:
            self.address = str(parse_address(address))
        except AddressError as error:
            raise UsageError(f"--member {address}: {error}") from error
        self._credentials = credentials
        self._connection: Connection | None = None
        self._headers: Mapping[str, str] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=HTTP_TIMEOUT_S)
        context = self._credentials.tls.context
        connector = aiohttp.TCPConnector(ssl=True if context is None else context)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._disconnect()
        if self._session is not None:
            await self._session.close()

    async def read(self) -> Reading:
        """Read the current state of the member. Never raises, since a member that does not answer is a finding."""
        release, peers = await self._nodes()
        try:
            clients = await self._snapshot()
            return Reading(self.address, "snapshot", clients, release, peers)
        except TargetError as refused:
            await self._disconnect()
            with contextlib.suppress(TargetError):
                return Reading(self.address, "http", await self._client_list(), release, peers)
            return Reading(self.address, release=release, peers=peers, error=str(refused))

    async def read_lists(self, services: Sequence[ServiceName]) -> dict[ServiceName, tuple[str, ...]]:
        """The lists of these services, over gRPC, or over HTTP if gRPC is refused. Services for which the member
        returns no list are left out."""
        found = {}
        named = {group: await self._names(*group) for group in {(each.namespace, each.group) for each in services}}
        for service in services:
            await asyncio.sleep(1 / CALLS_PER_SECOND)
            hosts = await self._hosts(service)
            if hosts is None:
                continue
            names = named[service.namespace, service.group]
            is_named = names is None or service.name in names or not hosts
            found[service] = (*shown_instances(hosts), *(() if is_named else (NOT_NAMED,)))
        return found

    async def _names(self, namespace: str, group: str) -> frozenset[str] | None:
        """All services in that namespace and group; None if the member does not answer."""
        names: set[str] = set()
        for page in count(1):
            reply = await self._queried("ServiceListRequest", names_query(namespace, group, page))
            if reply is None:
                return None
            found = [str(name) for name in reply.get("serviceNames") or ()]
            names.update(name.rpartition("@@")[2] for name in found)
            if len(found) < PAGE:
                return frozenset(names)
        raise AssertionError("count has no end")

    async def _hosts(self, service: ServiceName) -> list[Mapping[str, Any]] | None:
        reply = await self._queried("ServiceQueryRequest", service.query())
        if reply is not None:
            return (reply.get("serviceInfo") or {}).get("hosts") or []
        for path in LIST_PATHS:
            listed = await self._get(path, **service.parameters())
            hosts = listed.get("hosts") if isinstance(listed, Mapping) else listed
            if isinstance(hosts, list):
                return hosts
        return None

    async def _queried(self, type_name: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer over gRPC; None if that is refused or not available."""
        if self._connection is None:
            return None
        try:
            reply = await self._connection.ask(type_name, body, headers=self._credentials.headers)
        except grpc.aio.AioRpcError:
            return None
        return reply.body if reply.succeeded else None

    async def _snapshot(self) -> dict[str, Holding]:
        if self._connection is None:
            cluster_port = with_offset(self.address, CLUSTER_OFFSET)
            self._connection = await Connection.open(
                cluster_port,
                labels=CLUSTER_LABELS,
                headers=self._credentials.headers,
                tls=self._credentials.tls.of("grpc"),
            )
        replicas = await read_state(self._connection, headers=self._credentials.headers)
        return {
            replica.client: Holding(
                _addresses(replica.published),
                canonical(replica.published),
                replica.digest,
                replica.revision,
                _shown(replica.published),
                _services(replica.published),
            )
            for replica in replicas
        }

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _client_list(self) -> dict[str, Holding]:
        """Raises TargetError if this release has no such list, or does not return it to the kit."""
        for path in _CLIENT_PATHS:
            listed = await self._get(f"{path}/list")
            if isinstance(listed, list):
                return {client: await self._published(path, client) for client in map(str, listed)}
        raise TargetError(f"{self.address} shows no list of clients over HTTP")

    async def _published(self, path: str, client: str) -> Holding:
        await asyncio.sleep(1 / CALLS_PER_SECOND)
        rows = await self._get(f"{path}/publish/list", clientId=client)
        published = tuple(_published_row(row) for row in rows or () if isinstance(row, Mapping))
        return Holding(_addresses(published), published=_shown(published), services=_services(published))

    async def _nodes(self) -> tuple[str | None, dict[str, str]]:
        """The release of this member and its view of all members' states, as far as it reports them."""
        for path in NODES_PATHS:
            listed = await self._get(path)
            if isinstance(listed, list):
                rows = [row for row in listed if isinstance(row, Mapping)]
                states = {str(row.get("address")): str(row.get("state")) for row in rows}
                own = next((row for row in rows if row.get("address") == self.address), {})
                return (own.get("extendInfo") or {}).get("version"), states
        return None, {}

    async def _get(self, path: str, **parameters: str) -> Any:
        """The `data` of the answer; None when there is none."""
        if self._headers is None:
            self._headers = await asyncio.to_thread(self._credentials.client_headers, self.address)
        assert self._session is not None
        url = self._credentials.tls.url(self.address, path)
        try:
            async with self._session.get(url, params=parameters, headers=self._headers) as response:
                body = await response.json(content_type=None) if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        return body.get("data") if isinstance(body, Mapping) and "data" in body else body


def _published_row(row: Mapping[str, Any]) -> Published:
    """From a row of 2.x or of 3.x, which have different names for the same fields."""
    instance = row.get("registeredInstance") or row.get("publisherInfo") or {}
    return Published(
        str(row.get("namespace") or row.get("namespaceId") or "public"),
        str(row.get("group") or row.get("groupName") or ""),
        str(row.get("serviceName") or ""),
        str(instance.get("ip") or ""),
        int(instance.get("port") or 0),
        str(instance.get("cluster") or instance.get("clusterName") or "DEFAULT"),
    )


def _services(published: tuple[Published, ...]) -> frozenset[ServiceName]:
    return frozenset(ServiceName(p.namespace, p.group, p.service) for p in published)


def _addresses(published: tuple[Published, ...]) -> str:
    """The part that HTTP returns, too: without health and metadata."""
    return canonical(Published(p.namespace, p.group, p.service, p.ip, p.port, p.cluster) for p in published)


def _shown(published: tuple[Published, ...]) -> tuple[str, ...]:
    return tuple(
        f"{p.group}@@{p.service} {p.ip}:{p.port}{'' if p.healthy else ' unhealthy'}" for p in sorted(published)
    )


NOTHING = Holding(canonical(()), canonical(()), NOTHING_PUBLISHED)
"""Subscribers cannot distinguish a client that publishes nothing from one that does not exist."""
