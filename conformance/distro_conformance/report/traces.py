"""What `check` and `validate` say of a trace, as the report that the gate's page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.report.document import Report, Stage
from distro_conformance.verdict import Verdict
from distro_spark.result import CheckResult
from distro_traces.event import Event
from distro_traces.header import Header
from distro_validation.validate import Validated
from distro_validation.verdict import Rejection


def report_of_check(result: CheckResult, findings: Sequence[Finding], path: str) -> Report:
    times = result.convergence
    measured = f"; {times.count} changes, slowest {times.max_ms} ms" if times and times.count else ""
    summary = f"{result.events:,} events of {result.runs} runs, {result.quarantined} quarantined{measured}"
    verdict = Verdict(result.verdict)
    return Report(
        target=PurePath(path).name,
        profile="as each run says",
        scope=f"the invariants, over what was recorded in {path}",
        verdict=verdict,
        seconds=result.seconds,
        stages=(Stage("check", verdict, result.seconds, "; ".join((summary, *result.reasons))),),
        findings=tuple(findings),
        traces=str(path),
    )


def report_of_validation(judged: Validated, verdict: Verdict, header: Header, profile: str, path: Path) -> Report:
    summary = f"{judged.events:,} rows, {judged.undecided} not decided"
    reasons = (f"{count} not decided: {reason}" for reason, count in judged.undecided_by.items())
    return Report(
        target=f"{path.name}, {header.run}",
        profile=profile,
        scope=f"every row of {header.run} against the model of {profile}",
        verdict=verdict,
        seconds=judged.seconds,
        stages=(Stage("validate", verdict, judged.seconds, "; ".join((summary, *judged.doubts, *reasons))),),
        findings=(_of_rejection(judged.rejection, header, path),) if judged.rejection else (),
        traces=str(path),
    )


def _of_rejection(rejection: Rejection, header: Header, path: Path) -> Finding:
    event = rejection.event
    return Finding(
        about="VALIDATE",
        by="validation",
        judgement=Judgement.VIOLATES,
        text="Every row of a trace is what a transition of the model does.",
        message=f"no transition is this row: {_described(event)}",
        expected="; ".join(str(candidate).strip() for candidate in rejection.candidates),
        run=header.run,
        node=event.node,
        client=event.client,
        since=f"{event.kind} of {event.node} at {event.at_ms} ms (seq {event.seq})",
        after=event.message,
        evidence=(
            (
                f"the smallest set of {len(rejection.minimal)} rows that is rejected in the same way:",
                *map(_described, rejection.minimal),
            )
            if rejection.minimal
            else ()
        ),
        again=command("validate", path, "--run", header.run),
    )


def _described(event: Event) -> str:
    from distro_traces.exports.causal import describe  # noqa: PLC0415 - only a rejection needs it

    return f"{event.node} row {event.seq} at {event.at_ms} ms: {describe(event)}"
