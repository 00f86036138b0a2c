"""The engine on Spark: the same functions over the same rows, as many as there are, on as many machines.

All rows of a client come to one task, in packs, by one exchange; there they are a Polars frame, and what `local` does
in one process is done to it. Only DataFrames are used, so that a session of Spark Connect will do. What is known of the
nodes goes along with the function; it is little for each node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl, frame, table_of
from distro_spark.cluster import Cluster
from distro_spark.engine import PART_ROWS, RESULTS_AT_ONCE, Columns, Judge, Set
from distro_spark.errors import spark_errors
from distro_spark.frames import EVENT_TYPES
from distro_spark.load import CUT, Loaded, load
from distro_spark.packs import of_no_client, packed, whole_buckets
from distro_spark.result import CutFile, Misfit
from distro_spark.survey import SPANS, Survey, surveyed
from distro_spark.timeline import sorted_parts
from distro_traces import event
from distro_traces.errors import DamagedTraceError, TraceError
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, clock_went_back, two_rows

LARGE_ROWS = 2_000_000
CLIENT_ROW_BYTES = 1_600
"""A client of more rows is announced; what a row of one client needs in a Python worker (measured, November 2026)."""


class OnSpark:
    """The traces at some paths, or in tables; a context, within which lines are parsed once. Raises the TraceError
    family."""

    def __init__(self, session: SparkSession, paths: Path | str | Iterable[Path | str]) -> None:
        self._take(load(session, [paths] if isinstance(paths, Path | str) else paths))

    @classmethod
    def of(cls, loaded: Loaded) -> Self:
        """Over rows that come from elsewhere than a path."""
        engine = cls.__new__(cls)
        engine._take(loaded)
        return engine

    def _take(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.headers: Mapping[str, Header] = {each.header.run: each.header for each in loaded.sources}
        self._open = ExitStack()
        self._is_open = False

    def __enter__(self) -> Self:
        self._open.enter_context(one_line_errors())
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.__exit__(*error)

    @cached_property
    def packs(self) -> DataFrame:
        """All rows (`packs.PACKED`)."""
        packs = packed(self.loaded, -(-self.loaded.count() // PART_ROWS) or 1)
        if self._is_open:
            self._open.callback(packs.persist(StorageLevel.DISK_ONLY).unpersist)
        return packs

    @cached_property
    def _survey(self) -> Survey:
        return surveyed(frame(self.packs.where("pack is null").select(*SPANS)))

    def set_aside(self) -> Set:
        return _set_aside(self.loaded, self._survey.aside > self.loaded.headers)

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        nodes = self._survey.nodes
        runs = nodes.group_by("run").agg(pl.col("client_rows").sum()).filter(pl.col("client_rows") > LARGE_ROWS)
        if not runs.is_empty():
            announce_largest(self.loaded.events.where(F.col("run").isin(runs["run"].to_list())))
        distinct = _distinct(self.loaded.events, self._survey.unordered)
        return self._survey.measured(distinct), self._survey.marks

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        return {**_clocks(self.loaded.events, self._survey.doubtful(virtual)), **_names(self.loaded.events, cluster)}

    def of_clients(self, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        """The executors keep the results on their disks, from where they come here in parts."""
        rows = client_by_client(self.packs, cluster, judge, columns, part_rows)
        rows = rows.persist(StorageLevel.DISK_ONLY)
        partition = F.spark_partition_id()
        try:
            sizes = frame(rows.groupBy(partition.alias("partition")).count())
            of_part = sizes.with_columns(part=pl.col("count").cum_sum() // RESULTS_AT_ONCE).group_by("part")
            for _, part in of_part:
                yield frame(rows.where(partition.isin(part["partition"].to_list())))
        finally:
            rows.unpersist()

    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        rows = self.packs.where("pack is not null").select("pack").mapInArrow(of_no_client, ddl(EVENT_TYPES))
        return _of_runs(frame(rows), cluster)


def client_by_client(packs: DataFrame, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int) -> DataFrame:
    """The results of `judge` over the rows of whole clients, lazy; one exchange."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in whole_buckets(batches):
            for part in sorted_parts(_of_runs(rows, cluster), part_rows):
                yield from table_of(judge(part), columns).to_batches()

    count = int(cluster.nodes["client_rows"].sum())
    partitions = -(-count // PART_ROWS) or 1
    of_clients = packs.where("pack is not null").select("bucket", "pack")
    return of_clients.repartition(partitions, "bucket").sortWithinPartitions("bucket").mapInArrow(judged, ddl(columns))


def _of_runs(rows: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """Those of the cluster's runs."""
    if len(cluster.of_run) == len(cluster.headers):
        return rows
    return rows.filter(pl.col("run").is_in([*cluster.of_run]))


def announce_largest(events: DataFrame) -> None:
    """Log which client has the most rows, all of which one Python worker holds at once, where these are many."""
    largest = events.where("client is not null").groupBy("run", "client").count().orderBy(F.desc("count")).first()
    if largest is not None and largest["count"] > LARGE_ROWS:
        need = largest["count"] * CLIENT_ROW_BYTES / 1e9
        text = "client %s of run %s has %d rows; the Python worker that judges it needs some %.1f GB"
        logging.getLogger("distro_spark").warning(text, largest["client"], largest["run"], largest["count"], need)


def _distinct(events: DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Of these nodes how many sequence numbers are different, exactly: a bitmap for each 32,768 of them."""
    if nodes.is_empty():
        return nodes.with_columns(distinct=pl.lit(None, pl.Int64))
    bits = F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position("seq")))
    found = (
        events.join(F.broadcast(_sent(events.sparkSession, nodes)), ["run", "node"], "left_semi")
        .groupBy("run", "node", F.bitmap_bucket_number("seq").alias("bucket"))
        .agg(bits.alias("distinct"))
        .groupBy("run", "node")
        .agg(F.sum("distinct").alias("distinct"))
    )
    return frame(found)


def _names(events: DataFrame, cluster: Cluster) -> dict[str, InvalidRecording]:
    """Nodes of which one number stands for two rows that differ."""
    doubled = cluster.nodes.filter(pl.col("rows") > pl.col("distinct")).select("run", "node")
    if doubled.is_empty():
        return {}
    row = F.struct(*event.COLUMNS)
    different = (
        events.join(F.broadcast(_sent(events.sparkSession, doubled)), ["run", "node"], "left_semi")
        .groupBy("run", "node", "seq")
        .agg(F.min(row).alias("least"), F.max(row).alias("most"))
        .where("least != most")
    )
    first = different.groupBy("run").agg(F.min(F.struct("seq", "node")).alias("first")).collect()
    return {row["run"]: two_rows(row["first"]["node"], row["first"]["seq"]) for row in first}


def _clocks(events: DataFrame, doubt: pl.DataFrame) -> dict[str, InvalidRecording]:
    """Of these nodes the clocks that go back in the order of the sequence numbers."""
    if doubt.is_empty():
        return {}
    before = F.lag("at_ms").over(Window.partitionBy("run", "node").orderBy("seq", "at_ms"))
    back = events.join(F.broadcast(_sent(events.sparkSession, doubt)), ["run", "node"], "left_semi")
    back = back.withColumn("before_ms", before).where("at_ms < before_ms")
    first = back.groupBy("run").agg(F.min(F.struct("node", "seq", "before_ms", "at_ms")).alias("first")).collect()
    return {row["run"]: clock_went_back(*row["first"]) for row in first}


def _sent(session: SparkSession, nodes: pl.DataFrame) -> DataFrame:
    return session.createDataFrame(table_of(nodes, {"run": pl.String(), "node": pl.String()}))


def _set_aside(loaded: Loaded, is_any: bool) -> Set:
    """Reasons with their counts, and the cut recordings."""
    at_rest = tuple(CutFile(source.path, source.cut.line) for source in loaded.sources if source.cut is not None)
    if not is_any:
        return Set((), at_rest)
    place = F.struct("file", "line")
    found = loaded.quarantine.groupBy("reason", F.when(F.col("reason") == CUT, F.col("file")).alias("cut")).agg(
        F.count("*").alias("rows"), F.min(place).alias("first")
    )
    rows = found.orderBy(F.desc("rows"), "reason").collect()
    misfits = tuple(
        Misfit(row["reason"], row["rows"], row["first"]["file"], row["first"]["line"])
        for row in rows
        if row["cut"] is None
    )
    cuts = tuple(CutFile(row["cut"], row["first"]["line"]) for row in rows if row["cut"] is not None)
    return Set(misfits, cuts + at_rest)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Report a file that is damaged between its ends as an error of the user."""
    try:
        yield
    except spark_errors() as error:
        _, _, by_spark = str(error).partition("FAILED_READ_FILE")
        _, _, by_python = str(error).partition(f"{DamagedTraceError.__name__}: ")
        if by_python:
            raise TraceError(by_python.splitlines()[0]) from error
        if not by_spark:
            raise
        reason = by_spark.splitlines()[0].partition("] ")[2]
        raise TraceError(f"a trace cannot be read to its end ({reason}); record or compact it again") from error
