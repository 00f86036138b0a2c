"""The replay of many runs has the same results as `validate` of each run alone."""

from dataclasses import replace
from pathlib import Path

import pytest
from engines import in_process, on_both
from pyspark.sql import SparkSession

from distro_conformance.simulation.run import SimulationOptions, simulate
from distro_model.profiles import profile_named
from distro_model.simulation.faults import faults_named
from distro_spark import replay as replaying
from distro_spark.result import Rejected
from distro_traces.event import Event, Kind, Outcome
from distro_traces.ndjson import Recorder, TraceFile
from distro_traces.reading import read_run
from distro_validation.validate import Validated, validate

MUTANTS = ("B02", "m-unknown-delete-fails")


def simulated(out: Path, mutant: str | None) -> TraceFile:
    options = SimulationOptions(out=out, clients=6, duration_s=90, seed=5, faults=faults_named("all"), mutant=mutant)
    simulate(options, lambda *_: None)
    return read_run(sorted(out.glob("run=*"))[0])


def rewritten(directory: Path, run: str, trace: TraceFile, wrong: dict[int, Event | None]) -> TraceFile:
    """The rows under another name, some of them changed or left out and the rest renumbered."""
    header = trace.header
    names = {"profile": header.profile, "target": header.target, "clock": header.clock, "nodes": header.nodes}
    with Recorder(directory, run, observed=header.observed, **names) as recorder:  # type: ignore[arg-type]
        for number, original in enumerate(trace.events):
            event = wrong.get(number, original)
            if event is not None:
                fields = {key: value for key, value in event.to_json().items() if key not in ("run", "seq")}
                recorder.record(fields.pop("node"), Kind(fields.pop("kind")), **fields)
    return read_run(recorder.path)


def corpus(directory: Path, scratch: Path) -> dict[str, TraceFile]:
    """Runs of the model, runs of mutants, and runs with altered rows of two clients."""
    right = simulated(scratch / "strict", None)
    traces = {"right": rewritten(directory, "right", right, {})}
    for mutant in MUTANTS:
        traces[mutant] = rewritten(directory, mutant, simulated(scratch / mutant, mutant), {})
    applied = [i for i, event in enumerate(right.events) if event.kind is Kind.REPLICA_APPLIED and event.message]
    two = {right.events[i].client: i for i in applied}
    assert len(two) > 1
    dropped, moved, *_ = two.values()
    later = replace(right.events[moved], revision=(right.events[moved].revision or 0) + 7)
    traces["altered"] = rewritten(directory, "altered", right, {dropped: None, moved: later})
    answer = next(i for i, e in enumerate(right.events) if e.kind is Kind.REPLY_SENT and e.operation == "SNAPSHOT")
    failed = replace(right.events[answer], outcome=Outcome.FAIL)
    traces["snapshot"] = rewritten(directory, "snapshot", right, {answer: failed})
    return traces


def place(rejected: Rejected) -> tuple[str | None, str, int, tuple[str, ...]]:
    return rejected.client, rejected.event.node, rejected.event.seq, rejected.guards


def place_of(judged: Validated) -> tuple[str | None, str, int, tuple[str, ...]] | None:
    if judged.rejection is None:
        return None
    event = judged.rejection.event
    return event.client, event.node, event.seq, tuple(str(each) for each in judged.rejection.candidates)


@pytest.mark.slow
@pytest.mark.spark
def test_it_agrees_with_validate(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = corpus(tmp_path / "traces", tmp_path)
    alone = {run: validate(t.header, t.events, profile_named(t.header.profile)) for run, t in traces.items()}
    result = on_both(spark, tmp_path / "traces", invariants=["INV-OWNER"], replay=True)
    monkeypatch.setattr(replaying, "REPLAY_ROWS", 900)
    in_parts = in_process(tmp_path / "traces", invariants=["INV-OWNER"], replay=True)
    assert in_parts.without_times() == result
    together = result.replay
    assert together is not None
    found = {run: [place(each) for each in together.rejections if each.run == run] for run in traces}
    assert {run for run, judged in alone.items() if judged.accepted} == {"right"}
    for run, judged in alone.items():
        assert (place_of(judged) in found[run]) if not judged.accepted else found[run] == [], run
    # `validate` ends at the first rejection, and here each client has its own.
    assert len({client for client, *_ in found["altered"]}) == 2
    assert (result.verdict, together.rejected) == ("violates", sum(len(each) for each in found.values()))


def test_unobserved_rows_leave_the_verdict_open(tmp_path: Path) -> None:
    trace = simulated(tmp_path / "strict", None)
    begun_later = {i: None for i, event in enumerate(trace.events) if event.kind is Kind.NODE_STARTED}
    part = rewritten(tmp_path / "traces", "part", trace, begun_later)
    alone = validate(part.header, part.events, profile_named("strict"))
    result = in_process(tmp_path / "traces", invariants=["INV-OWNER"], replay=True)
    assert result.replay is not None
    assert alone.undecided == result.replay.undecided > 0
    assert (alone.accepted, result.replay.rejections, result.verdict) == (True, (), "inconclusive")
