"""A reader of one live member; reading changes nothing there.

A SNAPSHOT over the cluster port shows every client with revision and full content, on all releases; from 3.x on it may
need the identity of the cluster. Where it is refused, the client list over HTTP (2.2.0 and later) shows the clients and
their published addresses, one call a client, paced. The lists of services are also requested, as by a consumer
(`lists.py`). Source: docs/protocol #member-auth, #distro-envelope, #http-admin.
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
"""The largest number of calls a second to one member about single clients or services, of which it has thousands."""

_CLIENT_PATHS = ("/nacos/v2/ns/client", "/nacos/v3/admin/ns/client")


@dataclass(frozen=True, slots=True)
class Holding:
    """A client on a member. `addresses` has all that HTTP shows, `content` the full state, both as canonical text;
    `digest` is of `content`."""

    addresses: str
    content: str | None = None
    digest: str | None = None
    revision: int | None = None
    published: tuple[str, ...] = field(default=(), compare=False)  # for people
    services: frozenset[ServiceName] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of a member. `error`: why there is none."""

    member: str
    source: str = ""  # snapshot, http
    clients: Mapping[str, Holding] = field(default_factory=dict)
    release: str | None = None
    peers: Mapping[str, str] = field(default_factory=dict)  # address to state, as this member sees it
    error: str | None = None
    lists: Mapping[ServiceName, tuple[str, ...]] = field(default_factory=dict)
    """The lists of the requested services, as a consumer sees them."""

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
        """Read its present state. Never raises: a member that does not answer is a finding."""
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
        """The lists of these services, over gRPC or, where that is refused, over HTTP; without the services that it
        does not show."""
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
        """All services that it lists there; None if it does not answer."""
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
        """Raises TargetError when this release has no such list, or does not show it to the kit."""
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
    """From a row of 2.x or 3.x, which name the same fields differently."""
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
    """The part that HTTP shows too: no health, no metadata."""
    return canonical(Published(p.namespace, p.group, p.service, p.ip, p.port, p.cluster) for p in published)


def _shown(published: tuple[Published, ...]) -> tuple[str, ...]:
    return tuple(
        f"{p.group}@@{p.service} {p.ip}:{p.port}{'' if p.healthy else ' unhealthy'}" for p in sorted(published)
    )


NOTHING = Holding(canonical(()), canonical(()), NOTHING_PUBLISHED)
"""A client that publishes nothing is in no subscriber's view, like a client that does not exist."""
