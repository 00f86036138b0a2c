"""What one pass over all rows finds, before any client is judged: each node's measures, the marks, and doubts.

A recording and a trace at rest have the rows of a node in their order. So the first and last row of each part of a
file, and whether the rows between are in order, show that no number is there twice and that no clock goes back; only
nodes of which that leaves a doubt are counted and sorted. Of a table, whose rows have no order, that may be all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from distro_spark.cluster import IS_DELETION, IS_MARK, MARK_COLUMNS

SPANS = {
    **dict.fromkeys((name for name in MARK_COLUMNS if name not in ("seq", "at_ms")), pl.String()),
    **dict.fromkeys(("seq", "at_ms", "last_seq", "last_ms", "most_ms"), pl.Int64()),
    **dict.fromkeys(("rows", "client_rows", "deletes"), pl.Int64()),
    **dict.fromkeys(("is_unordered", "may_go_back"), pl.Boolean()),
}
"""A row is a mark, or a node in a part of the rows (kind null; from seq and at_ms to last_seq and last_ms in the order
of the file)."""


class Survey(NamedTuple):
    """`nodes`: run, node, `MEASURES` but `distinct`, `is_unordered` (sequence numbers are perhaps not different),
    `may_go_back` (the clock perhaps does); `marks`: each once."""

    nodes: pl.DataFrame
    marks: pl.DataFrame


def spans(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Of parts of the rows, each in the order of a file, the marks and what each has of each node."""
    events = pl.concat([part.with_columns(part=pl.lit(number)) for number, part in enumerate(parts)])
    seq, at_ms = pl.col("seq"), pl.col("at_ms")
    repeats = (seq.diff() <= 0).any()
    nodes = (
        events.lazy()
        .group_by("run", "node", "part", maintain_order=True)
        .agg(
            seq.first(),
            at_ms.first(),
            last_seq=seq.max(),
            last_ms=at_ms.last(),
            most_ms=at_ms.max(),
            rows=pl.len().cast(pl.Int64),
            client_rows=pl.col("client").count().cast(pl.Int64),
            deletes=pl.sql_expr(IS_DELETION).sum().cast(pl.Int64),
            is_unordered=repeats,
            may_go_back=repeats | (at_ms.diff() < 0).any(),
        )
    )
    marks = events.lazy().filter(pl.sql_expr(IS_MARK)).select(MARK_COLUMNS)
    found = [pl.DataFrame(schema=SPANS), nodes.drop("part").collect(), marks.collect()]
    return pl.concat(found, how="diagonal_relaxed")


def surveyed(found: pl.DataFrame) -> Survey:
    """From the `spans` of all parts."""
    marks = found.filter(pl.col("kind").is_not_null()).select(MARK_COLUMNS).unique(["run", "node", "seq"])
    parts = found.filter(pl.col("kind").is_null()).sort("run", "node", "seq", "last_seq")
    after = pl.col("seq") <= pl.col("last_seq").shift().over("run", "node")
    back = after | (pl.col("at_ms") < pl.col("last_ms").shift().over("run", "node"))
    nodes = (
        parts.with_columns(pl.col("is_unordered") | after, pl.col("may_go_back") | back)
        .group_by("run", "node")
        .agg(
            pl.col("rows", "client_rows", "deletes").sum(),
            pl.col("last_seq", "most_ms").max(),
            pl.col("is_unordered", "may_go_back").any(),
        )
        .rename({"most_ms": "last_ms"})
    )
    return Survey(nodes, marks)
