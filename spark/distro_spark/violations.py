"""Violations as rows with messages, built from the results of the invariants over a timeline.

A violation has the node, the client, the first and last event (`first_*`, `last_*`), the preceding message, and one
sentence each for the violation and the expectation. `evidence` holds the same under names, as a JSON object in
text. `known` names the defect that explains it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import polars as pl

from distro_spark.cluster import Cluster
from distro_spark.expressions import c
from distro_spark.frames import EVENT_TYPES
from distro_spark.history import CALLS, ClientHistory, Finding, Row
from distro_spark.invariants import INVARIANTS, Invariant
from distro_spark.result import REFERENCE
from distro_spark.symptoms import known_bug, symptoms_of
from distro_spark.timeline import Timeline, timeline
from distro_traces.content import shortened
from distro_traces.event import RESET_KINDS, Kind

EXPLAINED_MAX = 20_000
"""Limit of violations of one invariant, in a part of the clients, that are compared with the known defects; further
ones stay unexplained and leave the verdict open."""


def _references(prefix: str) -> dict[str, pl.DataType]:
    return {f"{prefix}_{name}": pl.Int64() if name in ("seq", "at_ms") else pl.String() for name in REFERENCE}


VIOLATION_COLUMNS: Mapping[str, pl.DataType] = {
    **{name: pl.String() for name in ("invariant", "run", "profile", "client", "node")},
    **_references("first"),
    **_references("last"),
    **{name: pl.String() for name in ("evidence", "message", "expected", "after", "known")},
    "explained": pl.Boolean(),
}
"""`explained`: it was compared with the known defects of its release; true where there are none."""


def violations_in(
    rows: pl.DataFrame, cluster: Cluster, chosen: Sequence[str], seconds: dict[str, float]
) -> pl.DataFrame:
    """Violations of whole clients, whose rows are sorted (`timeline.SORTED`); `seconds` by invariant are added up."""
    t = timeline(rows, cluster)
    found = [_of_invariant(t, INVARIANTS[name], seconds) for name in chosen]
    return pl.concat([pl.DataFrame(schema=VIOLATION_COLUMNS), *found])


def violations_of_nodes(cluster: Cluster, chosen: Sequence[str]) -> pl.DataFrame:
    """Violations in the nodes' own rows."""
    t = timeline(pl.DataFrame(schema=EVENT_TYPES), cluster)
    lines = [_line(name, found, has_room=True) for name in chosen for found in findings_of_nodes(t, INVARIANTS[name])]
    return pl.DataFrame(lines, VIOLATION_COLUMNS)


def _of_invariant(t: Timeline, invariant: Invariant, seconds: dict[str, float]) -> pl.DataFrame:
    began = time.perf_counter()
    lines, explained = list[dict[str, Any]](), 0
    for found in findings_of_clients(t, invariant):
        lines.append(_line(invariant.name, found, has_room=explained < EXPLAINED_MAX))
        explained += bool(symptoms_of(invariant.name, found.history.profile))
    seconds[invariant.name] += time.perf_counter() - began
    return pl.DataFrame(lines, VIOLATION_COLUMNS)


def findings_of_clients(t: Timeline, invariant: Invariant) -> Iterator[Finding]:
    if invariant.find is None or not t.rows.height:
        return
    found = invariant.find(t)
    judged = t.cluster.judged[invariant.name]
    if len(judged) < len(t.cluster.names):
        found = found.filter(c("g").is_in(list(judged)))
    yield from _findings(t, invariant.name, found, invariant.says, invariant.expects)


def findings_of_nodes(t: Timeline, invariant: Invariant) -> Iterator[Finding]:
    if invariant.of_nodes is not None:
        found, words = invariant.of_nodes(t), (invariant.of_nodes_says, invariant.of_nodes_expects)
        yield from _findings(t, invariant.name, found, *words)


def _findings(t: Timeline, name: str, found: pl.DataFrame, says: str, expects: str) -> Iterator[Finding]:
    """The violations with messages, and the client's history where the release may have a known defect."""
    if found.is_empty():
        return
    history = cache(partial(_history, t))
    rows = _rows(t, {*found["first"].drop_nulls(), *found["last"]})
    for line in found.iter_rows(named=True):
        g, first_no, last_no = (line.pop(column) for column in ("g", "first", "last"))
        last, number = rows[last_no]
        first, of_first = rows[last_no if first_no is None else first_no]
        number = line.pop("client_no", of_first if number is None else number)
        after = line.pop("after", last.message)
        run, node = t.cluster.runs[g], t.cluster.names[g]
        client, profile = "" if number is None else t.clients[number], t.cluster.headers[run].profile
        words = {**line, "node": node, "client": client, "first": first, "last": last, "after": after}
        may_be_known = symptoms_of(name, profile)
        yield Finding(
            history=history(run, number) if may_be_known else ClientHistory(run, profile, client),
            node=node,
            first=first,
            last=last,
            says=shortened(says.format_map(words)),
            expects=shortened(expects.format_map(words)),
            after=after,
            evidence={key: value for key, value in line.items() if not key.startswith("_")},
        )


def _line(name: str, finding: Finding, *, has_room: bool) -> dict[str, Any]:
    """`has_room`: the violation is compared with the known defects of its release."""
    history = finding.history
    is_explained = has_room or not symptoms_of(name, history.profile)
    return {
        "invariant": name,
        "run": history.run,
        "profile": history.profile,
        "client": history.client,
        "node": finding.node,
        **_reference("first", finding.first),
        **_reference("last", finding.last),
        "evidence": json.dumps({key: str(value) for key, value in finding.evidence.items() if value is not None}),
        "message": finding.says,
        "expected": finding.expects,
        "after": finding.after,
        "known": known_bug(name, finding) if is_explained else None,
        "explained": is_explained,
    }


def _reference(prefix: str, row: Row) -> dict[str, Any]:
    return {f"{prefix}_{name}": getattr(row, name) for name in REFERENCE}


def _rows(t: Timeline, numbers: Iterable[int]) -> Mapping[int, tuple[Row, int | None]]:
    """The rows of those numbers, each with the number of its client."""
    marks = {number: (t.cluster.mark_rows[-1 - number], None) for number in numbers if number < 0}
    wanted = [number for number in numbers if number >= 0]
    frame = t.rows.select(*Row._fields, "client_no")[wanted] if wanted else t.rows.clear()
    return {**marks, **dict(zip(wanted, zip(rows_in(frame), frame["client_no"], strict=True), strict=True))}


def rows_in(frame: pl.DataFrame) -> list[Row]:
    return [Row(*values) for values in frame.select(Row._fields).iter_rows()]


def _history(t: Timeline, run: str, client_no: int | None) -> ClientHistory:
    """Of a client, or of the nodes themselves, which have no client."""
    cluster = t.cluster
    begin, end = (0, 0) if client_no is None else t.spans[client_no]
    return ClientHistory(
        run,
        cluster.headers[run].profile,
        "" if client_no is None else t.clients[client_no],
        rows_in(t.rows[begin:end]),
        cluster.marks_of(run, RESET_KINDS),
        cluster.marks_of(run, [Kind.MEMBERS_CHANGED]),
        cluster.marks_of(run, CALLS),
        cluster.marks_of(run, [Kind.LINK_FAULT]),
        cluster.deleters[run],
    )
