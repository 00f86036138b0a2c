"""The verdict: `conforms` only when all evidence for it exists."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engines import in_process, on_both, on_spark
from pyspark.sql import SparkSession

from distro_spark import on_spark as on_spark_engine
from distro_spark.doubts import CHECKPOINT
from distro_spark.errors import UnknownInvariantError
from distro_spark.invariants import INVARIANTS
from distro_spark.result import CutFile, InvalidRows
from distro_traces.compact import compact
from distro_traces.content import digest
from distro_traces.errors import NotATraceError
from distro_traces.event import Kind, Outcome
from distro_traces.ndjson import Recorder, segment_path
from distro_traces.observed import EVERYTHING, INFERRED, Observed


def loaded(recorder: Recorder, node: str, source: str) -> None:
    call = {"operation": "SNAPSHOT", "message": f"load of {node}", "peer": source}
    recorder.record(node, Kind.REQUEST_SENT, at_ms=0, **call)  # type: ignore[arg-type]
    recorder.record(node, Kind.REPLY_RECEIVED, at_ms=0, outcome=Outcome.SUCCESS, **call)  # type: ignore[arg-type]


def record(directory: Path, run: str = "r1", *, diverged: bool = False, checkpoint: bool = True) -> Path:
    """c1 on a, replicated to b after one second and to c after three, or never; then its disconnect, after a stop."""
    with Recorder(directory, run, profile="strict", target="test", nodes=["a", "b", "c"]) as recorder:
        for node in "abc":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b,c")
        for node, source in zip("abc", "bca", strict=True):
            loaded(recorder, node, source)
        recorder.record("a", Kind.CLIENT_CONNECTED, at_ms=5, client="c1", owned=True, revision=0, digest=digest(()))
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=10, client="c1", owned=True, revision=1, digest="X")
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=1010, client="c1", owned=False, revision=1, digest="X")
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=2000, client="c1", owned=True, revision=2, digest="Y")
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=3000, client="c1", owned=False, revision=2, digest="Y")
        if not diverged:
            recorder.record("c", Kind.REPLICA_APPLIED, at_ms=3010, client="c1", owned=False, revision=2, digest="Y")
        if checkpoint:
            for node in "abc":
                recorder.record(node, Kind.CHECKPOINT, at_ms=9000, detail="1")
        recorder.record("c", Kind.NODE_STOPPED, at_ms=9500, detail="crash")
        recorder.record("a", Kind.CLIENT_DISCONNECTED, at_ms=10000, client="c1", owned=True)
        recorder.record("b", Kind.REPLICA_REMOVED, at_ms=10400, client="c1")
    return recorder.path


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_healthy_run_conforms_and_its_changes_are_timed(tmp_path: Path) -> None:
    result = in_process(record(tmp_path), convergence=True)
    assert (result.verdict, result.reasons, result.violations) == ("conforms", (), ())
    assert {each.verdict for each in result.invariants} == {"conforms"}
    # The first change reached c as part of the second; a disconnect need not be sent to a node that is down.
    assert [(each.event.at_ms, each.node, each.ms) for each in result.changes] == [
        (10, "c", 3000),
        (2000, "c", 1010),
        (10000, "b", 400),
    ]
    totals = result.convergence
    assert totals is not None
    assert (totals.count, totals.median_ms, totals.max_ms, totals.unconverged) == (3, 1010, 3000, 0)


def record_changes(directory: Path, run: str = "r1") -> Path:
    """Four contents of c1: one never reaches c alone, the last never at all."""
    with Recorder(directory, run, profile="strict", target="test", nodes=["a", "b", "c"]) as recorder:
        for node in "abc":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b,c")
        for at_ms, content in ((10, "X"), (2000, "Y"), (5000, "X"), (9000, "Z")):
            recorder.record("a", Kind.CLIENT_CHANGED, at_ms=at_ms, client="c1", owned=True, digest=content)
            if content != "Y":
                recorder.record("b", Kind.REPLICA_APPLIED, at_ms=at_ms + 500, client="c1", digest=content)
        recorder.record("c", Kind.REPLICA_APPLIED, at_ms=1510, client="c1", digest="X")
    return recorder.path


def test_a_change_that_arrives_nowhere_is_unconverged_not_slow(tmp_path: Path) -> None:
    result = in_process(record_changes(tmp_path), invariants=["INV-REV"], convergence=True)
    assert [(each.event.at_ms, each.node, each.ms) for each in result.changes] == [
        (9000, "c", None),
        (2000, "c", 3000),  # never as Y, but merged with the next change
        (10, "c", 1500),
        (5000, "c", 0),  # it still had that view
    ]
    totals = result.convergence
    assert totals is not None
    assert (totals.count, totals.max_ms, totals.unconverged) == (3, 3000, 1)


def test_a_member_that_went_down_is_not_waited_for(tmp_path: Path) -> None:
    result = in_process(record(tmp_path, diverged=True, checkpoint=False), invariants=["INV-REV"], convergence=True)
    assert [(each.event.at_ms, each.node, each.ms) for each in result.changes] == [
        (10, "b", 1000),
        (2000, "b", 1000),
        (10000, "b", 400),
    ]


def test_the_document_is_that_of_the_command_line(tmp_path: Path) -> None:
    document = json.loads(json.dumps(in_process(record(tmp_path, diverged=True)).to_json()))
    assert document["schema"] == "distrocheck/check/1"
    assert (document["verdict"], document["events"], document["quarantined"]) == ("violates", 20, 0)
    assert document["seconds"] > 0
    assert [each["name"] for each in document["invariants"]] == list(INVARIANTS)
    assert {each["name"]: each["violations"] for each in document["invariants"] if each["violations"]} == {
        "INV-CONV": 1
    }
    (violation,) = document["violations"]
    assert (violation["node"], violation["client"], violation["first_event"]["at_ms"]) == ("c", "c1", 10)
    assert violation["expected"] == "c holds Y of c1 at checkpoint 1"
    assert (document["convergence"], document["changes"]) == (None, [])


def test_rows_in_quarantine_leave_the_verdict_open_unless_allowed(tmp_path: Path) -> None:
    path = record(tmp_path)
    append(path, '{"kind": 1}\n{"kind": 1}\nbroken\n{"run":"r1","node":"d","seq":1,"at_ms":0,"kind":"checkpoint"}\n')
    result = in_process(path, invariants=["INV-REV"])
    assert (result.verdict, result.quarantined, result.events) == ("inconclusive", 3, 22)
    assert result.reasons == ("3 rows do not fit the schema",)
    assert result.quarantine == (
        InvalidRows("missing field run", 2, str(path), 23),
        InvalidRows("not JSON", 1, str(path), 25),
    )
    allowed = in_process(path, invariants=["INV-REV"], allow_quarantined=True)
    assert (allowed.verdict, allowed.quarantined) == ("conforms", 3)


def test_a_violation_counts_despite_other_faults(tmp_path: Path) -> None:
    path = record(tmp_path, diverged=True)
    append(path, "broken\n")
    append(path, '{"run":"r1","node":"a","seq":9,"at_')
    result = in_process(path, invariants=["INV-CONV"])
    assert (result.verdict, result.quarantined) == ("violates", 1)
    assert result.cuts == (CutFile(str(path), 23),)


def test_a_cut_is_reported_and_does_not_change_the_verdict(tmp_path: Path) -> None:
    path = record(tmp_path)
    append(path, '{"run":"r1","node":"a","seq":9,"at_')
    result = in_process(path, invariants=["INV-OWNER"])
    assert (result.verdict, result.quarantined, result.cuts) == ("conforms", 0, (CutFile(str(path), 23),))
    at_rest = in_process(compact([path], tmp_path / "rest"), invariants=["INV-OWNER"])
    assert (at_rest.verdict, [cut.line for cut in at_rest.cuts], at_rest.events) == ("conforms", [23], result.events)


def test_convergence_is_not_judged_without_a_checkpoint(tmp_path: Path) -> None:
    path = record(tmp_path, diverged=True, checkpoint=False)
    result = in_process(path, invariants=["INV-CONV", "INV-OWNER"])
    assert (result.verdict, result.reasons) == (
        "inconclusive",
        (f"INV-CONV cannot be judged: no run has a checkpoint ({CHECKPOINT})",),
    )
    assert [each.verdict for each in result.invariants] == ["not-judged", "conforms"]
    assert in_process(path, invariants=["INV-REV", "INV-OWNER"]).verdict == "conforms"


def test_missing_rows_leave_the_verdict_open(tmp_path: Path) -> None:
    path = record(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5] + lines[6:]))
    result = in_process(path, invariants=["INV-OWNER"])
    assert (result.verdict, result.missing) == ("inconclusive", 1)
    assert result.reasons == ("1 rows are missing: the sequence numbers have gaps",)


def test_a_missing_row_is_not_what_a_node_has_not_done(tmp_path: Path) -> None:
    """c seems not to have the second content, since the row in which it applied it was lost."""
    path = record(tmp_path)
    lost = '"replica_applied"', '"c"'
    path.write_text(
        "".join(line for line in path.read_text().splitlines(keepends=True) if not all(t in line for t in lost))
    )
    result = in_process(path)
    assert (result.verdict, result.missing, result.violations) == ("inconclusive", 1, ())
    assert {each.name: each.verdict for each in result.invariants}["INV-CONV"] == "not-judged"


def test_a_row_that_does_not_fit_hides_no_divergence(tmp_path: Path) -> None:
    path = record(tmp_path, diverged=True)
    path.write_text(path.read_text().replace('"kind":"node_started"', '"kind":"woken"', 1))
    result = in_process(path, allow_quarantined=True)
    assert (result.verdict, result.quarantined, result.missing) == ("violates", 1, 0)


def without_a_row_beside_bad_lines(directory: Path) -> list[Path]:
    """A run without the row of a change, and one with two lines that are no events."""
    incomplete, invalid = record(directory, "incomplete"), record(directory, "invalid")
    incomplete.write_text("".join(line for number, line in enumerate(incomplete.open()) if number != 12))
    append(invalid, '{"kind": 1}\n{"kind": 1}\n')
    return [incomplete, invalid]


def test_bad_lines_of_one_run_stand_for_no_missing_row_of_another(tmp_path: Path) -> None:
    paths = without_a_row_beside_bad_lines(tmp_path)
    result = in_process(paths, allow_quarantined=True)
    assert (result.verdict, result.quarantined, result.missing) == ("inconclusive", 2, 1)
    assert result.reasons == ("1 rows are missing: the sequence numbers have gaps",)
    append(paths[0], '{"kind": 1}\n')
    assert in_process(paths, allow_quarantined=True).reasons == ()


@pytest.mark.slow
@pytest.mark.spark
def test_spark_counts_bad_lines_by_run_too(spark: SparkSession, tmp_path: Path) -> None:
    paths = without_a_row_beside_bad_lines(tmp_path / "two words")
    assert on_both(spark, paths, allow_quarantined=True).missing == 1


@pytest.mark.parametrize("diverged", [False, True])
def test_a_node_without_any_row_is_missed(tmp_path: Path, diverged: bool) -> None:
    """The header names it. Its state at the checkpoint is unknown, and it may have what excuses the others."""
    path = record(tmp_path, diverged=diverged)
    path.write_text(path.read_text().replace('"nodes":["a","b","c"]', '"nodes":["a","b","c","d"]'))
    result = in_process(path)
    assert (result.verdict, {each.invariant for each in result.violations}) == (
        ("violates", {"INV-CONV"}) if diverged else ("inconclusive", set())
    )
    assert any("without a row of each node" in each for each in result.reasons)
    judged = {each.name: each.verdict for each in result.invariants}
    assert (judged["INV-CONV"], judged["INV-REV"]) == ("violates" if diverged else "not-judged", "not-judged")


def in_segments(directory: Path) -> Path:
    """The diverged run, in files of a few rows."""
    recorded = record(directory / "whole", diverged=True)
    header, *rows = (json.loads(line) for line in recorded.read_text().splitlines())
    (directory / "parts").mkdir()
    for number in range(0, len(rows), 8):
        path = segment_path(directory / "parts" / recorded.name, number // 8 + 1)
        lines = [{**header, "segment": number // 8 + 1}, *rows[number : number + 8]]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory / "parts" / recorded.name


def test_the_first_file_of_a_recording_names_all_its_segments(tmp_path: Path) -> None:
    """What happened after it would not be judged."""
    first = in_segments(tmp_path)
    assert (in_process(first).verdict, in_process(first).events) == ("violates", 20)
    segment_path(first, 2).unlink()
    for path in (first, first.parent):
        with pytest.raises(NotATraceError, match=r"run r1: segments \[1, 3\] instead of 1 to 3"):
            in_process(path)


NOTHING_OBSERVED = Observed(reported=(), sent=(), received=(), operations=(), values=())


def observed_nothing(directory: Path) -> Path:
    path = record(directory, "blind")
    header, _, rows = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(header), "observed": NOTHING_OBSERVED.to_json()}) + "\n" + rows)
    return path


@pytest.mark.parametrize("beside", [False, True])
def test_a_run_of_which_nothing_is_judged_does_not_conform(tmp_path: Path, beside: bool) -> None:
    observed_nothing(tmp_path)
    if beside:
        record(tmp_path, "r1")
    of = "1 of 2 runs" if beside else "1 of 1 runs"
    result = in_process(tmp_path)
    assert (result.verdict, result.reasons) == (
        "inconclusive",
        (f"{of}, blind for one, are not judged: no invariant has the rows that it needs",),
    )
    (reason,) = in_process(tmp_path, invariants=["INV-CONV"]).reasons
    assert reason.startswith(
        "INV-CONV cannot be judged in 1 of 2 runs, blind for one:" if beside else "INV-CONV cannot"
    )


def test_an_invariant_that_applies_to_no_run_is_no_pass(tmp_path: Path) -> None:
    path = record(tmp_path)
    path.write_text(path.read_text().replace('"profile":"strict"', '"profile":"nacos-2.0.4"', 1))
    result = in_process(path, invariants=["INV-REV"])
    assert (result.verdict, result.reasons) == (
        "inconclusive",
        ("INV-REV cannot be judged: not required of nacos-2.0.4",),
    )
    assert in_process(path, invariants=["INV-REV", "INV-OWNER"]).verdict == "conforms"


def test_a_run_without_events_beside_others_does_not_conform(tmp_path: Path) -> None:
    record(tmp_path, "r1")
    with Recorder(tmp_path, "empty", profile="strict", target="test"):
        pass
    result = in_process(tmp_path)
    assert (result.verdict, result.reasons) == ("inconclusive", ("1 of 2 runs, empty for one, have no event",))


def test_a_recording_without_clients_conforms_to_nothing(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r1", profile="strict", target="test", nodes=["a"]) as recorder:
        recorder.record("a", Kind.CHECKPOINT, at_ms=5, detail="1")
    result = in_process(recorder.path)
    assert (result.verdict, result.reasons) == ("inconclusive", ("no event is about a client",))


@pytest.mark.parametrize(("node", "verdict"), [("a", "inconclusive"), ("c", "inconclusive"), (None, "violates")])
def test_a_checkpoint_that_a_running_node_lacks_is_not_judged(tmp_path: Path, node: str | None, verdict: str) -> None:
    """Without the row of a node, its divergence from the others is not compared."""
    path = record(tmp_path, diverged=True)
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [row for row in kept if (row.get("kind"), row.get("node")) != (Kind.CHECKPOINT, node)]
    numbers = dict.fromkeys("abc", 0)
    for row in kept[1:]:
        row["seq"] = numbers[row["node"]] = numbers[row["node"]] + 1
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    result = in_process(path)
    assert (result.verdict, result.missing) == (verdict, 0)
    assert any("without a row of each node that was up" in each for each in result.reasons) == (node is not None)


def test_a_node_that_is_down_need_not_reach_a_checkpoint(tmp_path: Path) -> None:
    path = record(tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    for node in "ab":
        seq = max(row["seq"] for row in rows if row["node"] == node) + 1
        later = {"run": "r1", "node": node, "seq": seq, "at_ms": 21000, "kind": Kind.CHECKPOINT, "detail": "2"}
        append(path, json.dumps(later) + "\n")
    assert in_process(path).reasons == ()


def replace_the_fifth_row_by_the_sixth(path: Path) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5] + lines[6:7] + lines[6:]))


def test_a_duplicate_row_does_not_hide_a_missing_one(tmp_path: Path) -> None:
    path = record(tmp_path)
    replace_the_fifth_row_by_the_sixth(path)
    result = in_process(path, invariants=["INV-OWNER"])
    assert (result.verdict, result.missing, result.doubled) == ("inconclusive", 1, 1)
    assert "1 rows come twice" in result.reasons[1]


def test_a_recording_without_events_shows_nothing(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r1", profile="strict", target="test") as recorder:
        pass
    result = in_process(recorder.path)
    assert (result.verdict, result.events) == ("inconclusive", 0)
    assert "there is no event" in result.reasons


def test_an_unknown_invariant_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownInvariantError, match="no invariant INV-NONE; there are INV-CONV, INV-OWNER, "):
        in_process(record(tmp_path), invariants=["INV-NONE"])


@pytest.mark.slow
@pytest.mark.spark
def test_a_client_that_needs_much_memory_is_announced(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = record(tmp_path)
    for large in (8, 7):
        monkeypatch.setattr(on_spark_engine, "LARGE_ROWS", large)
        on_spark(spark, path, invariants=["INV-OWNER"])
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == ["client c1 of run r1 has 8 rows"]


@pytest.mark.slow  # test_invariants compares the engines; invalid, cut and doubled rows: test_load and test_cluster
@pytest.mark.spark
def test_spark_finds_the_same_in_runs_like_these(spark: SparkSession, tmp_path: Path) -> None:
    """In all of them at once: the engines differ in how they read and group rows."""
    traces = tmp_path / "traces"
    record(traces, "healthy")
    record_changes(traces, "changes")
    record(traces, "open", diverged=True, checkpoint=False)
    invalid = record(tmp_path / "invalid", "invalid")
    append(invalid, '{"kind": 1}\nbroken\n{"run":"invalid","node":"d","seq":1,"at_ms":0}\n')
    append(record(traces, "cut", diverged=True), '{"run":"cut","node":"a","seq":9,"at_')
    replace_the_fifth_row_by_the_sixth(record(traces, "doubled"))
    found = on_both(spark, [traces, invalid], convergence=True)
    assert (len(found.violations), found.quarantined, len(found.cuts), found.doubled) == (1, 3, 1, 1)


@pytest.mark.slow  # that both formats are read alike, test_load finds in less
@pytest.mark.spark
def test_spark_finds_the_same_in_a_run_at_rest_and_in_one_without_events(spark: SparkSession, tmp_path: Path) -> None:
    traces, empty = tmp_path / "traces", tmp_path / "empty"
    record_changes(traces, "changes")
    replace_the_fifth_row_by_the_sixth(record(traces, "doubled"))
    assert on_both(spark, compact([*traces.iterdir()], tmp_path / "rest"), convergence=True).missing == 1
    with Recorder(empty, "empty", profile="strict", target="test"):
        pass
    assert on_both(spark, empty).reasons


C1: dict[str, Any] = {"client": "c1", "revision": 1, "digest": "X"}


@contextmanager
def changed_on_a(directory: Path, observed: Observed) -> Iterator[Recorder]:
    """A run of a and b, in which a second later c1 is as it is on a."""
    with Recorder(directory, "r", profile="strict", target="test", nodes=["a", "b"], observed=observed) as recorder:
        for node in "ab":
            recorder.record(node, Kind.NODE_STARTED, at_ms=0, detail="a,b")
        recorder.record("a", Kind.CLIENT_CHANGED, at_ms=1000, owned=True, **C1)
        yield recorder


@pytest.mark.parametrize(("read", "found"), [(None, {}), ("X", {"INV-EXPIRE": 1, "INV-RESURRECT": 1})])
def test_without_reports_only_a_read_proves_that_a_copy_outlived_its_lease(
    tmp_path: Path, read: str | None, found: dict[str, int]
) -> None:
    """The DELETE to b was swallowed, and no row shows when the lease of its copy ends: it is read minutes later."""
    with changed_on_a(tmp_path, INFERRED) as recorder:
        recorder.record("b", Kind.REPLICA_APPLIED, at_ms=2000, owned=False, **C1)
        recorder.record("a", Kind.CLIENT_DISCONNECTED, at_ms=3000, client="c1", owned=True)
        shown = {"client": "c1"} if read is None else {**C1, "owned": False}
        recorder.record("b", Kind.OBSERVED, at_ms=300_000, **shown)
    names = ["INV-EXPIRE", "INV-RESURRECT"]
    judged = in_process(tmp_path, invariants=names).invariants
    assert {each.name: each.violations for each in judged if each.violations} == found


@pytest.mark.parametrize(
    ("observed", "later_ms", "found"), [(INFERRED, 5_990, 1), (INFERRED, 6_010, 0), (EVERYTHING, 6_010, 1)]
)
def test_an_answer_on_a_link_may_have_come_too_late_for_the_caller(
    tmp_path: Path, observed: Observed, later_ms: int, found: int
) -> None:
    """b answers the CHANGE of a in time; a sends it again. The call can have timed out only if a retry is due."""
    with changed_on_a(tmp_path, observed) as recorder:
        for message, at_ms in (("m1", 2000), ("m2", 2000 + later_ms)):
            call = {"message": message, "operation": "CHANGE"}
            recorder.record("a", Kind.REQUEST_SENT, at_ms=at_ms, peer="b", **call, **C1)
            recorder.record("b", Kind.REQUEST_RECEIVED, at_ms=at_ms, peer="a", **call, **C1)
            recorder.record("b", Kind.REPLICA_APPLIED, at_ms=at_ms, owned=False, message=message, **C1)
            ended = {**call, "client": "c1", "outcome": Outcome.SUCCESS}
            recorder.record("b", Kind.REPLY_SENT, at_ms=at_ms, peer="a", **ended)
            recorder.record("a", Kind.REPLY_RECEIVED, at_ms=at_ms, peer="b", **ended)
    (judged,) = in_process(tmp_path, invariants=["INV-AIM"]).invariants
    assert judged.violations == found
