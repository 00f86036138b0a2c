"""Real Nacos servers with a link of the kit in each direction between any two of them.

Only outgoing cluster clients use the property `nacos.server.grpc.port.offset`, so each node gets its own and finds
its peers at the kit's forwarders, while `cluster.conf` is true and the same everywhere. HTTP and JRaft bypass the
links. Time is real: "within" is a window. Source: docs/real-servers.md#between-real-nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Mapping, Sequence
from functools import partial

from distro_conformance.drivers.server import Server
from distro_conformance.drivers.wired import UNDER_WAY_MS, WiredCluster
from distro_conformance.node.player import RefusedError
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.targets.credentials import NO_CREDENTIALS
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.nacos import NacosServer, release_and_jars
from distro_conformance.targets.nacos_home import LEASE_KEY
from distro_conformance.targets.ports import CLUSTER_OFFSET, family, free_base_ports
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError
from distro_conformance.waiting import RealClock, eventually, together
from distro_conformance.wire.forwarder import LOOPBACK, Forwarder
from distro_conformance.wire.links import Link
from distro_model.actions import Connect, Deregister, Register, RegisterBatch
from distro_traces.ndjson import Recorder

OFFSET_PROPERTY = "nacos.server.grpc.port.offset"
_OFFSETS = range(3001, 20_001, 500)
KNOWN_WITHIN_MS = 60_000
"""Each member is reported to every 4 s, the first time 5 s after the start; a busy machine takes longer to start."""


class RealTimeCluster(WiredCluster):
    """Servers that are processes of their own: clients give signs of life, processes can be paused."""

    credentials = NO_CREDENTIALS
    """Of servers that the kit has not configured."""
    has_links = True
    """Whether the kit can stand between the nodes."""
    _life: asyncio.Task[None] | None = None

    def __init__(self, recorder: Recorder | None = None) -> None:
        super().__init__(recorder)
        self._forwarders = contextlib.AsyncExitStack()

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """A link in each direction between any two nodes; their base ports ascend as the names do."""
        self._name(names, spare, profile)
        ports = dict(zip(self.names, sorted(free_base_ports(len(self.names))), strict=True))
        if self.has_links:
            self.links = {ends: Link(*ends, self.traffic) for ends in itertools.permutations(self.names, 2)}
        forwarded = {ends: link for ends, link in self.links.items() if self._is_forwarded(ends[0])}
        offsets = await forward(self._forwarders, forwarded, ports)
        for name, port in ports.items():
            self.servers[name] = await self._server(name, port, self._listed(name, ports), offsets.get(name))
        await self._begin(profile)

    def _is_forwarded(self, name: str) -> bool:  # noqa: ARG002 - each of them, unless a subclass has others
        """Whether a node finds its peers at forwarders of the kit, at a configured offset to their ports."""
        return True

    async def _server(self, name: str, port: int, members: Sequence[str], offset: int | None) -> Server:
        """The node, not started yet."""
        raise NotImplementedError

    async def _begin(self, profile: str) -> None:
        """All servers at once, since each is loaded only once another one has answered it. Then time is 0."""
        if self._recorder is not None:
            self._records(TraceJournal(self._recorder, RealClock().now_ms, infer_state=True), profile)
        if self.credentials.identity is not None:
            self.reader.headers = self.credentials.headers
        await together(self._bring_up(name, until_loaded=True) for name in self._lists)
        first = self.servers[next(iter(self._lists))].address
        self.clients.headers = await asyncio.to_thread(self.credentials.client_headers, first)
        await self._until_all_up()
        self._life = asyncio.create_task(self.clients.stay(self._paused))
        await self._from_now_on(RealClock(self.slack))

    async def _until_all_up(self) -> None:
        """A node of 2.0.x refuses clients until all members have reported to it, and up to 5 s longer."""

        async def all_up() -> bool:
            states = [await self.members(name) for name in self.up]
            known = all(seen.get(name) == "UP" for (seen,) in states for name in self.up)
            return known and await self._all_serve()

        if await eventually(all_up, self.clock, KNOWN_WITHIN_MS, step_ms=200) is None:
            seen = [f"at {name} {dict((await self.members(name))[0])}" for name in self.up]
            what = f"the members do not all serve and count each other as UP within {KNOWN_WITHIN_MS} ms"
            raise TargetError(f"{what}: {', '.join(seen)}")

    async def _all_serve(self) -> bool:
        try:
            for name in self.up:
                await self.reader.listed(name, "nobody-publishes-here")
        except RefusedError:
            return False
        return True

    async def _client_acts(self, action: Connect | Register | RegisterBatch | Deregister) -> None:
        await super()._client_acts(action)
        if isinstance(action, Connect):
            await self._known(action)

    async def _known(self, connected: Connect) -> None:
        """A server accepts a connection's requests before naming knows it, and a registration in between is lost
        (docs/protocol #connection-setup). A node that does not list clients without instances takes the whole time."""

        client_id = self.clients.now[connected.client].connection.id
        await eventually(partial(self._holds, connected.node, client_id), self.clock, UNDER_WAY_MS)

    async def stop(self) -> None:
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        await super().stop()
        await self._forwarders.aclose()


class NacosCluster(RealTimeCluster):
    """`release_or_directory` as `nacos:` takes it. Raises UsageError."""

    def __init__(
        self,
        release_or_directory: str,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        super().__init__(recorder)
        self.kind = f"nacos:{release_or_directory}"
        self._jars, self.release = release_and_jars(release_or_directory)
        self.profile = f"nacos-{self.release.version}"
        self.reader.headers = self.release.member_headers
        self._on_progress = on_progress
        self._more = {} if lease_ms is None else {LEASE_KEY: str(lease_ms)}

    async def _server(self, name: str, port: int, members: Sequence[str], offset: int | None) -> Server:  # noqa: ARG002
        return NacosServer(
            self.release,
            self._jars or await jars_of(self.release, self._on_progress),
            port=port,
            members=members,
            jvm_properties={OFFSET_PROPERTY: str(offset), **self._more},
            on_progress=self._on_progress,
        )


async def forward(
    stack: contextlib.AsyncExitStack, links: Mapping[tuple[str, str], Link], ports: Mapping[str, int]
) -> dict[str, int]:
    """Start the forwarders of these links; by source the offset at which it finds all of its peers.

    `ports` are the base ports of all nodes.
    """
    reserved = frozenset().union(*(family(port) for port in ports.values()))
    offsets = iter(_OFFSETS)
    chosen = {}
    for source in sorted({source for source, _ in links}):
        outgoing = {target: link for (at, target), link in links.items() if at == source}
        for offset in offsets:
            if reserved.isdisjoint(ports[target] + offset for target in outgoing) and await _listen(
                stack, outgoing, ports, offset
            ):
                chosen[source] = offset
                break
        else:
            raise TargetError(f"no offset in {_OFFSETS} has free ports for the links of {source}; try again")
    return chosen


async def _listen(
    stack: contextlib.AsyncExitStack, outgoing: Mapping[str, Link], ports: Mapping[str, int], offset: int
) -> bool:
    """Forwarders for all links of one source, or for none."""
    async with contextlib.AsyncExitStack() as attempt:
        for target, link in outgoing.items():
            forwarder = Forwarder(link, ports[target] + offset, f"{LOOPBACK}:{ports[target] + CLUSTER_OFFSET}")
            try:
                await attempt.enter_async_context(forwarder)
            except TargetError:
                return False
        stack.push_async_exit(attempt.pop_all())
    return True
