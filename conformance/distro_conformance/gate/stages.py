"""The stages of the gate, one function each: options in, rows of the report out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from distro_conformance.gate.options import GateOptions
from distro_conformance.language.recording import record
from distro_conformance.language.text import Scenario
from distro_conformance.node.run import run_node_conformance
from distro_conformance.release import STRICT
from distro_conformance.report import Failure, InvariantRow, RequirementRow, Stage, ViolationRow
from distro_conformance.scenario.exploration import Explored, against_the_list, explore_profile
from distro_conformance.scenarios import RECORDED_LIFE, scenario_named
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, Verdict, worst
from distro_conformance.walks.hunt import HuntOptions, hunt, save_failure
from distro_spark.check import check
from distro_spark.result import CheckResult, InvariantResult
from distro_traces.compact import by_run, compact

REAL_CLUSTER_RUN = "real-cluster"
LOCKSTEP_RUN = "lockstep-"


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage and the rows that it adds to the report."""

    stage: Stage
    requirements: tuple[RequirementRow, ...] = ()
    invariants: tuple[InvariantRow, ...] = ()
    violations: tuple[ViolationRow, ...] = ()
    violations_left_out: int = 0
    failures: tuple[Failure, ...] = ()
    convergence: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()


def explore_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Every reachable state of small clusters; what the release is known to break is listed with its bug."""
    began, searches = time.monotonic(), []
    for bounds in options.budget.explore:
        on_progress(f"explore: {bounds.nodes} nodes, {bounds.clients} clients, {bounds.changes} changes")
        searches.append(explore_profile(profile, bounds, seconds_max=options.budget.explore_seconds))
    states = sum(search.exploration.distinct_states for search in searches)
    transitions = sum(search.exploration.transitions for search in searches)
    rows = _property_rows(searches, profile)
    known = sum(row.known > 0 for row in rows)
    summary = f"{states} states, {transitions} transitions" + (f"; {known} known breaks" if known else "")
    stage = Stage(
        "explore",
        worst(row.verdict for row in rows),
        time.monotonic() - began,
        summary,
        {"distinct_states": states, "transitions": transitions},
    )
    failures = [
        failure
        for search in searches
        for judged in search.judged
        if judged.verdict is Verdict.VIOLATES and not judged.known
        for failure in _counterexample(options, search, judged.result.name)
    ]
    return StageResult(stage, invariants=rows, failures=tuple(failures))


def _property_rows(searches: Sequence[Explored], profile: str) -> tuple[InvariantRow, ...]:
    """One row a property. What the bounds of one search do not speak about, another's may."""
    rows = []
    for name in dict.fromkeys(judged.result.name for search in searches for judged in search.judged):
        every = [judged for search in searches for judged in search.judged if judged.result.name == name]
        decided = [judged for judged in every if judged.result.holds is not None]
        told = next((judged for judged in decided if judged.result.counterexample), (decided or every)[0])
        listed = against_the_list(told, profile)
        broken = sum(judged.verdict is Verdict.VIOLATES and judged.known is None for judged in every)
        known = sum(judged.known is not None for judged in every)
        verdict = Verdict.VIOLATES if broken else listed.verdict
        rows.append(InvariantRow(name, "model", verdict, broken, listed.message, known))
    return tuple(rows)


def _counterexample(options: GateOptions, search: Explored, name: str) -> list[Failure]:
    scenario = search.scenarios.get(name)
    if not isinstance(scenario, Scenario):
        return []
    path = options.out / "failures" / f"explore-{search.profile}-{name}.scenario"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario.render(), encoding="utf-8")
    replay = f"distrocheck replay {path} --target model"
    return [Failure(f"{name} does not hold in the model of {search.profile}", scenario.render(), replay, "")]


def node_stage(options: GateOptions, on_progress: OnProgress) -> StageResult:
    """One node of the target, every requirement."""
    report = run_node_conformance(
        options.target,
        options.profile,
        options.requirements,
        mutant=options.mutant,
        on_progress=on_progress,
        on_result=lambda result: on_progress(f"node: {result.requirement.id}"),
    )
    rows = tuple(
        RequirementRow(
            result.requirement.id,
            result.requirement.level.value,
            result.verdict,
            result.requirement.text,
            result.message,
            result.known,
        )
        for result in report.results
    )
    count = sum(row.verdict is Verdict.CONFORMS for row in rows)
    known = sum(row.known is not None for row in rows)
    summary = f"{count} of {len(rows)} requirements met" + (f", {known} known failures" if known else "")
    figures = {"start_seconds": round(report.start_seconds, 3)}
    return StageResult(Stage("node", report.verdict, report.seconds, summary, figures), requirements=rows)


def lockstep_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Three embedded nodes with the behaviour of the profile, under random faults, beside the model; recorded."""
    result = hunt(
        HuntOptions(
            profile=profile,
            mutant=options.mutant,
            seconds=options.budget.lockstep_seconds,
            seed=options.seed,
            record_into=options.out / "traces",
            transport=options.transport,
        ),
        on_progress,
    )
    rate = result.steps / result.seconds
    summary = f"{result.steps} steps in {result.runs} runs, {rate:.0f} steps/s"
    summary += f", {result.steps_over['grpc']} over gRPC"
    failures: tuple[Failure, ...] = ()
    if result.failure:
        name = f"lockstep-{options.mutant or profile}-{options.seed}"
        scenario, pytest = save_failure(result.failure, options.out / "failures", name)
        summary += "; nodes and model part"
        text = result.failure.scenario.render()
        failures = (
            Failure("The nodes left the model", text, f"distrocheck replay {scenario}", f"python -m pytest {pytest}"),
        )
    figures = {"steps": result.steps, "runs": result.runs, "steps_per_s": round(rate, 1)}
    figures |= {f"steps_over_{carrier}": steps for carrier, steps in result.steps_over.items()}
    return StageResult(Stage("lockstep", result.verdict, result.seconds, summary, figures), failures=failures)


def real_cluster_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Three real servers with a recording forwarder on each link; what the recording is worth, `check` says."""
    began = time.monotonic()
    scenario = scenario_named(RECORDED_LIFE)
    try:
        played = record(
            scenario,
            target=options.target,
            profile=profile,
            directory=options.out / "traces",
            run=REAL_CLUSTER_RUN,
            on_progress=on_progress,
            on_step=lambda step: on_progress(f"{step.text}: {step.outcome}"),
        )
    except TargetError as error:
        return StageResult(Stage("real cluster", Verdict.INCONCLUSIVE, time.monotonic() - began, str(error)))
    expected = [step for step in played.steps if step.text.startswith("expect")]
    failed = [step for step in played.steps if step.verdict is not Verdict.CONFORMS]
    summary = f"three nodes, recorded; {len(expected) - len(failed)} of {len(expected)} expectations hold"
    summary += "".join(f"; '{step.text}': {step.outcome}" for step in failed)
    seconds = time.monotonic() - began
    figures = {"start_seconds": round(seconds - played.steps[-1].at_ms / 1000, 1)}
    return StageResult(Stage("real cluster", played.verdict, seconds, summary, figures))


def check_stage(
    options: GateOptions, profile: str, new_session: Callable[[], SparkSession], on_progress: OnProgress
) -> StageResult:
    """The invariants on everything that was recorded."""
    on_progress("check: starting Spark")
    began = time.monotonic()
    _put_at_rest(options.out / "traces")
    session = new_session()
    try:
        on_progress("check: invariants over everything recorded")
        result = check(session, options.out / "traces")
    finally:
        session.stop()
    rows = _violation_rows(result, profile)
    news = [row for row in rows if row.known is None]
    summary = f"{result.events} events of {result.runs} runs, {len(news)} violations"
    summary += f", {len(rows) - len(news)} known" if len(rows) > len(news) else ""
    summary += "; " + "; ".join(result.reasons) if result.reasons else ""
    figures = {"events": result.events, "quarantined": result.quarantined, "check_seconds": round(result.seconds, 1)}
    return StageResult(
        Stage("check", _check_verdict(result, news), time.monotonic() - began, summary, figures),
        invariants=tuple(_invariant_row(each, rows) for each in result.invariants),
        violations=rows,
        violations_left_out=result.violations_left_out,
        convergence={
            "changes": result.convergence.count,
            "median_ms": result.convergence.median_ms,
            "max_ms": result.convergence.max_ms,
            "unconverged": result.convergence.unconverged,
        },
        changes=_changes(result),
    )


def _check_verdict(result: CheckResult, news: Sequence[ViolationRow]) -> Verdict:
    """What is listed decides; when more was found than is listed, nobody looked at the rest."""
    if news:
        return Verdict.VIOLATES
    return Verdict.INCONCLUSIVE if result.reasons or result.violations_left_out else Verdict.CONFORMS


def _invariant_row(judged: InvariantResult, rows: Sequence[ViolationRow]) -> InvariantRow:
    of_it = [row for row in rows if row.invariant == judged.name]
    news = sum(row.known is None for row in of_it)
    verdict = Verdict(judged.verdict)
    if verdict is Verdict.VIOLATES and not news:
        verdict = Verdict.CONFORMS
    return InvariantRow(judged.name, "trace", verdict, news, judged.text, len(of_it) - news)


def _put_at_rest(traces: Path) -> None:
    """From the recordings, one line an event, to Parquet by run; a recording goes when its run is whole."""
    for recordings in by_run(sorted(traces.glob("*.ndjson"))):
        compact(recordings, traces)
        for recording in recordings:
            recording.unlink()


def _violation_rows(result: CheckResult, profile: str) -> tuple[ViolationRow, ...]:
    """As listed. What a lockstep run of a release breaks, that release breaks: its model went along step by step."""

    def known(run: str, bug: str | None) -> str | None:
        is_predicted = profile != STRICT and run.startswith(LOCKSTEP_RUN)
        return bug or (f"the model of {profile}" if is_predicted else None)

    return tuple(
        ViolationRow(
            v.invariant,
            v.run,
            v.client,
            v.node,
            str(v.first_event),
            str(v.last_event),
            v.message,
            known(v.run, v.known),
        )
        for v in result.violations
    )


def _changes(result: CheckResult) -> tuple[Mapping[str, Any], ...]:
    """Those of the real cluster, in their order; of hundreds of embedded runs the summary is enough."""
    changes = sorted((c for c in result.changes if c.run == REAL_CLUSTER_RUN), key=lambda c: c.event.at_ms)
    return tuple(
        {
            "node": c.event.node,
            "what": f"{c.event.kind} of {c.client} at {c.event.at_ms} ms",
            "ms": c.ms,
            "last": c.node,
        }
        for c in changes
    )
