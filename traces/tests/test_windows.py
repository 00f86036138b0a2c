"""A run read in windows gives the same as the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from distro_traces.errors import TraceError
from distro_traces.event import Kind
from distro_traces.exports.causal import causal_order
from distro_traces.ndjson import Recorder
from distro_traces.windows import Windows


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """a owns c1; b takes its first content, stops, comes back with nothing; c2 has another owner."""
    with Recorder(
        tmp_path, "run-1", profile="strict", target="embedded", clock="virtual", nodes=("a", "b")
    ) as recorder:
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=0, client="c1", owned=True, revision=0, digest="d0")
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=10, client="c1", owned=True, revision=1, digest="d1")
        recorder.record(
            "b", Kind.REPLICA_APPLIED, at_ms=20, client="c1", owned=False, revision=1, digest="d1", message="m1"
        )
        recorder.record(
            "b", Kind.REPLICA_APPLIED, at_ms=30, client="c2", owned=False, revision=1, digest="e1", message="m2"
        )
        recorder.record("b", Kind.NODE_STOPPED, at_ms=40, detail="crash")
        recorder.record("b", Kind.NODE_STARTED, at_ms=50, detail="a,b")
        recorder.record("a", Kind.CLIENT_DISCONNECTED, at_ms=60, client="c1", owned=True)
    return recorder.path


def held(run: Windows, place: int) -> dict[str, dict[str, str | None]]:
    return {node: {client: row.digest for client, row in rows.items()} for node, rows in run.held_at(place).items()}


def test_a_window_is_a_part_of_the_run(trace: Path) -> None:
    with Windows(trace) as run:
        assert run.total == 7
        assert run.nodes == ("a", "b")
        whole = run.at(0, run.total)
        assert whole == causal_order(whole)
        assert run.at(2, 3) == whole[2:5]
        assert run.place_of("b", 2) == 3
        assert run.place_of("b", 99) is None
        assert run.next_of((Kind.NODE_STOPPED,), after=0) == 4
        assert run.next_of((Kind.NODE_STOPPED,), after=4) is None


def test_the_rows_of_a_client_come_with_the_rows_about_all_clients(trace: Path) -> None:
    with Windows(trace) as run:
        around = run.of_client("c1", 3, 2)
        assert [(event.kind, event.client) for event in around] == [
            (Kind.CLIENT_CHANGED, "c1"),
            (Kind.REPLICA_APPLIED, "c1"),
            (Kind.NODE_STOPPED, None),
            (Kind.NODE_STARTED, None),
        ]


def test_the_state_of_a_node_ends_with_it(trace: Path) -> None:
    with Windows(trace) as run:
        assert held(run, 0) == {"a": {"c1": "d0"}, "b": {}}
        assert held(run, 3) == {"a": {"c1": "d1"}, "b": {"c1": "d1", "c2": "e1"}}
        assert held(run, 5) == {"a": {"c1": "d1"}, "b": {}}
        assert held(run, 6) == {"a": {}, "b": {}}


def test_every_row_is_counted_where_it_happened(trace: Path) -> None:
    with Windows(trace) as run:
        (first, last), counts = run.busy(2)
        assert (first, last) == (0, 60)
        assert counts == {"a": [2, 1], "b": [2, 2]}


def test_a_run_that_is_not_there_is_named(trace: Path) -> None:
    with pytest.raises(TraceError, match="no run other; there are run-1"):
        Windows(trace, "other")
