"""The main job on real input: a scripted run of three real servers, recorded as a trace.

Clients register on different nodes, change, one link is cut and healed, clients leave. After each phase the nodes are
read until they agree or a bound is reached, and a checkpoint is written either way: whether they agreed is the
verdict of the Spark check over the trace, not of this file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from distro_conformance.drivers.nacos import NODES, LinkedCluster, OnProgress, real_cluster
from distro_conformance.node.player import PlayedClient
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.targets.maven import jars_of
from distro_conformance.targets.releases import nacos_release
from distro_conformance.verdict import TargetError
from distro_traces.ndjson import Recorder
from distro_traces.observed import INFERRED

AGREE_WITHIN_S = 15.0
"""A change takes 1.2 s; after a heal the source must find its peer again, 6 s were seen (real-nacos.md section 4)."""

CUT_AT_LEAST_S = 3.5
"""Long enough for the change to reach the other peer and for its sync over the cut link to fail once."""

LEFT_WITHIN_S = 5.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Phase:
    """`agreed`: all nodes showed the same within AGREE_WITHIN_S after the last thing that was done."""

    name: str
    seconds: float
    agreed: bool


@dataclass(frozen=True, slots=True)
class ClusterRecording:
    """`trace` is the NDJSON file; `start_seconds` goes to fetching and starting the servers."""

    trace: Path
    run: str
    release: str
    start_seconds: float
    phases: tuple[Phase, ...]


@dataclass
class Script:
    """The clients of a run and what they do; the name of a client says on which node it is."""

    cluster: LinkedCluster
    clients: dict[str, PlayedClient] = field(default_factory=dict)  # by node

    async def arrive(self) -> None:
        for number, node in enumerate(NODES, 1):
            client = await PlayedClient.connect(self.cluster.sdk_addresses[node])
            self.clients[node] = client
            await self._record(node, self.cluster.journal.client_connected)
            await client.register("orders", f"10.0.0.{number}", 8080, version="1")
            await self._changed(node)
        await self.clients["c"].register("stock", "10.0.0.3", 7070)
        await self._changed("c")

    async def change(self) -> None:
        """New metadata, a second service, one service less."""
        await self.clients["a"].register("orders", "10.0.0.1", 8080, version="2")
        await self._changed("a")
        await self.clients["b"].register("payments", "10.0.0.2", 9090)
        await self._changed("b")
        await self.clients["c"].deregister("orders", "10.0.0.3", 8080)
        await self._changed("c")

    async def cut_and_heal(self) -> None:
        """While a->b is cut, changes at a reach only c and changes at b reach everybody."""
        link, began = self.cluster.links["a", "b"], time.monotonic()
        link.cut()
        try:
            await self.clients["a"].register("orders", "10.0.0.1", 8080, version="3")
            await self._changed("a")
            await self.clients["b"].deregister("orders", "10.0.0.2", 8080)
            await self._changed("b")
            await self.cluster.agree(AGREE_WITHIN_S, about=self.clients["a"].id, nodes=("a", "c"))
            await self.cluster.agree(AGREE_WITHIN_S, about=self.clients["b"].id)
            await asyncio.sleep(max(0.0, began + CUT_AT_LEAST_S - time.monotonic()))
            if await self.cluster.agree(0.0, about=self.clients["a"].id, nodes=("a", "b")):
                raise TargetError("a->b is cut and b has a's change: the servers do not talk over our links")
        finally:
            link.heal()

    async def leave(self) -> None:
        for node in NODES:
            client = self.clients.pop(node)
            await client.close()
            await self._left(node, client.id)

    async def _changed(self, node: str) -> None:
        before = self.cluster.journal.views([node])[node].get(self.clients[node].id)
        await self._record(node, self.cluster.journal.client_changed)
        if self.cluster.journal.views([node])[node].get(self.clients[node].id) == before:
            raise TargetError(f"node {node} acknowledged a change of its client and holds what it held before")

    async def _record(self, node: str, write: Callable[[str, str, int, str], None]) -> None:
        """What the owner holds of its client after an operation; its syncs leave a second later."""
        held = await self.cluster.read(node, self.clients[node].id)
        if held is None:
            raise TargetError(f"node {node} does not hold its own client {self.clients[node].id}")
        write(node, held.client, held.revision, held.digest)

    async def _left(self, node: str, client: str) -> None:
        end = time.monotonic() + LEFT_WITHIN_S
        while await self.cluster.read(node, client) is not None:
            if time.monotonic() > end:
                raise TargetError(f"node {node} still holds {client}, {LEFT_WITHIN_S:.0f} s after it left")
            await asyncio.sleep(_POLL_S)
        self.cluster.journal.client_disconnected(node, client)


PHASES: tuple[tuple[str, Callable[[Script], Awaitable[None]]], ...] = (
    ("arrive", Script.arrive),
    ("change", Script.change),
    ("cut and heal", Script.cut_and_heal),
    ("leave", Script.leave),
)


async def record_real_cluster(
    release: str, out_dir: Path, on_progress: OnProgress = lambda _: None, *, run: str = "real-cluster"
) -> ClusterRecording:
    """Start three servers of the release, play the script, stop them. The trace is `out_dir`/`run`.ndjson.

    Raises TargetError when the cluster cannot be started (no trace is left then) or stops answering, TraceError when
    there is a recording of that name.
    """
    found = nacos_release(release)
    await jars_of(found, on_progress)
    profile = f"nacos-{found.version}"
    began = time.monotonic()
    with Recorder(
        out_dir, run, profile=profile, target=f"nacos:{release}", clock="wall", nodes=NODES, observed=INFERRED
    ) as recorder:
        journal = TraceJournal(recorder, lambda: round((time.monotonic() - began) * 1000), infer_state=True)
        journal.run_started(NODES[0], profile)
        started_s = None
        try:
            async with real_cluster(release, journal, on_progress) as cluster:
                started_s = time.monotonic() - began
                phases = await play(cluster, on_progress)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"a node of the {release} cluster stopped answering: {error.details()}") from error
        finally:
            if started_s is None:
                recorder.path.unlink()
    return ClusterRecording(recorder.path, run, release, started_s, phases)


async def play(cluster: LinkedCluster, on_progress: OnProgress = lambda _: None) -> tuple[Phase, ...]:
    """All phases, each with its checkpoint. Raises TargetError when a node does not do what it acknowledged."""
    script, phases = Script(cluster), []
    try:
        for number, (name, act) in enumerate(PHASES, 1):
            began = time.monotonic()
            await act(script)
            agreed = await cluster.agree(AGREE_WITHIN_S)
            await cluster.observe()
            cluster.journal.checkpoint(number, NODES)
            phases.append(Phase(name, time.monotonic() - began, agreed))
            on_progress(f"{name}: {'the nodes agree' if agreed else 'the nodes differ'} ({phases[-1].seconds:.1f} s)")
    finally:
        for client in script.clients.values():
            await client.close()
    return tuple(phases)
