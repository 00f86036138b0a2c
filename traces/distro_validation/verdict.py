"""A rejection: the row, each transition that it could have been, and the guard of each that was false."""

from __future__ import annotations

from dataclasses import dataclass

from distro_traces.content import shortened
from distro_traces.event import Event


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition that the row could have been. `guard` was false; what the model has, and what the row shows."""

    transition: str
    guard: str
    expected: str
    seen: str

    def __str__(self) -> str:
        has = f"the model has {self.expected}, the trace {self.seen}"
        return f"{self.transition}: {self.guard} ({shortened(has)})"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first row that no transition explains. `minimal`: rows of which none can be left out without losing it;
    empty where it needs the whole run, as a call that never ends does."""

    event: Event
    candidates: tuple[Candidate, ...]
    minimal: tuple[Event, ...] = ()

    @property
    def guards(self) -> frozenset[tuple[str, str]]:
        """The fields by which two rejections are equal."""
        return frozenset((candidate.transition, candidate.guard) for candidate in self.candidates)


def rejected(event: Event, transition: str, guard: str, expected: str, seen: str) -> Rejection:
    """The rejection of a row that could have been one transition only."""
    return Rejection(event, (Candidate(transition, guard, expected, seen),))
