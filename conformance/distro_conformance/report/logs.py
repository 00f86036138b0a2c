"""The page of imported logs: a lane for each node with what went wrong as bars, and a row for each client that matters.

It is one self-contained file like the report. Nothing on it is a verdict; it shows what the servers say, and what was
not read. Bars are placed in per cent of the whole span, so that the page can be zoomed without being drawn again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from distro_conformance.report.write import render, write_whole
from distro_traces.header import wall_clock
from distro_traces.nacos_logs.importer import Imported
from distro_traces.nacos_logs.troubles import Trouble

BARS_MAX = 400
"""Of the longest episodes; the list below the lanes has the others too."""
ROWS_MAX = 500
CLIENTS_MAX = 30
_OF_CLIENTS = ("unreached", "differs", "ejected", "dropped", "flapping")


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


def write_logs_page(found: Imported, path: Path) -> None:
    """Write the page of an import."""
    first = min(span.from_ms for span in found.spans)
    last = max(first + 1, *(span.until_ms for span in found.spans))
    scale = _Scale(found, first, last)
    longest = sorted(found.troubles, key=lambda each: (each.until_ms or last) - each.from_ms, reverse=True)[:BARS_MAX]
    drawn = sorted(longest, key=lambda each: each.from_ms)
    by_node: defaultdict[str, list[Trouble]] = defaultdict(list)
    by_client: defaultdict[str, list[Trouble]] = defaultdict(list)
    for trouble in drawn:
        (by_client if trouble.kind in _OF_CLIENTS else by_node)[
            trouble.subject if trouble.kind in _OF_CLIENTS else trouble.node
        ].append(trouble)
    nodes = [
        Lane(
            span.node, ", ".join(span.logs), (scale.read(span.from_ms, span.until_ms), *scale.bars(by_node[span.node]))
        )
        for span in found.spans
    ]
    clients = [Lane(client, "", scale.bars(by_client[client], first_row=0)) for client in list(by_client)[:CLIENTS_MAX]]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        path,
        render(
            "logs.html.j2",
            found=found,
            nodes=nodes,
            clients=clients,
            clients_left=max(0, len(by_client) - CLIENTS_MAX),
            kinds=sorted({trouble.kind for trouble in drawn}),
            begins=scale.clock(first),
            ends=scale.clock(last),
            rows=[(scale.clock(each.from_ms), scale.end(each), each) for each in found.troubles[:ROWS_MAX]],
            rows_left=max(0, len(found.troubles) - ROWS_MAX) + found.troubles_left_out,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    found: Imported
    first_ms: int
    last_ms: int

    def clock(self, at_ms: int) -> str:
        return (wall_clock(self.found.began, at_ms) or str(at_ms))[:23]

    def end(self, trouble: Trouble) -> str:
        return "" if trouble.until_ms is None else self.clock(trouble.until_ms)

    def read(self, from_ms: int, until_ms: int) -> Bar:
        title = f"logs from {self.clock(from_ms)} to {self.clock(until_ms)}"
        return Bar("read", title, *self._place(from_ms, until_ms), 0)

    def bars(self, troubles: Iterable[Trouble], first_row: int = 1) -> tuple[Bar, ...]:
        """Each on the first line of its lane that is free at that time."""
        free_ms: list[int] = []
        found = []
        for each in troubles:
            until_ms = self.last_ms if each.until_ms is None and each.kind not in ("ejected", "push") else each.until_ms
            until_ms = each.from_ms if until_ms is None else until_ms
            row = next((row for row, free in enumerate(free_ms) if free <= each.from_ms), len(free_ms))
            free_ms[row : row + 1] = [max(until_ms, each.from_ms + self._length_ms // 100)]
            title = f"{self.clock(each.from_ms)} to {self.end(each) or 'the end'}: {each.node}: {each.text}"
            found.append(Bar(each.kind, title, *self._place(each.from_ms, until_ms), row + first_row))
        return tuple(found)

    @property
    def _length_ms(self) -> int:
        return self.last_ms - self.first_ms

    def _place(self, from_ms: int, until_ms: int) -> tuple[float, float]:
        left = 100 * (from_ms - self.first_ms) / self._length_ms
        return round(left, 3), round(max(0.2, 100 * (until_ms - from_ms) / self._length_ms), 3)
