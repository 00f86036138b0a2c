"""A real recording is clean; with one CHANGE's effect taken out it is not, at exactly that node and client.

First judged by a few lines of Python that know nothing of Spark, so that the data themselves are trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from lost_effect import Effect, effects, record_without, without

from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import STATE_KINDS, Event, Kind
from distro_traces.ndjson import TraceFile, read_ndjson

RECORDING = Path(__file__).parent / "data" / "real-cluster-2.2.4" / "real-cluster.ndjson"


@pytest.fixture(scope="module")
def trace() -> TraceFile:
    return read_ndjson(RECORDING)


def diverged(events: Iterable[Event]) -> set[tuple[str, str, str]]:
    """(checkpoint, node, client) wherever a node shows something else than the owner, or than nothing without one."""
    shown: dict[tuple[str, str], str] = {}
    owner: dict[str, str] = {}
    found: set[tuple[str, str, str]] = set()
    views: dict[str, dict[str, dict[str, str]]] = {}
    for event in events:
        client = event.client or ""
        if event.kind in (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED):
            owner[client] = event.node
        if event.kind in STATE_KINDS:
            shown[event.node, client] = event.digest or NOTHING_PUBLISHED
        if event.kind is Kind.CHECKPOINT:
            view = {client: shown.get((event.node, client), NOTHING_PUBLISHED) for client in owner}
            views.setdefault(event.detail or "", {})[event.node] = view
    for checkpoint, by_node in views.items():
        for node, view in by_node.items():
            found |= {(checkpoint, node, client) for client in view if view[client] != by_node[owner[client]][client]}
    return found


def test_the_recording_is_whole_and_the_servers_agreed(trace: TraceFile) -> None:
    assert trace.cut is None
    assert not trace.rejected
    assert {event.detail for event in trace.events if event.kind is Kind.CHECKPOINT} == {"1", "2", "3", "4"}
    assert diverged(trace.events) == set()


def test_there_are_effects_to_lose_in_every_phase_with_changes_and_on_every_node(trace: TraceFile) -> None:
    found = list(effects(trace.events))
    assert {effect.checkpoint.detail for effect in found} == {"1", "2", "3"}
    assert {effect.applied.node for effect in found} == {"a", "b", "c"}


def test_each_lost_effect_shows_at_its_node_and_nowhere_else(trace: TraceFile) -> None:
    for effect in effects(trace.events):
        at_first = {row for row in diverged(without(effect, trace.events)) if row[0] == effect.checkpoint.detail}
        assert at_first == {(effect.checkpoint.detail, effect.applied.node, effect.applied.client)}, effect.message


def test_only_the_receiver_forgets_the_message(trace: TraceFile) -> None:
    effect = next(effects(trace.events))
    rewritten = list(without(effect, trace.events))
    assert {e.node for e in rewritten if e.message == effect.message} == {effect.change.node}
    others = [e for e in trace.events if e.node != effect.applied.node]
    assert [e for e in rewritten if e.node != effect.applied.node] == others


def test_sequence_numbers_have_no_gaps_afterwards(trace: TraceFile) -> None:
    effect = next(effects(trace.events))
    rewritten = list(without(effect, trace.events))
    for node in trace.header.nodes:
        of_node = [event.seq for event in rewritten if event.node == node]
        assert of_node == list(range(1, len(of_node) + 1))


def test_a_rewritten_recording_is_a_recording_of_its_own(trace: TraceFile, tmp_path: Path) -> None:
    effect = next(effects(trace.events))
    written = read_ndjson(record_without(effect, trace, tmp_path, "without"))
    assert written.header == replace(trace.header, run="without", nodes=written.header.nodes)
    assert written.events == tuple(replace(e, run="without") for e in without(effect, trace.events))


def change_of(events: Sequence[Event]) -> Effect:
    """The only effect of a small hand-made run."""
    (effect,) = effects(events)
    return effect


def row(seq: int, node: str, kind: Kind, **fields: object) -> Event:
    return Event(run="r", node=node, seq=seq, at_ms=seq, kind=kind, **fields)  # type: ignore[arg-type]


OWNER = row(1, "a", Kind.CLIENT_CHANGED, client="c", owned=True, revision=2, digest="new")
OLD = row(1, "b", Kind.OBSERVED, client="c", revision=1, digest="old")
APPLIED = row(2, "b", Kind.REPLICA_APPLIED, client="c", digest="new", message="m1")
READ = row(3, "b", Kind.OBSERVED, client="c", revision=2, digest="new")
AGAIN = row(4, "b", Kind.REPLICA_APPLIED, client="c", digest="new", message="m2")
AGREED = row(5, "b", Kind.CHECKPOINT, detail="1")


def test_later_readings_go_on_showing_the_old_content_until_something_else_arrives() -> None:
    effect = change_of([OWNER, OLD, APPLIED, READ, AGREED])
    rewritten = list(without(effect, [OWNER, OLD, APPLIED, READ, AGREED, AGAIN, READ]))
    readings = [(e.revision, e.digest) for e in rewritten if e.kind is Kind.OBSERVED]
    assert readings == [(1, "old"), (1, "old"), (2, "new")]


def test_changes_that_travelled_together_are_lost_together() -> None:
    first = replace(OWNER, digest="between", revision=2)
    second = replace(OWNER, seq=2, revision=3)
    before = replace(OWNER, digest="old", revision=1)
    assert change_of([before, first, second, OLD, APPLIED, READ, AGREED]).change == first


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([OWNER, OLD, APPLIED, READ, AGAIN, AGREED], id="repaired before the checkpoint"),
        pytest.param([OWNER, OLD, APPLIED, READ], id="no checkpoint"),
        pytest.param([OWNER, READ, APPLIED, AGREED], id="nothing new"),
        pytest.param([OLD, APPLIED, AGREED], id="no owner's change"),
    ],
)
def test_a_row_without_a_difference_is_no_effect(events: list[Event]) -> None:
    assert list(effects(events)) == []
