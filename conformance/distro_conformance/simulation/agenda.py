"""What is due when: the clock of a simulation, and its only source of chance.

Whatever falls into one instant happens in an order that the seed decides, as a real server's threads decide it anew
each time. A `tie` keeps things in order that must not overtake each other: equal ties go first come, first served.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any


class Agenda:
    """A heap of things to do. `now_ms` counts from the start of the run."""

    def __init__(self, random: Random) -> None:
        self.now_ms = 0
        self.draw = random.random
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
