"""A run in the formats of other viewers: all rows are there, in an order that respects causes."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import itf_py
import pytest

from distro_traces.compact import compact
from distro_traces.errors import TooLargeError
from distro_traces.event import Kind, Outcome
from distro_traces.exports import EXPORTS, export
from distro_traces.exports.causal import causal_order, vector_clocks
from distro_traces.nacos_logs.importer import import_logs
from distro_traces.ndjson import Recorder, TraceFile
from distro_traces.query import QueryError, query
from distro_traces.reading import SeveralRunsError, read_run

LOGS = Path(__file__).parent / "data" / "nacos-2.2.4"
C1 = "10.0.1.1:80#true"


@pytest.fixture
def trace(tmp_path: Path) -> TraceFile:
    """b's clock is five seconds behind: it receives before a sends."""
    with Recorder(tmp_path, "r1", profile="strict", target="embedded", nodes=["a", "b"]) as recorder:
        recorder.record("a", Kind.NODE_STARTED, at_ms=5000, detail="a,b")
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=5001, client=C1, owned=True, revision=1, digest="d1")
        call = {"operation": "CHANGE", "client": C1, "message": "m1"}
        recorder.record("a", Kind.REQUEST_SENT, at_ms=5002, peer="b", **call)  # type: ignore[arg-type]
        recorder.record("b", Kind.REQUEST_RECEIVED, at_ms=3, peer="a", **call)  # type: ignore[arg-type]
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=4, client=C1, revision=1, digest="d1", message="m1")
        recorder.record("b", Kind.REPLY_SENT, at_ms=5, peer="a", outcome=Outcome.SUCCESS, **call)  # type: ignore[arg-type]
        recorder.record("a", Kind.REPLY_RECEIVED, at_ms=5009, peer="b", outcome=Outcome.SUCCESS, **call)  # type: ignore[arg-type]
        recorder.record("a", Kind.REQUEST_SENT, at_ms=5010, peer="b", operation="DELETE", client=C1, message="m2")
    return read_run(recorder.path)


CAUSAL = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3), ("a", 4), ("a", 5)]


def test_order_follows_causes_and_not_clocks(trace: TraceFile) -> None:
    shuffled = random.Random(0).sample(trace.events, len(trace.events))
    assert [(event.node, event.seq) for event in causal_order(shuffled)] == CAUSAL
    assert vector_clocks(causal_order(shuffled))[3:7] == [
        {"a": 3, "b": 1},
        {"a": 3, "b": 2},
        {"a": 3, "b": 3},
        {"a": 4, "b": 3},
    ]


def test_a_circle_of_causes_ends_too(trace: TraceFile) -> None:
    back = {("a", 1): "x", ("a", 2): "y", ("b", 1): "y", ("b", 2): "x"}
    kinds = {("a", 1): Kind.REQUEST_RECEIVED, ("a", 2): Kind.REQUEST_SENT}
    kinds |= {("b", 1): Kind.REQUEST_RECEIVED, ("b", 2): Kind.REQUEST_SENT}
    edited = [
        replace(event, message=back[event.node, event.seq], kind=kinds[event.node, event.seq])
        for event in trace.events
        if (event.node, event.seq) in back
    ]
    assert sorted((e.node, e.seq) for e in causal_order(edited)) == sorted(back)


def test_itf_is_read_back_with_the_state_of_every_node(trace: TraceFile) -> None:
    document = itf_py.trace_from_json(json.loads(export("itf", trace.header, trace.events)))
    states = [state.values for state in document.states]
    assert [(state["node"], state["seq"]) for state in states] == CAUSAL
    assert states[2]["holds"]["b"] == {}
    held = states[-1]["holds"]["b"][C1]
    assert (held.revision, held.digest) == (1, "d1")


SHIVIZ_ROW = re.compile(r"(?P<host>\S*) (?P<clock>{.*})\n(?P<event>.*)")
"""The expression that ShiViz begins with, in Python's spelling."""


def test_shiviz_reads_a_host_a_clock_and_an_event_of_every_row(trace: TraceFile) -> None:
    first, _, rows = export("shiviz", trace.header, trace.events).split("\n", 2)
    assert first.replace("(?<", "(?P<") == SHIVIZ_ROW.pattern
    found = [(row["host"], json.loads(row["clock"])) for row in SHIVIZ_ROW.finditer(rows)]
    assert [(host, clock[host]) for host, clock in found] == CAUSAL


def test_perfetto_has_slices_for_calls_and_held_clients_and_flows_between_both_ends(trace: TraceFile) -> None:
    rows = json.loads(export("perfetto", trace.header, trace.events))["traceEvents"]
    assert {row["args"]["name"] for row in rows if row["name"] == "process_name"} == {"a", "b"}
    begun = {row["id"]: row for row in rows if row["ph"] == "s"}
    ended = {row["id"]: row for row in rows if row["ph"] == "f"}
    assert (set(begun), set(ended)) == ({"m1", "m2"}, {"m1"})
    calls = [row for row in rows if row["ph"] == "X" and row["cat"] == "request_sent"]
    assert [row["dur"] for row in calls] == [7001, 1]
    assert sum(row["ph"] in "Xi" for row in rows) == len(trace.events)


def test_mermaid_draws_calls_as_arrows_and_lost_ones_with_a_cross(trace: TraceFile) -> None:
    assert export("mermaid", trace.header, trace.events).splitlines() == [
        "sequenceDiagram",
        "    participant N0 as a",
        "    participant N1 as b",
        "    Note over N0: node started (a,b)",
        "    Note over N0: client changed 10.0.1.1:80#35;true revision 1 d1",
        "    N0-)N1: CHANGE 10.0.1.1:80#35;true",
        "    Note over N1: replica applied 10.0.1.1:80#35;true revision 1 d1",
        "    N1--)N0: CHANGE 10.0.1.1:80#35;true success",
        "    N0-xN1: DELETE 10.0.1.1:80#35;true",
    ]


def test_logs_of_real_servers_go_into_every_format(tmp_path: Path) -> None:
    run = read_run(import_logs(LOGS, tmp_path).path)
    for name in EXPORTS:
        assert export(name, run.header, run.events)


def test_a_run_that_a_viewer_cannot_read_is_refused_with_advice(trace: TraceFile) -> None:
    many = [replace(trace.events[0], seq=seq) for seq in range(1, 502)]
    with pytest.raises(TooLargeError, match="501 rows, mermaid shows up to 500; choose one client with --client"):
        export("mermaid", trace.header, many)


def test_the_same_run_is_read_from_a_recording_and_from_rest(trace: TraceFile, tmp_path: Path) -> None:
    recording, rest = tmp_path / "r1.ndjson", tmp_path.with_name(tmp_path.name + "-rest")
    (part,) = compact([recording], rest)
    ordered = tuple(sorted(trace.events, key=lambda event: (event.node, event.seq)))
    for place in (part, part.parent, rest):
        assert read_run(place).events == ordered
    Recorder(tmp_path, "r2", profile="strict", target="embedded").close()
    with pytest.raises(SeveralRunsError, match=r"2 runs \(r1, r2\); name one by --run"):
        read_run(tmp_path)
    assert read_run(tmp_path, "r1").events == trace.events


def test_sql_over_recordings_and_runs_at_rest_gives_the_same_answers(trace: TraceFile, tmp_path: Path) -> None:
    recording = tmp_path / "r1.ndjson"
    with recording.open("a") as file:
        file.write('{"run":"r1","no":"event"}\n{"run":"r1","node"')
    by_node = "SELECT node, count(*), max(revision), bool_or(owned) FROM events GROUP BY node ORDER BY node"
    assert query(by_node, recording).rows == [("a", 5, 1, True), ("b", 3, 1, None)]
    recording.write_text("".join(recording.read_text().splitlines(keepends=True)[:-2]))
    compact([recording], tmp_path / "rest")
    assert query(by_node, tmp_path / "rest").rows == [("a", 5, 1, True), ("b", 3, 1, None)]
    assert query("SELECT run, profile, observed->>'lossless' FROM runs", recording) == (
        ("run", "profile", "(observed ->> 'lossless')"),
        [("r1", "strict", "true")],
    )


def test_wrong_sql_is_one_line(trace: TraceFile, tmp_path: Path) -> None:
    recording = tmp_path / "r1.ndjson"
    with pytest.raises(QueryError, match=r"no_such_view.*; views: events, runs; with --checked FILE also violations"):
        query("SELECT * FROM no_such_view", recording)
    with pytest.raises(QueryError, match=r"no_such_view.*; views: events, runs, violations"):
        query("SELECT * FROM no_such_view", recording, checked(tmp_path / "check.json"))
    with pytest.raises(QueryError, match="there is no statement in it; views: events, runs; with"):
        query("-- later", recording)


def checked(file: Path, schema: str = "distrocheck/check/1", *, violations: int = 1) -> Path:
    """The fields of `check --json` that a query uses."""
    event = {"node": "b", "seq": 2, "at_ms": 4, "kind": "replica_applied", "message": "m1"}
    found = {"invariant": "INV-REV", "run": "r1", "profile": "strict", "client": C1, "node": "b", "known": None}
    found |= {"first_event": event, "last_event": event, "evidence": {"revision": "1"}, "message": "b has …"}
    file.write_text(json.dumps({"schema": schema, "verdict": "violates", "violations": [found] * violations}))
    return file


def test_violations_are_asked_together_with_the_rows_that_show_them(trace: TraceFile, tmp_path: Path) -> None:
    sql = (
        "SELECT invariant, e.digest, evidence->>'revision' FROM violations v "
        "JOIN events e ON (e.run, e.node, e.seq) = (v.run, v.last_node, v.last_seq)"
    )
    assert query(sql, tmp_path / "r1.ndjson", checked(tmp_path / "check.json")).rows == [("INV-REV", "d1", "1")]
    none = checked(tmp_path / "check.json", violations=0)
    assert query("SELECT count(*) FROM violations", tmp_path / "r1.ndjson", none).rows == [(0,)]


@pytest.mark.parametrize("text", ["", "no JSON", '{"violations": []}', '{"schema": "distrocheck/audit/1"}'])
def test_a_document_not_printed_by_check_is_refused(trace: TraceFile, tmp_path: Path, text: str) -> None:
    other = tmp_path / "other.json"
    other.write_text(text)
    with pytest.raises(QueryError, match=r"other\.json: no document of 'distrocheck check --json'; write one"):
        query("SELECT 1", tmp_path / "r1.ndjson", other)
