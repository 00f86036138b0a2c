"""The scheduler of a simulation: its clock, the queue of due events, and its only source of chance.

Events of one instant happen in a random order, as the threads of a real server order them differently each time. Events
that must not overtake each other share a `tie`: those with equal ties happen in the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar

Choice = TypeVar("Choice")


class Chance(Protocol):
    """The source of chance of a simulation; `random.Random` is one."""

    def random(self) -> float: ...

    def choice(self, among: Sequence[Choice], /) -> Choice: ...

    def sample(self, among: Sequence[Choice], /, k: int) -> list[Choice]: ...

    def randrange(self, start: int, stop: int | None = None, /) -> int: ...

    def expovariate(self, rate: float, /) -> float: ...


class Scheduler:
    """A heap of events. `now_ms` counts from the start of the run."""

    def __init__(self, chance: Chance) -> None:
        self.now_ms = 0
        self.draw = chance.random
        self._entries: list[tuple[int, float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._serial = 0

    def at(self, at_ms: int, do: Callable[..., object], *arguments: object) -> None:
        self.in_turn(at_ms, self.draw(), do, *arguments)

    def in_turn(self, at_ms: int, tie: float, do: Callable[..., object], *arguments: object) -> None:
        """Like `at`, after everything of that instant with the same tie or a lower one."""
        self._serial += 1
        heappush(self._entries, (at_ms, tie, self._serial, do, arguments))

    def run_until(self, end_ms: int) -> None:
        """Let time pass, the last instant included."""
        entries = self._entries
        while entries and entries[0][0] <= end_ms:
            self.now_ms, _, _, do, arguments = heappop(entries)
            do(*arguments)
        self.now_ms = end_ms
