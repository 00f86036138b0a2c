"""What came of one mutant at one level: a row of the kill matrix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kill:
    """`killed_by` names properties, invariants, requirements, or `lockstep`; `reason` says why it lives, if it does.

    `steps`: actions of the shortest run that shows it; of traces, the events that were made until one did; None where
    no run was needed.
    """

    mutant: str
    level: str
    killed_by: tuple[str, ...]
    seconds: float
    steps: int | None
    reason: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.killed_by)

    def __str__(self) -> str:
        if not self.killed:
            return f"lives: {self.reason}"
        unit = "events" if self.level == "trace" else "steps"
        return ", ".join(self.killed_by) + ("" if self.steps is None else f" in {self.steps} {unit}")
