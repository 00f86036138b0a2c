"""The engine in this process: recordings of a local disk, as large as memory, without Spark and without Java.

A part of the clients is judged at a time, so that what is derived from rows is never all in memory at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import polars as pl

from distro_spark import frames
from distro_spark.cluster import Cluster
from distro_spark.engine import Columns, Judge, Set
from distro_spark.result import Misfit
from distro_spark.survey import Survey, spans, surveyed
from distro_spark.timeline import sorted_parts
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

    @cached_property
    def _survey(self) -> Survey:
        return surveyed(spans([self._events]))

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        rows = self._events.lazy().join(self._survey.unordered.lazy(), ["run", "node"], how="semi")
        distinct = rows.group_by("run", "node").agg(distinct=pl.col("seq").n_unique().cast(pl.Int64))
        return self._survey.measured(distinct.collect()), self._survey.marks

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        return {**self._clocks(self._survey.doubtful(virtual)), **self._names(cluster)}

    def _clocks(self, doubtful: pl.DataFrame) -> dict[str, InvalidRecording]:
        """Of these nodes the clocks that go back in the order of the sequence numbers."""
        rows = self._events.join(doubtful, ["run", "node"], how="semi").sort("run", "node", "seq")
        before = pl.col("at_ms").shift(1).over("run", "node")
        back = rows.with_columns(before_ms=before).filter(pl.col("at_ms") < pl.col("before_ms"))
        first = back.group_by("run", maintain_order=True).first().select("run", "node", "seq", "before_ms", "at_ms")
        return {run: clock_went_back(*values) for run, *values in first.iter_rows()}

    def _names(self, cluster: Cluster) -> dict[str, InvalidRecording]:
        """Nodes of which one number stands for two rows that differ."""
        doubled = cluster.nodes.filter(pl.col("rows") > pl.col("distinct")).select("run", "node")
        rows = self._events.join(doubled, ["run", "node"], how="semi").unique(COLUMNS)
        several = rows.filter(pl.len().over("run", "node", "seq") > 1).sort("seq", "node")
        first = several.group_by("run", maintain_order=True).first()
        return {run: two_rows(node, seq) for run, node, seq in first.select("run", "node", "seq").iter_rows()}

    def of_clients(self, cluster: Cluster, judge: Judge, _: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        yield from map(judge, sorted_parts(self._of(cluster).collect(), part_rows))

    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        return self._of(cluster).filter(pl.col("client").is_null()).collect()

    def _of(self, cluster: Cluster) -> pl.LazyFrame:
        rows = self._events.lazy()
        return rows if len(cluster.of_run) == len(self.headers) else rows.filter(pl.col("run").is_in([*cluster.of_run]))
