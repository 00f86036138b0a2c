"""A rejection: a row, the transitions that it could be, and for each of them the guard that was false."""

from __future__ import annotations

from dataclasses import dataclass

from distro_traces.content import shortened
from distro_traces.event import Event


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition that the row could be. `guard`: false there; `expected`: the state of the model; `seen`: that of the
    row."""

    transition: str
    guard: str
    expected: str
    seen: str

    def __str__(self) -> str:
        has = f"the model has {self.expected}, the trace {self.seen}"
        return f"{self.transition}: {self.guard} ({shortened(has)})"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The first row that no transition explains.

    `minimal`: a smallest set of rows that is still rejected. Empty if the rejection needs the whole run, as with a call
    that never ends.
    """

    event: Event
    candidates: tuple[Candidate, ...]
    minimal: tuple[Event, ...] = ()

    @property
    def guards(self) -> frozenset[tuple[str, str]]:
        """The fields by which two rejections are compared."""
        return frozenset((candidate.transition, candidate.guard) for candidate in self.candidates)


def rejected(event: Event, transition: str, guard: str, expected: str, seen: str) -> Rejection:
    """The rejection of a row that could be only one transition."""
    return Rejection(event, (Candidate(transition, guard, expected, seen),))
