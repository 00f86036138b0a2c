"""Findings of a check of traces: one for each listed violation, one for all that are only counted, one for those that
were too many to be compared with the known failures, and one for an invariant without violations.

A violation that was not compared with the known failures is neither new nor known: the run stays undecided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distro_conformance.findings.finding import Finding, Judgement, command
from distro_model.defects import link_of
from distro_spark.result import CheckResult, EventReference, InvariantResult, Rejected, Violation
from distro_traces.event import Kind

BY = "trace"


def findings_of(result: CheckResult, path: str) -> tuple[Finding, ...]:
    """`path`: where the traces are, for the command that checks them again."""
    found = [finding for judged in result.invariants for finding in _of_invariant(judged, result, path)]
    rejections = result.replay.rejections if result.replay else ()
    return (*found, *(_of_rejection(each, path) for each in rejections))


def _of_rejection(rejected: Rejected, path: str) -> Finding:
    event = rejected.event
    return Finding(
        about="model",
        by=BY,
        judgement=Judgement.VIOLATES,
        text="Every row is a step that the model allows.",
        message=f"no transition is {event}: {'; '.join(rejected.guards)}",
        run=rejected.run,
        node=event.node,
        client=rejected.client,
        since=str(event),
        after=event.message,
        again=command("validate", path, "--run", rejected.run),
    )


def _of_invariant(judged: InvariantResult, result: CheckResult, path: str) -> Iterator[Finding]:
    found = Finding(
        about=judged.name,
        by=BY,
        judgement=Judgement.VIOLATES,
        text=judged.text,
        again=command("check", path, "--invariant", judged.name),
    )
    listed = [violation for violation in result.violations if violation.invariant == judged.name]
    yield from (_of_violation(violation, found) for violation in listed)
    news = sum(violation.known is None for violation in listed)
    for left_out, judgement in (
        (judged.violations - news, Judgement.VIOLATES),
        (judged.known - (len(listed) - news), Judgement.KNOWN),
    ):
        if left_out:
            message = f"{left_out} more were counted and not listed"
            yield replace(found, judgement=judgement, message=message, times=left_out)
    if judged.unexplained:
        message = f"{judged.unexplained} violations are too many to be compared with the known failures"
        yield replace(found, judgement=Judgement.NOT_JUDGED, message=message, times=judged.unexplained)
    elif judged.verdict not in ("violates", "known"):
        why = "; ".join(result.reasons) or _lacking(judged.name) if judged.verdict == "not-judged" else ""
        yield replace(found, judgement=Judgement(judged.verdict), message=why, seconds=judged.seconds)


def _lacking(invariant: str) -> str:
    from distro_spark.invariants import NEEDS  # noqa: PLC0415 - loads Polars

    return f"not enough was recorded: it needs {NEEDS[invariant]}"


def _of_violation(violation: Violation, found: Finding) -> Finding:
    bad, last = _first_bad(violation), violation.last_event
    compared = {} if bad == violation.first_event else {"compared with": str(violation.first_event)}
    return replace(
        found,
        judgement=Judgement.VIOLATES if violation.known is None else Judgement.KNOWN,
        message=violation.message,
        expected=violation.expected,
        observed={**violation.evidence, **compared},
        run=violation.run,
        node=violation.node,
        client=violation.client,
        since=str(bad),
        until=str(last),
        after=violation.after or last.message,
        known=violation.known,
        link=link_of(violation.known),
    )


def _first_bad(violation: Violation) -> EventReference:
    """A violation ends with the wrong row, and begins with the row that it is compared with; but a violation found at a
    checkpoint begins with the row since which the state is wrong."""
    return violation.first_event if violation.last_event.kind == Kind.CHECKPOINT else violation.last_event
