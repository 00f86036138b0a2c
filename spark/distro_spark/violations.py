"""From what the invariants find in a timeline to violations in words, in the one shape in which they travel.

It answers what a person asks: which node, which client, since when (`first_*`), until where (`last_*`), after which
message, and in one sentence each what is wrong and what should have happened. `evidence` holds the same under names,
as the text of a JSON object. `known` names the defect that explains it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from distro_spark.cluster import Cluster
from distro_spark.history import CALLS, RESETS, ClientHistory, Row, Violation
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.known import known_bug, may_be_known
from distro_spark.timeline import COLUMNS, Timeline, c, timeline
from distro_traces.event import Kind

REFERENCE = ("node", "seq", "at_ms", "kind", "message")
"""Enough of a row to find it: (run, node, seq) is its key."""

EXPLAINED_MAX = 20_000
"""So many violations of one invariant in a part of the clients are held against the known defects; no further one is
explained, and the verdict is left open for them."""


def _references(prefix: str) -> dict[str, pl.DataType]:
    return {f"{prefix}_{name}": pl.Int64() if name in ("seq", "at_ms") else pl.String() for name in REFERENCE}


VIOLATION_COLUMNS: Mapping[str, pl.DataType] = {
    **{name: pl.String() for name in ("invariant", "run", "profile", "client", "node")},
    **_references("first"),
    **_references("last"),
    **{name: pl.String() for name in ("evidence", "message", "expected", "after", "known")},
    "explained": pl.Boolean(),
}
"""`explained`: it was held against the known defects of its release; where there are none, always."""


def violations_in(
    rows: pl.DataFrame, cluster: Cluster, chosen: Sequence[str], seconds: dict[str, float]
) -> pl.DataFrame:
    """Those of whole clients, whose rows are sorted (`timeline.SORTED`); `seconds` by invariant are added up."""
    t = timeline(rows, cluster)
    found = [_of_invariant(t, INVARIANTS[name], seconds) for name in chosen]
    return pl.concat([pl.DataFrame(schema=VIOLATION_COLUMNS), *found])


def violations_of_nodes(cluster: Cluster, chosen: Sequence[str]) -> pl.DataFrame:
    """Those that the nodes' own rows show."""
    t = timeline(pl.DataFrame(schema=ROWS), cluster)
    lines: list[dict[str, Any]] = []
    for invariant in (INVARIANTS[name] for name in chosen):
        if invariant.of_nodes is not None:
            words = (invariant.of_nodes_says, invariant.of_nodes_expects)
            lines += _lines(t, invariant.name, invariant.of_nodes(t), *words)
    return pl.DataFrame(lines, VIOLATION_COLUMNS)


ROWS = {
    name: pl.Int64() if name in ("seq", "at_ms", "revision") else pl.Boolean() if name == "owned" else pl.String()
    for name in COLUMNS
}


def _of_invariant(t: Timeline, invariant: Invariant, seconds: dict[str, float]) -> pl.DataFrame:
    began = time.perf_counter()
    lines: list[dict[str, Any]] = []
    if invariant.find is not None and t.rows.height:
        found = invariant.find(t)
        judged = t.cluster.judged[invariant.name]
        if len(judged) < len(t.cluster.names):
            found = found.filter(c("g").is_in(list(judged)))
        lines = list(_lines(t, invariant.name, found, invariant.says, invariant.expects))
    seconds[invariant.name] += time.perf_counter() - began
    return pl.DataFrame(lines, VIOLATION_COLUMNS)


def _lines(t: Timeline, name: str, found: pl.DataFrame, says: str, expects: str) -> Iterator[dict[str, Any]]:
    if found.is_empty():
        return
    histories = _Histories(t)
    rows = _Rows(t, (*found["first"].drop_nulls(), *found["last"]))
    explained = 0
    for line in found.iter_rows(named=True):
        g, first_no, last_no, after = (line.pop(column) for column in ("g", "first", "last", "after"))
        last = rows[last_no]
        first = last if first_no is None else rows[first_no]
        number = line.pop("client_no", None)
        place = first_no if last_no < 0 else last_no
        if number is None and place is not None and place >= 0:
            number = rows.clients[place]
        run, node = t.cluster.runs[g], t.cluster.names[g]
        client = "" if number is None else t.clients[number]
        words = {**line, "node": node, "client": client, "first": first, "last": last, "after": after}
        evidence = {key: value for key, value in line.items() if not key.startswith("_")}
        violation = Violation(
            node=node,
            first=first,
            last=last,
            message=says.format_map(words),
            expected=expects.format_map(words),
            after=after,
            evidence=evidence,
        )
        profile = t.cluster.headers[run].profile
        known, has_room = None, explained < EXPLAINED_MAX
        if number is not None and may_be_known(name, profile):
            explained += 1
            known = known_bug(name, histories.of(number), violation) if has_room else None
        else:
            has_room = True
            if number is None and may_be_known(name, profile):
                known = known_bug(name, ClientHistory(run, profile, "", (), {}, {}), violation)
        yield {
            "invariant": name,
            "run": run,
            "profile": profile,
            "client": client,
            "node": node,
            **_reference("first", first),
            **_reference("last", last),
            "evidence": json.dumps({key: str(value) for key, value in evidence.items() if value is not None}),
            "message": violation.message,
            "expected": violation.expected,
            "after": after,
            "known": known,
            "explained": has_room,
        }


def _reference(prefix: str, row: Row) -> dict[str, Any]:
    return {f"{prefix}_{name}": getattr(row, name) for name in REFERENCE}


class _Rows:
    """The rows that stand for some numbers."""

    def __init__(self, t: Timeline, numbers: Iterable[int]) -> None:
        wanted = sorted({number for number in numbers if number >= 0})
        frame = t.rows.select(*Row._fields, "client_no")[wanted] if wanted else t.rows.clear()
        self._of = dict(zip(wanted, rows_in(frame), strict=True)) if wanted else {}
        self.clients = dict(zip(wanted, frame["client_no"], strict=True)) if wanted else {}
        self._marks = t.cluster.mark_rows

    def __getitem__(self, number: int) -> Row:
        return self._marks[-1 - number] if number < 0 else self._of[number]


def rows_in(frame: pl.DataFrame) -> list[Row]:
    return [Row(*values) for values in frame.select(Row._fields).iter_rows()]


class _Histories:
    """Of the clients with violations, each made once."""

    def __init__(self, t: Timeline) -> None:
        self._t = t
        self._of: dict[int, ClientHistory] = {}

    def of(self, client_no: int) -> ClientHistory:
        if client_no not in self._of:
            self._of[client_no] = history_of(self._t, client_no)
        return self._of[client_no]


def history_of(t: Timeline, client_no: int) -> ClientHistory:
    begin, end = t.spans[client_no]
    rows = t.rows[begin:end]
    cluster, run = t.cluster, rows["run"][0]
    judged = cluster.judged["INV-CONV"]
    return ClientHistory(
        run,
        cluster.headers[run].profile,
        rows["client"][0],
        rows_in(rows),
        cluster.marks_of(run, RESETS),
        cluster.marks_of(run, [Kind.CHECKPOINT]),
        cluster.deleters[run],
        cluster.marks_of(run, [Kind.LINK_FAULT, Kind.MEMBERS_CHANGED]),
        cluster.marks_of(run, CALLS),
        frozenset(cluster.names[g] for g in cluster.of_run[run] if g not in judged),
    )
