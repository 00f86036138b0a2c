"""The script that is played on real servers, here on reference nodes in real time with shortened timings."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from distro_conformance.cluster import script
from distro_conformance.cluster.script import PHASES, play
from distro_conformance.drivers.nacos import NODES, LinkedCluster
from distro_conformance.recording.journal import TraceJournal
from distro_conformance.verdict import TargetError
from distro_conformance.wire.connection import CLUSTER_LABELS, Connection
from distro_conformance.wire.links import Link
from distro_impl import PROFILES, Node, NodeConfig, SystemClock, free_main_ports
from distro_impl.transport.transport import PeerLink
from distro_traces.event import Event, Kind
from distro_traces.ndjson import Recorder, read_ndjson

pytestmark = pytest.mark.wire

QUICK = replace(PROFILES["nacos-2.2.4"], sync_delay_ms=50, sync_retry_delay_ms=100, load_retry_delay_ms=50)


@pytest.fixture(autouse=True)
def _short_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "AGREE_WITHIN_S", 2.0)
    monkeypatch.setattr(script, "CUT_AT_LEAST_S", 0.3)


@asynccontextmanager
async def reference_cluster(directory: Path, *, over_links: bool = True) -> AsyncIterator[LinkedCluster]:
    """Three reference nodes that, like real servers, say nothing about themselves."""
    ports = free_main_ports(len(NODES))
    names = {f"127.0.0.1:{port}": name for name, port in zip(NODES, ports, strict=True)}
    with Recorder(directory, "run", profile=QUICK.name, target="test", clock="wall", nodes=NODES) as recorder:
        clock = SystemClock()
        began_ms = clock.now_ms()
        journal = TraceJournal(recorder, lambda: clock.now_ms() - began_ms, infer_state=True)
        links = {pair: Link(*pair, journal) for pair in itertools.permutations(NODES, 2)}

        def link(source: str, peer: str) -> PeerLink:
            return links[source, names[peer]] if over_links else PeerLink()

        nodes = [
            Node(
                NodeConfig(port=port, members=tuple(names), profile=QUICK),
                clock=clock,
                links=lambda peer, source=name: link(source, peer),  # type: ignore[misc]
            )
            for name, port in zip(NODES, ports, strict=True)
        ]
        async with contextlib.AsyncExitStack() as stack:
            probes = {}
            for node in nodes:
                await node.start()
                stack.push_async_callback(node.stop)
            for name, node in zip(NODES, nodes, strict=True):
                opened = await Connection.open(node.config.cluster_target, labels=CLUSTER_LABELS)
                probes[name] = await stack.enter_async_context(opened)
            sdk = {name: node.config.sdk_target for name, node in zip(NODES, nodes, strict=True)}
            yield LinkedCluster(sdk, links, probes, journal)


def events_of(directory: Path) -> Sequence[Event]:
    return read_ndjson(directory / "run.ndjson").events


def test_the_nodes_agree_after_each_phase_and_each_has_its_checkpoint(tmp_path: Path) -> None:
    async def run() -> None:
        async with reference_cluster(tmp_path) as cluster:
            phases = await play(cluster)
        assert [(phase.name, phase.agreed) for phase in phases] == [(name, True) for name, _ in PHASES]

    asyncio.run(run())
    events = events_of(tmp_path)
    checkpoints = Counter(event.detail for event in events if event.kind is Kind.CHECKPOINT)
    assert checkpoints == {"1": 3, "2": 3, "3": 3, "4": 3}
    assert sum(event.kind is Kind.CLIENT_CHANGED for event in events) == 9
    assert [e.detail for e in events if e.kind is Kind.LINK_FAULT] == ["cut", "healed"]
    delivered = {(e.node, e.peer) for e in events if e.kind is Kind.REQUEST_RECEIVED}
    assert delivered == set(itertools.permutations(NODES, 2)), "something travelled on every link"


def test_a_change_that_never_arrives_is_recorded_as_a_phase_without_agreement(tmp_path: Path) -> None:
    async def run() -> None:
        async with reference_cluster(tmp_path) as cluster:
            cluster.links["b", "c"].swallow("CHANGE")
            phases = await play(cluster)
        assert not phases[0].agreed

    asyncio.run(run())
    assert {e.node for e in events_of(tmp_path) if e.kind is Kind.CHECKPOINT and e.detail == "1"} == set(NODES)


def test_servers_that_pass_by_our_links_are_noticed(tmp_path: Path) -> None:
    async def run() -> None:
        async with reference_cluster(tmp_path, over_links=False) as cluster:
            with pytest.raises(TargetError, match="do not talk over our links"):
                await play(cluster)

    asyncio.run(run())
