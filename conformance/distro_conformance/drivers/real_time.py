"""Clusters in real time: the nodes of one target, with a link of the kit in each direction between any two of them.

Real Nacos servers, described servers and running servers differ in their target alone. Only outgoing cluster clients of
a real server use the property `nacos.server.grpc.port.offset`, so each node gets its own and finds its peers at the
kit's forwarders, while `cluster.conf` is true and the same everywhere. HTTP and JRaft bypass the links. Servers that
cannot be given an offset have no links. "Within" is a window. Source: docs/real-servers.md#between-real-nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from distro_conformance.drivers.wired import UNDER_WAY_MS, WiredCluster
from distro_conformance.node.player import NAMESPACE, RefusedError
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.targets.attached import AttachedNode, AttachedTarget
from distro_conformance.targets.credentials import options_for
from distro_conformance.targets.embedded import ReferenceNode
from distro_conformance.targets.nacos_home import LOAD_RETRY_MS
from distro_conformance.targets.ports import CLUSTER_OFFSET, family, free_base_ports
from distro_conformance.targets.target import Node, OnProgress, Place, Target
from distro_conformance.verdict import TargetError, UsageError
from distro_conformance.waiting import RealClock, eventually, gather_all
from distro_conformance.wire.connection import LOOPBACK
from distro_conformance.wire.forwarder import Forwarder
from distro_conformance.wire.links import Link
from distro_impl import NodeConfig, SystemClock, UnknownProfileError, profile_named
from distro_model.actions import (
    Action,
    BaseHttpRequest,
    Connect,
    Crash,
    Deregister,
    ListMembers,
    Move,
    Pause,
    Register,
    RegisterBatch,
    Restart,
    Resume,
)
from distro_traces.ndjson import Recorder

_OFFSETS = range(3001, 20_001, 500)
KNOWN_WITHIN_MS = 60_000
"""Each member is reported to every 4 s, the first time 5 s after the start; a busy machine takes longer to start."""
LEASE_FIXED = ("nacos-2.0.4",)
"""Releases on which the property of the lease was seen to have no effect (docs/real-servers.md#starting)."""


class RealTimeCluster(WiredCluster):
    """Clients give signs of life, processes can be paused. `lease_ms` None: the default of the nodes."""

    _life: asyncio.Task[None] | None = None

    def __init__(
        self,
        target: Target,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        super().__init__(recorder)
        self.kind, self.target = target.spec, target
        self.reader.headers = target.member_headers
        self._on_progress, self._lease_ms = on_progress, lease_ms
        self._forwarders = contextlib.AsyncExitStack()

    def cannot(self, action: Action) -> str | None:
        return (self.target.fixed_list if isinstance(action, ListMembers) else None) or super().cannot(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        """A link in each direction between any two nodes; their base ports ascend as the names do."""
        self._name(names, spare, profile)
        ports = dict(zip(self.names, sorted(free_base_ports(len(self.names))), strict=True))
        if self.target.takes_offset:
            self.links = {ends: Link(*ends, self.traffic) for ends in itertools.permutations(self.names, 2)}
        forwarded = {ends: link for ends, link in self.links.items() if self._is_forwarded(ends[0])}
        offsets = await forward(self._forwarders, forwarded, ports)
        for name, port in ports.items():
            place = Place(port, self._listed(name, ports), offsets.get(name), self._lease_ms)
            self.servers[name] = await self._node(name, place)
        await self._begin(profile)

    def _is_forwarded(self, name: str) -> bool:  # noqa: ARG002 - each of them, unless a subclass has others
        """Whether a node finds its peers at forwarders of the kit, at a configured offset to their ports."""
        return True

    async def _node(self, name: str, place: Place) -> Node:  # noqa: ARG002 - of one kind, unless a subclass has others
        """The node, not started yet."""
        return await self.target.node(place, self._on_progress)

    async def _begin(self, profile: str) -> None:
        """All servers at once, since each is loaded only once another one has answered it. Then time is 0."""
        if self._recorder is not None:
            self._records(TraceJournal(self._recorder, RealClock().now_ms, infer_state=True), profile)
        await gather_all(self._bring_up(name, until_loaded=True) for name in self._lists)
        first = self.servers[next(iter(self._lists))].address
        self.clients.headers = await asyncio.to_thread(self.target.credentials.client_headers, first)
        await self._until_all_up()
        self._life = asyncio.create_task(self.clients.keep_alive(self._paused))
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

        client_id = self.clients.now[connected.client].id
        await eventually(partial(self._holds, connected.node, client_id), self.clock, UNDER_WAY_MS)

    async def stop(self) -> None:
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        await super().stop()
        await self._forwarders.aclose()


class AttachCluster(RealTimeCluster):
    """A running cluster that the kit did not start: the kit reads it as any member may, its clients use a namespace of
    their own, and only they are judged. With `--allow-disruption` they use the public one, like applications."""

    def __init__(
        self,
        target: Target,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        assert isinstance(target, AttachedTarget)
        super().__init__(target, recorder, on_progress, lease_ms)
        self._addresses = target.addresses
        self.clients.namespace = self.reader.namespace = target.limits.namespace
        self.only_own = True

    def cannot(self, action: Action) -> str | None:
        match action:
            case Crash() | Restart() | Move() | Pause() | Resume() | ListMembers():
                return "the kit did not start this cluster: its nodes are neither stopped nor changed"
            case BaseHttpRequest() if self.clients.namespace != NAMESPACE:
                return "clients of the HTTP API would come to the public namespace; --allow-disruption lets them"
        return super().cannot(action)

    async def start(self, names: Sequence[str], profile: str, *, spare: Sequence[str] = ()) -> None:
        addresses, headers = self._addresses, self.target.client_headers
        if spare:
            raise UsageError(f"{self.kind} runs already, and has no spare addresses: {' '.join(spare)}")
        if len(names) != len(addresses):
            raise UsageError(f"the scenario has the nodes {' '.join(names)}, and {self.kind} names {len(addresses)}")
        self._name(names, spare, profile)
        self.servers = {name: AttachedNode(each, headers) for name, each in zip(names, addresses, strict=True)}
        await self._begin(profile)

    async def _until_all_up(self) -> None:
        """Does not wait: the state of the cluster is to be observed as found."""


class MixedCluster(RealTimeCluster):
    """One real server, and reference nodes of its release. Neither kind may be able to distinguish the other from its
    own.

    The real server has the first name and the lowest address, so a reference node that starts asks it first for a
    snapshot if it asks in that order, and it has only reference nodes to ask. The real server's links are forwarders,
    those of the reference nodes are in their channels. Raises UsageError.
    """

    def __init__(
        self,
        target: Target,
        recorder: Recorder | None = None,
        on_progress: OnProgress = lambda _: None,
        lease_ms: int | None = None,
    ) -> None:
        try:
            own = profile_named(target.profile)
        except UnknownProfileError as error:
            raise UsageError(str(error)) from error
        lease_ms = lease_ms if lease_ms and target.profile not in LEASE_FIXED else own.client_expired_ms
        super().__init__(target, recorder, on_progress, lease_ms)
        self.kind = f"mixed:{target.spec.partition(':')[2]}"
        self._behaviour = replace(own, client_expired_ms=lease_ms, load_retry_delay_ms=LOAD_RETRY_MS)
        self._nodes_clock = SystemClock()

    def _is_forwarded(self, name: str) -> bool:
        """Only the real server: it has the first name."""
        return name == next(iter(self._lists))

    async def _node(self, name: str, place: Place) -> Node:
        if self._is_forwarded(name):
            return await super()._node(name, place)
        config = NodeConfig(
            port=place.port, members=place.members, profile=self._behaviour, options=options_for(self._behaviour)
        )
        return ReferenceNode(config, self._nodes_clock, partial(self.link_to, name))


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
