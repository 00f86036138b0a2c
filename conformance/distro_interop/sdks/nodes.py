"""Three nodes for the SDKs: reference nodes or real servers, each a process, so that one can be killed.

The kit's own client reads their content, never the SDK under test: an SDK shows its cache.
"""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc.aio

from distro_conformance.node.player import PlayedClient, RefusedError
from distro_conformance.recording.journal import read_state
from distro_conformance.release import STRICT, Span
from distro_conformance.targets.nacos import NacosServer, NacosTarget
from distro_conformance.targets.ports import CLUSTER_OFFSET, SDK_OFFSET, free_base_ports, with_offset
from distro_conformance.targets.process import Description, ProcessServer
from distro_conformance.targets.releases import nacos_release
from distro_conformance.targets.server_process import HOST, running
from distro_conformance.targets.target import Node, OnProgress, Place
from distro_conformance.verdict import TargetError, UsageError, pair
from distro_conformance.waiting import RealClock, eventually
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_impl import profile_named
from distro_impl.settings import configured
from distro_interop.sdks.listing import Listing, listing

EMBEDDED = "embedded"
SIZE = 3
READY_WITHIN_MS = 60_000
_USER = "nacos"
_PASSWORD, _WRONG_PASSWORD = "open-sesame", "open-barley"
_SECRET = base64.b64encode(b"of the tokens, and long enough for one").decode()
_OLD_KEYS = Span(until="2.1.2")
CREDENTIALS = ("--username", _USER, "--password", _PASSWORD)
WRONG_CREDENTIALS = ("--username", _USER, "--password", _WRONG_PASSWORD)


def guard(profile: str | None) -> tuple[str, ...]:
    """Settings of reference nodes that let one user in, with CREDENTIALS, and no other."""
    plugin = "default" if (profile or STRICT) in _OLD_KEYS else "plugin.nacos"
    return (
        "nacos.core.auth.enabled=true",
        f"nacos.core.auth.{plugin}.token.secret.key={_SECRET}",
        f"distrocheck.auth.users={_USER}:{_PASSWORD}",
    )


def _quick_load(profile: str) -> str:
    """Nodes that start together fail to load at first; usually they wait half a minute to try again."""
    old, new = "nacos.naming.clean.loadDataRetryDelayMillis", "nacos.core.protocol.distro.data.load.retryDelayMs"
    return f"{old if profile in _OLD_KEYS else new}=1000"


def require_usable(target: str, profile: str | None, settings: Sequence[str]) -> None:
    """Check the arguments of `started_nodes`. Raises UsageError, and the errors of profiles and settings."""
    kind, _, version = target.partition(":")
    if kind == "nacos":
        nacos_release(version)
        if settings or profile not in (None, f"nacos-{version}"):
            raise UsageError(f"the target {target} behaves as nacos-{version}; it takes no other profile, no settings")
    elif target != EMBEDDED:
        raise UsageError(f"'test sdks' starts its nodes itself: --target embedded or nacos:VERSION, not {target!r}")
    else:
        configured(profile_named(profile or STRICT), dict(pair(setting, "--set") for setting in settings))


@contextlib.asynccontextmanager
async def started_nodes(
    target: str, profile: str | None, settings: Sequence[str], on_progress: OnProgress, *, size: int = SIZE
) -> AsyncIterator[Nodes]:
    """`target` is `embedded` (reference nodes) or `nacos:VERSION`; `settings` are KEY=VALUE for reference nodes.

    Raises what `require_usable` raises, and TargetError.
    """
    require_usable(target, profile, settings)
    ports = sorted(free_base_ports(size))
    servers: Sequence[ProcessServer] | Sequence[NacosServer]
    if target == EMBEDDED:
        profile = profile or STRICT
        servers = _reference_servers(profile, settings, ports)
    else:
        version = target.removeprefix("nacos:")
        profile = f"nacos-{version}"
        place = Place(0, tuple(f"{HOST}:{port}" for port in ports))
        servers = [await NacosTarget(version).node(replace(place, port=port), on_progress) for port in ports]
    async with running(servers), Nodes(servers, profile) as nodes:
        yield nodes


def _reference_servers(profile: str, settings: Sequence[str], ports: Sequence[int]) -> Sequence[ProcessServer]:
    """Reference nodes, served as a user would: `distrocheck serve`."""
    options = [word for setting in (_quick_load(profile), *settings) for word in ("--set", setting)]
    command = (sys.executable, "-m", "distro_conformance", "serve", "--port", "{port}", "--profile", profile, *options)
    described = Description(command, Path.cwd(), ("--member", "{member}"), ready_line='"{address}"')
    return [ProcessServer(described, port, [f"{HOST}:{each}" for each in ports]) for port in ports]


class Nodes:
    """The servers, and the content that each shows to a client and to a member."""

    def __init__(self, servers: Sequence[Node], profile: str) -> None:
        self.servers, self.profile = tuple(servers), profile
        self.addresses = tuple(server.address for server in servers)
        self._clients: dict[int, PlayedClient] = {}
        self.clock = RealClock()

    async def lagging(self, holds: Callable[[int], Awaitable[bool]], within_s: float) -> str | None:
        """The address of the first running node of which it does not hold within the time, each after the one before;
        None when it holds of all."""
        for index in self.running:
            if await eventually(partial(holds, index), self.clock, round(within_s * 1000), step_ms=100) is None:
                return self.addresses[index]
        return None

    @property
    def running(self) -> tuple[int, ...]:
        return tuple(index for index, server in enumerate(self.servers) if server.pid is not None)

    async def shown(self, index: int, service: str) -> Listing:
        """The answer of this node to a query."""
        return listing(await (await self.client(index)).query(service))

    async def publishers(self, index: int, service: str) -> frozenset[str]:
        """The clients that this node holds as publishers of the service."""
        address = with_offset(self.addresses[index], CLUSTER_OFFSET)
        async with await Connection.open(address, labels=CLUSTER_LABELS) as connection:
            replicas = await read_state(connection)
        return frozenset(
            replica.client for replica in replicas if any(each.service == service for each in replica.published)
        )

    async def client(self, index: int) -> PlayedClient:
        """The kit's own client at this node."""
        if index not in self._clients:
            address = with_offset(self.addresses[index], SDK_OFFSET)
            self._clients[index] = await PlayedClient.connect(address)
        return self._clients[index]

    async def kill(self, index: int) -> None:
        await self._forget(index)
        await self.servers[index].stop()

    async def repair(self) -> None:
        """Restart the killed nodes; returns when every node has loaded the others' clients, and accepts clients."""
        for index, server in enumerate(self.servers):
            if server.pid is None:
                await self._forget(index)
                await server.start()
        await self.loaded()
        for index in self.running:
            await _succeeds(partial(self.shown, index, "never-published"))

    async def loaded(self) -> None:
        """A strict node hands out no snapshot before; a real server reports that it is started."""
        for index in self.running:
            await _succeeds(partial(self.publishers, index, ""))

    async def __aenter__(self) -> Nodes:
        return self

    async def __aexit__(self, *_: object) -> None:
        for index in tuple(self._clients):
            await self._forget(index)

    async def _forget(self, index: int) -> None:
        client = self._clients.pop(index, None)
        if client is not None:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await client.close()


async def _succeeds(attempt: Callable[[], Awaitable[object]]) -> None:
    """A starting node refuses; one of 2.0.x also until it has seen that the others are no 1.x servers."""
    error: TargetError | RefusedError | None = None

    async def succeeded() -> bool:
        nonlocal error
        try:
            await attempt()
        except (TargetError, RefusedError) as reason:
            error = reason
            return False
        return True

    if await eventually(succeeded, RealClock(), READY_WITHIN_MS, step_ms=20) is None and error is not None:
        raise error
