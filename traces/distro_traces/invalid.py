"""Invalid recordings: rows that no run can have produced, even with faulty nodes.

Two nodes that were recorded under one name, and a virtual clock that goes back. Such a run is not judged, since each
violation may be a fault of the recording. `validate` checks the rows in memory here; the engines of `check` find the
same in frames, and all report it in the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from distro_traces.event import RESET_KINDS, Event, Kind
from distro_traces.header import Header


class Placed(Protocol):
    """The fields that a row needs for these checks."""

    @property
    def node(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def kind(self) -> str: ...


@dataclass(frozen=True, slots=True)
class InvalidRecording:
    """The first row of a run that shows it. `text` is a clause without the row's place."""

    node: str
    seq: int
    text: str

    def __str__(self) -> str:
        return f"{self.text}, at row {self.seq} of {self.node}"


def two_rows(node: str, seq: int) -> InvalidRecording:
    return InvalidRecording(node, seq, f"two nodes are called {node}: one number stands for two different rows")


def clock_went_back(node: str, seq: int, before_ms: int, at_ms: int) -> InvalidRecording:
    return InvalidRecording(node, seq, f"the virtual clock of {node} goes back from {before_ms} ms to {at_ms} ms")


def started_while_up(rows: Iterable[Placed]) -> InvalidRecording | None:
    """The first start of a node that is up already. `rows` of one node, in their order, where none is missing."""
    is_up = False
    for row in rows:
        if row.kind == Kind.NODE_STARTED and is_up:
            return InvalidRecording(row.node, row.seq, f"two nodes are called {row.node}: it is started while it is up")
        if row.kind in RESET_KINDS:
            is_up = row.kind == Kind.NODE_STARTED
    return None


def missing(rows: int) -> str:
    return f"{rows} rows are missing: the sequence numbers have gaps"


def doubled(rows: int) -> str:
    return (
        f"{rows} rows come twice: the same node, sequence number and content (a file read twice); one of each was taken"
    )


def invalid(header: Header, events: Iterable[Event], *, has_gaps: bool) -> InvalidRecording | None:
    """The reason why the rows of a run are not judged, or None."""
    by_node: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.node, event.seq)):
        by_node.setdefault(event.node, []).append(event)
    found = (each for rows in by_node.values() for each in _of_node(header, rows, has_gaps=has_gaps))
    return next(found, None)


def _of_node(header: Header, rows: Sequence[Event], *, has_gaps: bool) -> Iterable[InvalidRecording]:
    for one, other in pairwise(rows):
        if one.seq == other.seq and one != other:
            yield two_rows(other.node, other.seq)
    rows = list({row.seq: row for row in rows}.values())
    if header.observed.lossless and not has_gaps and (start := started_while_up(rows)):
        yield start
    if header.clock == "virtual":
        for one, other in pairwise(rows):
            if other.at_ms < one.at_ms:
                yield clock_went_back(other.node, other.seq, one.at_ms, other.at_ms)
