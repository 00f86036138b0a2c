"""The result of a scenario, as findings."""

from __future__ import annotations

from pathlib import Path

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import command
from distro_conformance.language.replay import Replay
from distro_conformance.verdict import Verdict


def findings_of_replay(
    replay: Replay, file: Path, name: str | None = None, *, allow_disruption: bool = False
) -> tuple[Finding, ...]:
    """A finding for each expectation, and for each line that did not go as in the model. `name`: the name of the
    scenario, if it is not its path."""
    options = ("--target", replay.target, *(("--allow-disruption",) if allow_disruption else ()))
    again = command("replay", file, *options, profile=replay.profile, mutant=replay.mutant)
    judgements = {
        Verdict.CONFORMS: Judgement.CONFORMS,
        Verdict.VIOLATES: Judgement.VIOLATES,
        Verdict.INCONCLUSIVE: Judgement.NOT_JUDGED,
    }
    before = [None, *replay.steps]
    return tuple(
        Finding(
            about=f"{name or file}:{step.line}",
            by="scenario",
            judgement=judgements[step.verdict],
            text=step.text,
            message=step.outcome,
            expected=step.text if step.verdict is not Verdict.CONFORMS else "",
            since=f"{step.at_ms} ms",
            until=None if step.held_to_ms is None else f"{step.held_to_ms} ms",
            after=earlier.text if earlier else None,
            again=again,
        )
        for earlier, step in zip(before, replay.steps, strict=False)
        if step.verdict is not Verdict.CONFORMS or step.text.startswith("expect")
    )
