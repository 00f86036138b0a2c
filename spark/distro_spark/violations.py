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
from distro_spark.history import ClientHistory, Finding, Row
from distro_spark.invariants import INVARIANTS
from distro_spark.invariants.registry import Finder, Invariant, filled
from distro_spark.result import REFERENCE
from distro_spark.symptoms import known_bug, symptoms_of
from distro_spark.timeline import Timeline, timeline
from distro_traces.content import shortened

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
    for finder in invariant.finders if t.rows.height else ():
        if not finder.of_nodes:
            found = finder.find(t)
            yield from _findings(t, invariant.name, finder, found.filter(t.judged(invariant.name)))


def findings_of_nodes(t: Timeline, invariant: Invariant) -> Iterator[Finding]:
    for finder in invariant.finders:
        if finder.of_nodes:
            yield from _findings(t, invariant.name, finder, finder.find(t))


def _findings(t: Timeline, name: str, finder: Finder, found: pl.DataFrame) -> Iterator[Finding]:
    """The violations with messages, and the client's history where the release may have a known defect."""
    if found.is_empty():
        return
    history = cache(partial(_history, t))
    if "client_no" not in found.columns:
        places = (pl.when(c(at) >= 0).then(at) for at in ("last", "first"))
        found = found.with_columns(client_no=pl.coalesce(pl.lit(t.rows["client_no"]).gather(at) for at in places))
    further = [column for column in found.columns if column.endswith("_row")]
    rows = _rows(t, {number for column in ("first", "last", *further) for number in found[column].drop_nulls()})
    for line in found.with_columns(c("first").fill_null(c("last"))).iter_rows(named=True):
        g, number, first, last = (line.pop(column) for column in ("g", "client_no", "first", "last"))
        line |= {column.removesuffix("_row"): rows.get(line.pop(column)) for column in further}
        after = line.pop("after", rows[last].message)
        run, node = t.cluster.runs[g], t.cluster.names[g]
        client, profile = "" if number is None else t.clients[number], t.cluster.headers[run].profile
        words = {**line, "node": node, "client": client, "first": rows[first], "last": rows[last], "after": after}
        may_be_known = symptoms_of(name, profile)
        yield Finding(
            history=history(run, number) if may_be_known else ClientHistory(run, profile, client),
            node=node,
            first=rows[first],
            last=rows[last],
            says=shortened(filled(finder.says, words)),
            expects=shortened(filled(finder.expects, words)),
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


def _rows(t: Timeline, numbers: Iterable[int]) -> Mapping[int, Row]:
    """The rows of those numbers."""
    marks = {number: t.cluster.mark_rows[-1 - number] for number in numbers if number < 0}
    wanted = [number for number in numbers if number >= 0]
    return {**marks, **dict(zip(wanted, rows_in(t.rows.select(Row._fields)[wanted]), strict=True))}


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
        {cluster.names[g]: cluster.of_node[g] for g in cluster.of_run[run]},
        cluster.deleters[run],
    )
