"""The kill matrix: every mutant of a level, or those that were named, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from distro_conformance.findings import Finding, Judged, Judgement
from distro_conformance.mutation.levels import LEVELS, kill_on_real_server
from distro_conformance.verdict import UsageError, named


def run_mutants(
    level: str,
    mutants: Sequence[str] = (),
    seconds_max: float | None = None,
    on_finding: Callable[[Finding], None] = lambda _: None,
    target: str | None = None,
) -> Judged:
    """Test the mutants, all of the level if none is named. Raises UsageError for unknown names.

    `target`: the server for the rules of the level real; None: the release that they were written for.
    """
    known, chosen = mutants_of(level), LEVELS[level]
    unknown = [name for name in mutants if name not in known]
    if unknown:
        raise UsageError(f"unknown mutant '{unknown[0]}' at the level {level}; known: {', '.join(sorted(known))}")
    if target is not None and level != "real":
        raise UsageError(f"--target goes with --level real; the level {level} has its own")
    if seconds_max is not None and level == "real":
        raise UsageError("--max-seconds limits searches, walks and simulations; the level real has none of them")
    began, findings = time.monotonic(), []
    with chosen.judge() as judge:
        for name in mutants or known:
            seconds = chosen.seconds_max if seconds_max is None else seconds_max
            findings.append(judge(name, seconds) if target is None else kill_on_real_server(name, seconds, target))
            on_finding(findings[-1])
    return Judged(level, None, tuple(findings), time.monotonic() - began, {"score": score(findings)})


def mutants_of(level: str) -> Sequence[str]:
    """All mutants of that level. Raises UsageError."""
    return named("level", LEVELS, level).mutants()


def score(findings: Sequence[Finding]) -> float:
    """Killed mutants as a part of all; 0.0 of none."""
    killed = sum(finding.judgement is Judgement.CONFORMS for finding in findings)
    return killed / len(findings) if findings else 0.0
