"""A long run seen through windows: some rows around a place, those of one client around an event, how busy it was when.

A run of a million rows is never in Python as a whole: DuckDB numbers its rows once, in the order of their clocks, and
each window is a range of these numbers, put into causal order when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from distro_traces.errors import TraceError
from distro_traces.event import COLUMNS, GONE_KINDS, STATE_KINDS, Event, Kind, Outcome
from distro_traces.exports.causal import causal_order
from distro_traces.query import opened

ENVIRONMENT = frozenset({Kind.LINK_FAULT, Kind.NODE_STARTED, Kind.NODE_STOPPED, Kind.CHECKPOINT})
"""What concerns every client."""
_STOPPED = f"kind = '{Kind.NODE_STOPPED.value}'"
_COLUMNS = ", ".join(f'"{name}"' for name in COLUMNS)


class Windows:
    """The rows of one run by their place, from 0. Use it as a context, or close it."""

    def __init__(self, path: Path, run: str | None = None) -> None:
        """Raises the TraceError family; TraceError when there is no run of that name."""
        self._open = ExitStack()
        self._database = self._open.enter_context(opened(path))
        runs = [name for (name,) in self._all("SELECT run FROM runs ORDER BY run")]
        if run is not None and run not in runs:
            self.close()
            raise TraceError(f"{path}: no run {run}; there are {', '.join(runs[:5])}")
        self.runs: tuple[str, ...] = tuple(runs)
        self.run: str = run or runs[0]
        self._database.execute(
            f"CREATE TABLE rows AS SELECT row_number() OVER (ORDER BY at_ms, node, seq) - 1 AS place, {_COLUMNS} "
            "FROM events WHERE run = ? ORDER BY place",
            [self.run],
        )
        self.total: int = self._all("SELECT count(*) FROM rows")[0][0]
        self.nodes: tuple[str, ...] = tuple(row[0] for row in self._all("SELECT DISTINCT node FROM rows ORDER BY node"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._open.close()

    def at(self, first: int, count: int) -> list[Event]:
        """So many rows from a place on."""
        return self._events("place >= ? AND place < ?", [first, first + count])

    def place_of(self, node: str, seq: int) -> int | None:
        found = self._all("SELECT place FROM rows WHERE node = ? AND seq = ?", [node, seq])
        return found[0][0] if found else None

    def place_at(self, ms: int) -> int | None:
        """Of the last row up to then."""
        place: int | None = self._all("SELECT max(place) FROM rows WHERE at_ms <= ?", [ms])[0][0]
        return place

    def of_client(self, client: str, around: int, count: int) -> list[Event]:
        """The rows of one client and of the environment that are nearest to a place, so many on each side."""
        about = f"(client = ? OR kind IN {_texts(ENVIRONMENT)})"
        before = self._events(f"{about} AND place <= ? ORDER BY place DESC LIMIT {count}", [client, around])
        after = self._events(f"{about} AND place > ? ORDER BY place LIMIT {count}", [client, around])
        return causal_order([*before, *after])

    def held_at(self, place: int) -> dict[str, dict[str, Event]]:
        """By node and client: the last row that says what the node held, up to a place."""
        stopped = dict(
            self._all(f"SELECT node, max(place) FROM rows WHERE place <= ? AND {_STOPPED} GROUP BY node", [place])
        )
        rows = self._all(
            f"SELECT place, {_COLUMNS} FROM rows WHERE place <= ? AND client IS NOT NULL AND kind IN "
            f"{_texts(STATE_KINDS)} QUALIFY row_number() OVER (PARTITION BY node, client ORDER BY place DESC) = 1",
            [place],
        )
        held: dict[str, dict[str, Event]] = {node: {} for node in self.nodes}
        for at, *values in rows:
            event = _event(values)
            is_held = event.digest is not None and event.kind not in GONE_KINDS and at > stopped.get(event.node, -1)
            if event.client is not None and is_held:
                held[event.node][event.client] = event
        return held

    def next_of(self, kinds: Iterable[Kind], after: int) -> int | None:
        """The place of the next row of one of these kinds."""
        found = self._all(f"SELECT min(place) FROM rows WHERE place > ? AND kind IN {_texts(kinds)}", [after])
        place: int | None = found[0][0]
        return place

    def busy(self, parts: int) -> tuple[tuple[int, int], dict[str, list[int]]]:
        """First and last millisecond, and for each node how many rows fall into each of so many equal parts between."""
        first, last = self._all("SELECT coalesce(min(at_ms), 0), coalesce(max(at_ms), 0) FROM rows")[0]
        width = max(1, -(-(last - first + 1) // parts))
        counted = self._all("SELECT node, (at_ms - ?) // ? AS part, count(*) FROM rows GROUP BY ALL", [first, width])
        found = {node: [0] * parts for node in self.nodes}
        for node, part, count in counted:
            found[node][min(part, parts - 1)] += count
        return (first, last), found

    def _events(self, where: str, values: Sequence[object]) -> list[Event]:
        rows = self._all(f"SELECT {_COLUMNS} FROM rows WHERE {where}", values)
        return causal_order(_event(row) for row in rows)

    def _all(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        return self._database.execute(sql, list(values)).fetchall()


def _event(row: Sequence[Any]) -> Event:
    values = dict(zip(COLUMNS, row, strict=True))
    values["kind"] = Kind(values["kind"])
    values["outcome"] = None if values["outcome"] is None else Outcome(values["outcome"])
    return Event(**values)


def _texts(kinds: Iterable[Kind]) -> str:
    return "(" + ", ".join(f"'{kind.value}'" for kind in kinds) + ")"
