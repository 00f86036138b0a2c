"""The kill matrix: every mutant of a level, or those that were named, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from distro_conformance.mutation.kill import Kill
from distro_conformance.mutation.levels import LEVELS
from distro_conformance.verdict import UsageError, Verdict


@dataclass(frozen=True, slots=True)
class Matrix:
    kills: tuple[Kill, ...]

    @property
    def score(self) -> float:
        """Killed mutants as a part of all; 0.0 of none."""
        return sum(kill.killed for kill in self.kills) / len(self.kills) if self.kills else 0.0

    @property
    def verdict(self) -> Verdict:
        return Verdict.CONFORMS if self.kills and all(kill.killed for kill in self.kills) else Verdict.VIOLATES


def run_mutants(
    level: str,
    mutants: Sequence[str] = (),
    seconds_max: float | None = None,
    on_kill: Callable[[Kill], None] = lambda _: None,
) -> Matrix:
    """Put the mutants to the test, all of the level if none is named. Raises UsageError for unknown names."""
    if level not in LEVELS:
        raise UsageError(f"there is no level '{level}'; there are {', '.join(LEVELS)}")
    chosen = LEVELS[level]
    known = chosen.mutants()
    unknown = [name for name in mutants if name not in known]
    if unknown:
        raise UsageError(f"unknown mutant '{unknown[0]}' at the level {level}; known: {', '.join(sorted(known))}")
    kills = []
    with chosen.judge() as judge:
        for name in mutants or known:
            kills.append(judge(name, chosen.seconds_max if seconds_max is None else seconds_max))
            on_kill(kills[-1])
    return Matrix(tuple(kills))
