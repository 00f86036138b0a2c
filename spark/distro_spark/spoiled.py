"""Runs that are not judged, found at any size: two nodes under one name, a virtual clock that goes back.

What they are and what is said of them is `distro_traces.spoiled`. Numbers that come twice are known from the overview,
and only where there are some are their rows compared. That a clock goes on is seen in the order in which the rows lie:
a recording and a trace at rest have those of a node one after the other, so no shuffle is needed. Of a table, whose
rows have no order, only what one batch of rows has together is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.encoding import node_hash
from distro_spark.facts import Overview
from distro_traces.event import COLUMNS
from distro_traces.header import Header
from distro_traces.spoiled import Spoiled, clock_went_back, started_while_up, told_twice

_SPAN = pa.schema(
    [(name, pa.int64()) for name in ("node", "first", "first_ms", "last", "last_ms", "back", "before_ms", "back_ms")]
)


class _Span(NamedTuple):
    """Rows of a node that lie together: the first and the last, and the first of them (`back`, 0: none) with a time
    before that of the row before it."""

    node: int
    first: int
    first_ms: int
    last: int
    last_ms: int
    back: int
    before_ms: int
    back_ms: int


def spoiled(rows: DataFrame, seen: Overview, headers: Mapping[str, Header]) -> dict[str, Spoiled]:
    """By run why it is not to be judged. `rows` as in `Loaded`."""
    found = {**_clocks(rows, seen, headers), **dict(_starts(seen, headers)), **_names(rows, seen)}
    return {run: found[run] for run in sorted(found)}


def _names(rows: DataFrame, seen: Overview) -> dict[str, Spoiled]:
    """Nodes of which one number stands for two rows that differ."""
    doubled = [node.hash for node in seen.nodes if node.rows > node.different]
    if not doubled:
        return {}
    different = (
        rows.where(F.col("reason").isNull() & node_hash("node").isin(*doubled))
        .groupBy("run", "node", "seq")
        .agg(F.min(F.xxhash64(*COLUMNS)).alias("least"), F.max(F.xxhash64(*COLUMNS)).alias("most"))
        .where("least != most")
    )
    first = different.groupBy("run").agg(F.min(F.struct("seq", "node")).alias("first")).collect()
    return {row["run"]: told_twice(row["first"]["node"], row["first"]["seq"]) for row in first}


def _starts(seen: Overview, headers: Mapping[str, Header]) -> Iterator[tuple[str, Spoiled]]:
    for node in seen.nodes:
        if headers[node.run].observed.lossless and node.last_seq == node.different:
            start = started_while_up(seen.marks.get(node.run, {}).get(node.name, ()))
            if start is not None:
                yield node.run, start


def _clocks(rows: DataFrame, seen: Overview, headers: Mapping[str, Header]) -> dict[str, Spoiled]:
    virtual = {node.hash: node for node in seen.nodes if headers[node.run].clock == "virtual"}
    if not virtual:
        return {}
    events = rows.where("reason is null").select(node_hash("node").alias("node"), "seq", "at_ms")
    spans = events.mapInArrow(_spans, ", ".join(f"{name} long" for name in _SPAN.names)).toArrow().to_pylist()
    of_node: defaultdict[int, list[_Span]] = defaultdict(list)
    for row in spans:
        if row["node"] in virtual:
            of_node[row["node"]].append(_Span(**row))
    found: dict[str, Spoiled] = {}
    for each, its in of_node.items():
        if back := _back(sorted(its, key=lambda span: span.first)):
            found.setdefault(virtual[each].run, clock_went_back(virtual[each].name, *back))
    return found


def _back(spans: Iterable[_Span]) -> tuple[int, int, int] | None:
    """The first row whose time is before that of the row before it, and both times."""
    last, last_ms = 0, None
    for span in spans:
        if last_ms is not None and span.first > last and span.first_ms < last_ms:
            return span.first, last_ms, span.first_ms
        if span.back:
            return span.back, span.before_ms, span.back_ms
        last, last_ms = span.last, span.last_ms
    return None


def _spans(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            node, seq, at_ms = (batch.column(name).to_numpy() for name in ("node", "seq", "at_ms"))
            order = np.lexsort((seq, node))
            node, seq, at_ms = node[order], seq[order], at_ms[order]
            begins = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
            ends = np.r_[begins[1:], len(node)] - 1
            goes_back = np.flatnonzero((node[1:] == node[:-1]) & (at_ms[1:] < at_ms[:-1])) + 1
            place = np.searchsorted(goes_back, begins)
            back = np.r_[goes_back, len(node)][place]
            is_back = back <= ends
            back = np.where(is_back, back, 0)
            columns = [node[begins], seq[begins], at_ms[begins], seq[ends], at_ms[ends]]
            columns += [np.where(is_back, seq[back], 0), at_ms[back - 1], at_ms[back]]
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=_SPAN)
