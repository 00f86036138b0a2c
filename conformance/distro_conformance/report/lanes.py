"""Lanes on which states and faults are drawn as bars over time, of nodes and of clients.

Bars are placed in per cent of the whole span, so that a page can be zoomed without being drawn again. The template
`lanes.html.j2` draws them for every page that has some: that of imported logs and that of a recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from distro_traces.header import wall_clock


@dataclass(frozen=True, slots=True)
class Bar:
    """`left`, `width`: in per cent of the span; `row`: which line of its lane, from 0."""

    kind: str
    title: str
    left: float
    width: float
    row: int


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    note: str
    bars: tuple[Bar, ...]

    @property
    def rows(self) -> int:
        return 1 + max((bar.row for bar in self.bars), default=0)


@dataclass(frozen=True, slots=True)
class Period:
    """Something that lasted, or a moment: then both times are the same."""

    kind: str
    text: str
    from_ms: int
    until_ms: int
    has_end: bool = True


@dataclass(frozen=True, slots=True)
class Scale:
    """From when to when is drawn; `began` is the time of day of 0 ms, where it is known."""

    began: str | None
    first_ms: int
    last_ms: int

    def clock(self, at_ms: int) -> str:
        return (wall_clock(self.began, at_ms) or f"{at_ms} ms")[:23]

    def bar(self, period: Period, row: int) -> Bar:
        until = self.clock(period.until_ms) if period.has_end else "the end"
        when = self.clock(period.from_ms) + ("" if period.from_ms == period.until_ms else f" to {until}")
        return Bar(period.kind, f"{when}: {period.text}", *self._place(period.from_ms, period.until_ms), row)

    def bars(self, periods: Iterable[Period], first_row: int = 1) -> tuple[Bar, ...]:
        """In order of time, each on the first line of its lane that is free then."""
        free_ms: list[int] = []
        found = []
        for each in sorted(periods, key=lambda period: period.from_ms):
            row = next((row for row, free in enumerate(free_ms) if free <= each.from_ms), len(free_ms))
            free_ms[row : row + 1] = [max(each.until_ms, each.from_ms + self._length_ms // 100)]
            found.append(self.bar(each, row + first_row))
        return tuple(found)

    @property
    def _length_ms(self) -> int:
        return max(1, self.last_ms - self.first_ms)

    def _place(self, from_ms: int, until_ms: int) -> tuple[float, float]:
        left = 100 * (from_ms - self.first_ms) / self._length_ms
        return round(left, 3), round(max(0.2, 100 * (until_ms - from_ms) / self._length_ms), 3)
