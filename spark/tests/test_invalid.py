"""Rows that no run can have recorded are reported as invalid by `check` and `validate`, and are not judged.

Each case makes a run with a divergence invalid; `check` finds the divergence in the valid run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engines import in_process, on_both
from pyspark.sql import SparkSession

from distro_model.profiles import profile_named
from distro_spark.follow import follow
from distro_spark.sinks import ParquetSink
from distro_traces.compact import compact
from distro_traces.content import digest
from distro_traces.event import Kind
from distro_traces.ndjson import Recorder, read_ndjson
from distro_validation.validate import validate

Lines = list[dict[str, Any]]


def record(directory: Path, run: str = "r1", clock: str = "virtual") -> Path:
    """c1 on a reaches no other node."""
    with Recorder(directory, run, profile="strict", target="test", clock=clock, nodes=["a", "b", "c"]) as recorder:  # type: ignore[arg-type]
        for node in "abc":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b,c")
        c1: dict[str, Any] = {"client": "c1", "owned": True}
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=5, revision=0, digest=digest(()), **c1)
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=10, revision=1, digest="X", **c1)
        for node in "abc":
            recorder.record(node, Kind.CHECKPOINT, at_ms=9000, detail="1")
    return recorder.path


def rewritten(path: Path, change: Callable[[Lines], Lines]) -> Path:
    header, *lines = path.read_text().splitlines()
    rows = change([json.loads(line) for line in lines])
    path.write_text("\n".join([header, *(json.dumps(row, separators=(",", ":")) for row in rows), ""]))
    return path


def another_process(rows: Lines) -> Lines:
    """A second node with the name a numbers its rows from 1."""
    started, connected = ({**row, "at_ms": row["at_ms"] + 1} for row in rows if row["node"] == "a" and row["seq"] < 3)
    return [*rows[:4], started, {**connected, "client": "c2"}, *rows[4:]]


def another_start(rows: Lines) -> Lines:
    later = [{**row, "seq": row["seq"] + 1} if row["node"] == "a" and row["seq"] > 2 else row for row in rows[4:]]
    return [*rows[:4], {**rows[0], "seq": 3, "at_ms": 7}, *later]


def stop_of(row: dict[str, Any]) -> dict[str, Any]:
    """A stop of its node, at its place."""
    return {**{name: row[name] for name in ("run", "node", "seq", "at_ms")}, "kind": "node_stopped"}


def clock_back(rows: Lines) -> Lines:
    return [{**row, "at_ms": 3} if row["client" if "client" in row else "node"] == "c1" and row["seq"] == 3 else row
            for row in rows]  # fmt: skip


INVALID: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "two processes of one name": (
        another_process,
        "two nodes are called a: one number stands for two different rows, at row 1 of a",
    ),
    "a start of a node that is up": (
        another_start,
        "two nodes are called a: it is started while it is up, at row 3 of a",
    ),
    "a virtual clock that goes back": (
        clock_back,
        "the virtual clock of a goes back from 5 ms to 3 ms, at row 3 of a",
    ),
}


def test_the_valid_run_has_a_violation(tmp_path: Path) -> None:
    assert in_process(record(tmp_path), invariants=["INV-CONV"]).verdict == "violates"


@pytest.mark.parametrize("name", INVALID)
@pytest.mark.parametrize("is_at_rest", [False, True], ids=["recording", "at rest"])
def test_a_spoiled_run_is_not_judged_and_the_others_are(tmp_path: Path, name: str, *, is_at_rest: bool) -> None:
    change, text = INVALID[name]
    path = rewritten(record(tmp_path), change)
    if is_at_rest:
        (path,) = compact([path], tmp_path / "rest")
    result = in_process(path, replay=True, convergence=True, responsibility=True)
    assert (result.verdict, result.violations) == ("inconclusive", ())
    assert result.reasons == (f"run r1 is not judged: {text}",)
    assert {each.verdict for each in result.invariants} == {"not-judged"}
    beside = in_process([path, record(tmp_path / "other", "r2")], invariants=["INV-CONV"])
    assert ({each.run for each in beside.violations}, beside.reasons) == ({"r2"}, result.reasons)


@pytest.mark.parametrize("name", INVALID)
def test_validate_reports_the_same_and_rejects_nothing(tmp_path: Path, name: str) -> None:
    change, text = INVALID[name]
    trace = read_ndjson(rewritten(record(tmp_path), change))
    found = validate(trace.header, trace.events, profile_named("strict"))
    assert (found.rejection, found.undecided) == (None, len(trace.events))
    assert found.doubts == (f"run r1 is not judged: {text}",)


def test_a_wall_clock_may_go_back(tmp_path: Path) -> None:
    path = rewritten(record(tmp_path, clock="wall"), clock_back)
    assert in_process(path, invariants=["INV-CONV"]).verdict == "violates"
    trace = read_ndjson(path)
    assert validate(trace.header, trace.events, profile_named("strict")).doubts == ()


def test_a_node_that_was_stopped_may_be_started_and_where_rows_are_missing_that_may_be_its_stop(tmp_path: Path) -> None:
    stopped = rewritten(
        record(tmp_path / "stopped", "r1"),
        lambda rows: another_start([stop_of(row) if row == rows[3] else row for row in rows]),
    )
    gap = rewritten(record(tmp_path / "gap", "r2"), lambda rows: [row for row in another_start(rows) if row != rows[3]])
    for path in (stopped, gap):
        reasons = in_process(path, invariants=["INV-OWNER"]).reasons
        assert not any("is not judged" in reason for reason in reasons), reasons


def test_of_many_spoiled_runs_some_are_named(tmp_path: Path) -> None:
    for number in range(5):
        rewritten(record(tmp_path / "traces", f"r{number}"), clock_back)
    found = in_process(tmp_path / "traces", invariants=["INV-CONV"])
    assert [reason[:7] for reason in found.reasons] == ["run r0 ", "run r1 ", "run r2 ", "2 furth"]
    assert found.violations == ()


def test_a_spoiled_run_that_is_followed_is_not_judged_either(tmp_path: Path) -> None:
    rewritten(record(tmp_path / "traces", "r1"), another_process)
    record(tmp_path / "traces", "r2")
    reported: list[str] = []
    sinks = [ParquetSink(tmp_path / "found")]
    follow(
        tmp_path / "traces",
        invariants=["INV-CONV"],
        on_violations=lambda rows: reported.extend(rows["run"]),
        sinks=sinks,
        idle_s=0,
    )
    assert set(reported) == {"r2"}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_judges_neither(spark: SparkSession, tmp_path: Path) -> None:
    """All invalid runs beside a valid one, as they were recorded and at rest."""
    traces = tmp_path / "traces"
    for number, (change, _) in enumerate(INVALID.values()):
        rewritten(record(traces, f"r{number}"), change)
    record(traces, "valid")
    for paths in ([traces], compact([*traces.iterdir()], tmp_path / "rest")):
        found = on_both(spark, paths, replay=True, convergence=True, responsibility=True)
        assert {each.run for each in found.violations} == {"valid"}
        assert sum("is not judged" in reason for reason in found.reasons) == len(INVALID)


@pytest.mark.spark
@pytest.mark.slow
def test_a_clock_that_goes_back_is_seen_wherever_a_file_is_split(spark: SparkSession, tmp_path: Path) -> None:
    """Within a batch of rows, and between two of them."""
    rows, found = 300, {}
    for back in (2, 150, 151, 300):
        place = tmp_path / ("apart" if back == 151 else "traces")  # three reasons are named at most
        with Recorder(place, str(back), profile="strict", target="test", nodes=["a", "b"]) as recorder:
            for number in range(1, rows + 1):
                at_ms = number - 2 if number == back else number
                for node, ms in (("a", number), ("b", at_ms)):
                    recorder.record(node, Kind.REPLICA_REMOVED, at_ms=ms, client=f"c{number}")
        found[back] = (
            f"run {back} is not judged: the virtual clock of b goes back from {back - 1} ms to {back - 2} ms, "
            f"at row {back} of b"
        )
    for batch_rows in ("7", "10000"):
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch_rows)
        try:
            reasons = [
                reason
                for place in ("apart", "traces")
                for reason in on_both(spark, tmp_path / place, invariants=["INV-OWNER"]).reasons
            ]
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
        assert {*found.values()} <= {*reasons}
