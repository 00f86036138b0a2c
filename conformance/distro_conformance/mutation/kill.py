"""The result for one mutant at one level, a row of the kill matrix: a finding about the kit, which conforms when the
kit notices the mutant."""

from __future__ import annotations

from collections.abc import Sequence

from distro_conformance.findings import Finding, Judgement
from distro_conformance.findings.finding import command


def kill(
    mutant: str,
    level: str,
    killed_by: Sequence[str],
    seconds: float,
    steps: int | None = None,
    reason: str = "",
    evidence: Sequence[str] = (),
) -> Finding:
    """`killed_by` names properties, invariants, requirements, or `lockstep`; `reason` is why a mutant survives.

    `steps`: actions of the shortest run that shows it; for traces, the events until one shows it; None where no run was
    needed. `evidence`: the message of each.
    """
    unit = "events" if level == "trace" else "steps"
    dead = ", ".join(killed_by) + ("" if steps is None else f" in {steps} {unit}")
    return Finding(
        about=mutant,
        by=level,
        judgement=Judgement.CONFORMS if killed_by else Judgement.VIOLATES,
        text=f"the kit notices the mutant {mutant}",
        message=dead if killed_by else reason,
        observed={"killed_by": list(killed_by)},
        evidence=tuple(evidence),
        again=command("mutants run", "--level", level, mutant=mutant),
        seconds=seconds,
        details={} if steps is None else {"steps": steps},
    )
