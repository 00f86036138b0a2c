"""The engine in this process: recordings of a local disk, as large as memory, without Spark and without Java.

A part of the clients is judged at a time, so that what is derived from rows is never all in memory at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from distro_spark import frames
from distro_spark.cluster import IS_DELETION, IS_MARK, MARK_COLUMNS, Cluster
from distro_spark.engine import Columns, Judge, Set
from distro_spark.result import Misfit
from distro_spark.timeline import SORTED, parts
from distro_traces.event import COLUMNS
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, clock_went_back, two_rows


class Local:
    """The traces at some paths. Raises the TraceError family."""

    def __init__(self, paths: Path | str | Iterable[Path | str]) -> None:
        files = frames.files_at([paths] if isinstance(paths, Path | str) else paths)
        self._recorded = frames.read(frames.distinct(map(frames.headed, files)))
        self.headers: Mapping[str, Header] = self._recorded.headers
        self._events = self._recorded.events

    def set_aside(self) -> Set:
        by_reason: defaultdict[str, list[frames.SetAside]] = defaultdict(list)
        for each in self._recorded.set_aside:
            by_reason[each.reason].append(each)
        misfits = [Misfit(reason, len(rows), rows[0].file, rows[0].line) for reason, rows in by_reason.items()]
        ordered = sorted(misfits, key=lambda misfit: (-misfit.rows, misfit.reason))
        return Set(tuple(ordered), tuple(self._recorded.cuts))

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        return measured(self._events)

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        return {**clocks_back(self._events.filter(pl.col("run").is_in(virtual))), **self._names(cluster)}

    def _names(self, cluster: Cluster) -> dict[str, InvalidRecording]:
        """Nodes of which one number stands for two rows that differ."""
        doubled = cluster.nodes.filter(pl.col("rows") > pl.col("distinct")).select("run", "node")
        rows = self._events.join(doubled, ["run", "node"], how="semi").unique(COLUMNS)
        several = rows.filter(pl.len().over("run", "node", "seq") > 1).sort("seq", "node")
        first = several.group_by("run", maintain_order=True).first()
        return {run: two_rows(node, seq) for run, node, seq in first.select("run", "node", "seq").iter_rows()}

    def of_clients(self, cluster: Cluster, judge: Judge, _: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        rows = self._of(cluster).filter(pl.col("client").is_not_null()).sort(SORTED).collect()
        yield from map(judge, parts(rows, part_rows))

    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        return self._of(cluster).filter(pl.col("client").is_null()).collect()

    def _of(self, cluster: Cluster) -> pl.LazyFrame:
        rows = self._events.lazy()
        return rows if len(cluster.of_run) == len(self.headers) else rows.filter(pl.col("run").is_in([*cluster.of_run]))


def measured(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of each node its measures, and the rows that are marks, each once."""
    nodes = (
        events.lazy()
        .group_by("run", "node")
        .agg(
            rows=pl.len().cast(pl.Int64),
            last_seq=pl.col("seq").max(),
            distinct=pl.col("seq").n_unique().cast(pl.Int64),
            last_ms=pl.col("at_ms").max(),
            client_rows=pl.col("client").count().cast(pl.Int64),
            deletes=pl.sql_expr(IS_DELETION).sum().cast(pl.Int64),
        )
    )
    marks = events.lazy().filter(pl.sql_expr(IS_MARK)).select(MARK_COLUMNS).unique(["run", "node", "seq"], keep="first")
    return nodes.collect(), marks.collect()


def clocks_back(events: pl.DataFrame) -> dict[str, InvalidRecording]:
    """Virtual clocks that go back, in the order of sequence numbers; files hold the rows of a node in that order."""
    odd = (
        events.lazy()
        .group_by("run", "node")
        .agg(((pl.col("at_ms").diff() < 0) | (pl.col("seq").diff() < 0)).any().alias("odd"))
    )
    nodes = odd.filter("odd").select("run", "node").collect()
    rows = events.join(nodes, ["run", "node"], how="semi").sort("run", "node", "seq")
    before = pl.col("at_ms").shift(1).over("run", "node")
    back = rows.with_columns(before_ms=before).filter(pl.col("at_ms") < pl.col("before_ms"))
    first = back.group_by("run", maintain_order=True).first().select("run", "node", "seq", "before_ms", "at_ms")
    return {run: clock_went_back(node, seq, before_ms, at_ms) for run, node, seq, before_ms, at_ms in first.iter_rows()}
