"""Three real Nacos servers with a link of ours in each direction between any two of them.

Only outgoing cluster clients use the property `nacos.server.grpc.port.offset`, so each node gets its own and finds
its peers at our forwarders, while `cluster.conf` stays true and the same everywhere. What the nodes hold is read by
probes, which ask for a SNAPSHOT past the links. HTTP and JRaft do not go over the links. Source: real-nacos.md
section 4.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from distro_conformance.recording.journal import TraceJournal, probe, read_state
from distro_conformance.targets.nacos import start_nacos_cluster
from distro_conformance.targets.ports import CLUSTER_OFFSET, family, free_base_ports
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_conformance.wire.forwarder import LOOPBACK, Forwarder
from distro_conformance.wire.links import Link
from distro_traces.content import Replica

NODES = ("a", "b", "c")
OFFSET_PROPERTY = "nacos.server.grpc.port.offset"
_OFFSETS = range(3001, 20_001, 500)
_POLL_S = 0.1

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LinkedCluster:
    """Running nodes in real time, whoever they are. Keys are node names, those of `links` are (source, target)."""

    sdk_addresses: Mapping[str, str]
    links: Mapping[tuple[str, str], Link]
    probes: Mapping[str, Connection]
    journal: TraceJournal

    async def read(self, node: str, client: str) -> Replica | None:
        """What the node holds of the client now, unrecorded."""
        return next((r for r in await read_state(self.probes[node]) if r.client == client), None)

    async def observe(self, *, only_news: bool = False) -> None:
        """Read all nodes into the trace."""
        for node, connection in self.probes.items():
            await probe(self.journal, node, connection, only_news=only_news)

    async def agree(self, within_s: float, *, about: str | None = None, nodes: tuple[str, ...] = NODES) -> bool:
        """Read until `nodes` show the same (about one client, or all) or the time is over; says which it was."""
        end = time.monotonic() + within_s
        while True:
            await self.observe(only_news=True)
            views = self.journal.views(nodes).values()
            shown = [view.get(about) if about else view for view in views]
            if all(view == shown[0] for view in shown):
                return True
            if time.monotonic() > end:
                return False
            await asyncio.sleep(_POLL_S)


@contextlib.asynccontextmanager
async def real_cluster(release: str, journal: TraceJournal, on_progress: OnProgress) -> AsyncIterator[LinkedCluster]:
    """A loaded cluster; servers, forwarders and connections are gone when the block ends, however it ends.

    Raises TargetError when the servers cannot be fetched or started, or the ports be bound.
    """
    ports = dict(zip(NODES, sorted(free_base_ports(len(NODES))), strict=True))
    links = {(source, target): Link(source, target, journal) for source, target in itertools.permutations(NODES, 2)}
    async with contextlib.AsyncExitStack() as stack:
        offsets = await _forward(stack, links, ports)
        for node in NODES:
            journal.node_started(node, NODES)
        started = await stack.enter_async_context(
            start_nacos_cluster(
                release,
                ports=tuple(ports.values()),
                jvm_properties={ports[node]: {OFFSET_PROPERTY: str(offsets[node])} for node in NODES},
                on_progress=on_progress,
            )
        )
        probes = {}
        for node, server in zip(NODES, started, strict=True):
            opened = await Connection.open(server.cluster_address, labels=CLUSTER_LABELS)
            probes[node] = await stack.enter_async_context(opened)
        sdk_addresses = {node: server.sdk_address for node, server in zip(NODES, started, strict=True)}
        yield LinkedCluster(sdk_addresses, links, probes, journal)


async def _forward(
    stack: contextlib.AsyncExitStack, links: Mapping[tuple[str, str], Link], ports: Mapping[str, int]
) -> dict[str, int]:
    """Start the forwarders; by node the offset at which it finds all of its peers."""
    reserved = frozenset().union(*(family(port) for port in ports.values()))
    offsets = iter(_OFFSETS)
    chosen = {}
    for source in ports:
        outgoing = {target: link for (at, target), link in links.items() if at == source}
        for offset in offsets:
            if reserved.isdisjoint(ports[target] + offset for target in outgoing) and await _listen(
                stack, outgoing, ports, offset
            ):
                chosen[source] = offset
                break
        else:
            raise TargetError(f"no offset in {_OFFSETS} has free ports for the links of three nodes; try again")
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
