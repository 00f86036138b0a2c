"""The stages of the gate, one function each: options in, rows of the report out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from distro_conformance.exploration.explored import Explored, against_the_list, diagram_of, explore_profile
from distro_conformance.extras import missing_extra
from distro_conformance.findings.finding import Finding, Judgement, command, headline, verdict_of
from distro_conformance.findings.traces import findings_of
from distro_conformance.gate.options import GateOptions
from distro_conformance.language.recording import record
from distro_conformance.language.replay import findings_of_replay
from distro_conformance.language.text import Scenario
from distro_conformance.node.run import run_node_conformance
from distro_conformance.report import Failure, Stage
from distro_conformance.report.walks import failure_of
from distro_conformance.scenarios import RECORDED_LIFE, scenario_named, scenario_path
from distro_conformance.targets.registry import resolve_target
from distro_conformance.targets.target import OnProgress
from distro_conformance.verdict import TargetError, Verdict, worst
from distro_conformance.walks.processes import random_walks_on
from distro_conformance.walks.result import WalkOptions, finding_of
from distro_conformance.walks.saved_failures import save_failure
from distro_spark.check import check
from distro_spark.errors import JavaMissingError, SessionError
from distro_spark.local import Local
from distro_spark.result import CheckResult
from distro_traces.compact import by_run, compact

REAL_CLUSTER_RUN = "real-cluster"


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage, and its part of the report."""

    stage: Stage
    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    convergence: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    coverage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def explore_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Search every reachable state of small clusters; known violations of the release are listed with their bugs."""
    began, searches = time.monotonic(), []
    for bounds in options.budget.explore:
        on_progress(f"explore: {bounds.nodes} nodes, {bounds.clients} clients, {bounds.changes} changes")
        explored = explore_profile(profile, bounds, seconds_max=options.budget.explore_seconds)
        searches.append(against_the_list(explored, options.budget.explore_seconds))
    states = sum(search.exploration.distinct_states for search in searches)
    transitions = sum(search.exploration.transitions for search in searches)
    findings = tuple(finding for search in searches for finding in search.findings)
    known = len({finding.about for finding in findings if finding.judgement is Judgement.KNOWN})
    summary = f"{states} states, {transitions} transitions" + (f"; {known} known breaks" if known else "")
    stage = Stage(
        "explore",
        verdict_of(findings),
        time.monotonic() - began,
        summary,
        {"distinct_states": states, "transitions": transitions},
    )
    failures = [
        failure
        for search in searches
        for finding in search.findings
        if finding.violates
        for failure in _counterexample(options, search, finding.about)
    ]
    return StageResult(stage, findings, tuple(failures), coverage=_coverage(searches))


def _coverage(searches: Iterable[Explored]) -> Mapping[str, Mapping[str, int]]:
    """How often each kind of transition was taken, and how often each of its guards blocked one."""
    taken: Counter[str] = Counter()
    guards: Counter[str] = Counter()
    for search in searches:
        taken.update(search.taken)
        for kind, counts in search.guards.items():
            guards.update({f"{kind}: {guard}": count for guard, count in counts.items()})
    return {"transitions": taken, "guards": guards}


def _counterexample(options: GateOptions, search: Explored, name: str) -> list[Failure]:
    scenario = search.scenarios.get(name)
    if not isinstance(scenario, Scenario):
        return []
    path = options.out / "failures" / f"explore-{search.profile}-{name}.scenario"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario.render(), encoding="utf-8")
    title = f"{name} does not hold in the model of {search.profile}"
    found = search.exploration.result(name).counterexample
    drawn = None if found is None else diagram_of(found)
    return [Failure(name, title, scenario.render(), command("replay", path, "--target", "model"), "", diagram=drawn)]


def node_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Check one node of the target against every requirement."""
    report = run_node_conformance(
        resolve_target(options.target, profile, options.mutant, credentials=options.credentials),
        options.requirements,
        skip=options.skip,
        on_progress=on_progress,
        on_finding=lambda finding: on_progress(f"node: {finding.about}"),
    )
    report = options.expectations.judged(report)
    stage = Stage("node", report.verdict, report.seconds, headline(report.findings), report.figures)
    return StageResult(stage, report.findings)


def lockstep_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Run and record three embedded nodes with the behaviour of the profile, under random faults, beside the model."""
    result = random_walks_on(
        options.jobs,
        WalkOptions(
            profile=profile,
            mutant=options.mutant,
            seconds=options.budget.lockstep_seconds,
            seed=options.seed,
            database=options.database,
            record_into=options.out / "traces",
            transport=options.transport,
        ),
        on_progress,
    )
    rate = result.steps / result.seconds
    summary = f"{result.steps} steps in {result.runs} runs, {rate:.0f} steps/s"
    summary += f", {result.steps_over['grpc']} over gRPC; {result.runs_with_http} runs with clients of the HTTP API"
    summary += result.unjudged
    failures: tuple[Failure, ...] = ()
    if result.failure:
        scenario, pytest = save_failure(result.failure, options.out / "failures", result.options.failure_name)
        summary += "; nodes and model differ"
        failures = (failure_of(result, result.failure, scenario, pytest),)
    figures = {"steps": result.steps, "runs": result.runs, "steps_per_s": round(rate, 1)}
    figures |= {"runs_with_http": result.runs_with_http, "runs_lost": result.not_judged["runs_lost"]}
    figures |= {f"steps_over_{kind}": steps for kind, steps in result.steps_over.items()}
    stage = Stage("lockstep", result.verdict, result.seconds, summary, figures)
    return StageResult(stage, (finding_of(result),), failures, coverage=result.coverage)


def real_cluster_stage(options: GateOptions, profile: str, on_progress: OnProgress) -> StageResult:
    """Run three real servers with a recording forwarder on each link; `check` judges the recording."""
    began = time.monotonic()
    scenario = scenario_named(RECORDED_LIFE)
    try:
        played = record(
            scenario,
            target=options.target,
            profile=profile,
            directory=options.out / "traces",
            run=REAL_CLUSTER_RUN,
            credentials=options.credentials,
            on_progress=on_progress,
            on_step=lambda step: on_progress(f"{step.text}: {step.outcome}"),
        )
    except TargetError as error:
        finding = Finding(
            about="REAL-CLUSTER",
            by="scenario",
            judgement=Judgement.NOT_JUDGED,
            text="Three servers play the whole scenario over recording links.",
            message=str(error),
            run=REAL_CLUSTER_RUN,
            again=command("replay", scenario_path(RECORDED_LIFE), "--target", options.target),
        )
        stage = Stage("real cluster", Verdict.INCONCLUSIVE, time.monotonic() - began, str(error))
        return StageResult(stage, (finding,))
    expected = [step for step in played.steps if step.text.startswith("expect")]
    failed = [step for step in played.steps if step.verdict is not Verdict.CONFORMS]
    summary = f"three nodes, recorded; {len(expected) - len(failed)} of {len(expected)} expectations hold"
    summary += "".join(f"; '{step.text}': {step.outcome}" for step in failed)
    seconds = time.monotonic() - began
    figures = {"start_seconds": round(seconds - played.steps[-1].at_ms / 1000, 1)}
    stage = Stage("real cluster", played.verdict, seconds, summary, figures)
    findings = (
        replace(each, run=REAL_CLUSTER_RUN)
        for each in findings_of_replay(played, scenario_path(RECORDED_LIFE), RECORDED_LIFE)
    )
    return StageResult(stage, tuple(findings))


def check_stage(options: GateOptions, on_progress: OnProgress) -> StageResult:
    """Check the invariants on all recordings."""
    began = time.monotonic()
    on_progress("check: invariants over everything recorded")
    _put_at_rest(options.out / "traces")
    result = check(Local(options.out / "traces"), convergence=True)
    findings = findings_of(result, str(options.out / "traces"))
    news, known = (
        sum(finding.times for finding in findings if finding.judgement is judgement)
        for judgement in (Judgement.VIOLATES, Judgement.KNOWN)
    )
    summary = f"{result.events} events of {result.runs} runs, {news} violations" + (f", {known} known" if known else "")
    summary += "; " + "; ".join(result.reasons) if result.reasons else ""
    verdict = Verdict(result.verdict)
    if options.budget.on_spark:
        on_progress("check: the same on Spark")
        of_spark, compared = _on_spark(options.out / "traces", result)
        verdict, summary = worst((verdict, of_spark)), f"{summary}; {compared}"
    figures = {"events": result.events, "quarantined": result.quarantined, "check_seconds": round(result.seconds, 1)}
    return StageResult(
        Stage("check", verdict, time.monotonic() - began, summary, figures),
        findings,
        convergence=_convergence(result),
        changes=_changes(result),
    )


def _on_spark(traces: Path, expected: CheckResult) -> tuple[Verdict, str]:
    """The comparison of the same check on Spark; inconclusive where Spark cannot run."""
    try:
        from distro_spark.on_spark import OnSpark  # noqa: PLC0415 - loads Spark
        from distro_spark.session import local_session  # noqa: PLC0415

        session = local_session(small=True)
    except (ModuleNotFoundError, JavaMissingError, SessionError) as error:
        reason = (missing_extra(error) if isinstance(error, ModuleNotFoundError) else None) or str(error)
        return Verdict.INCONCLUSIVE, f"not checked on Spark: {reason}"
    try:
        with OnSpark(session, traces) as engine:
            found = check(engine, convergence=True)
    finally:
        session.stop()
    one, other = found.without_times(), expected.without_times()
    different = [each.name for each in fields(CheckResult) if getattr(one, each.name) != getattr(other, each.name)]
    if different:
        return Verdict.VIOLATES, f"Spark finds something else: {', '.join(different)}"
    return Verdict.CONFORMS, "the same on Spark"


def _put_at_rest(traces: Path) -> None:
    """Convert the recordings, one line an event, to Parquet by run; a recording is removed when its run is complete."""
    for recordings in by_run(sorted(traces.glob("*.ndjson"))):
        compact(recordings, traces)
        for recording in recordings:
            recording.unlink()


def _convergence(result: CheckResult) -> Mapping[str, Any]:
    times = result.convergence
    if times is None:
        return {}
    return {
        "changes": times.count,
        "median_ms": times.median_ms,
        "max_ms": times.max_ms,
        "unconverged": times.unconverged,
    }


def _changes(result: CheckResult) -> tuple[Mapping[str, Any], ...]:
    """The changes of the real cluster in their order, else the slowest of all embedded runs."""
    of_real = sorted((c for c in result.changes if c.run == REAL_CLUSTER_RUN), key=lambda c: c.event.at_ms)
    changes = of_real or result.changes
    return tuple(
        {
            "node": c.event.node,
            "what": f"{c.event.kind} of {c.client} at {c.event.at_ms} ms" + ("" if of_real else f" in {c.run}"),
            "ms": c.ms,
            "last": c.node,
        }
        for c in changes
    )
