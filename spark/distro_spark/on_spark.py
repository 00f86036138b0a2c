"""The engine on Spark: the same functions over the same rows, as many as there are, on as many machines.

All rows of a client come to one task, sorted, by one exchange; there they become a Polars frame, and what `local` does
in one process is done to it. Only DataFrames are used, so that a session of Spark Connect will do. What is known of the
nodes goes along with the function; it is little for each node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.cluster import IS_DELETION, IS_MARK, MARK_COLUMNS, MEASURES, Cluster
from distro_spark.engine import RESULTS_AT_ONCE, Columns, Judge, Set
from distro_spark.errors import spark_errors
from distro_spark.load import CUT, Loaded, load
from distro_spark.result import CutFile, Misfit
from distro_spark.timeline import COLUMNS, SORTED
from distro_traces import event
from distro_traces.errors import TraceError
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, clock_went_back, two_rows

PARTS = 2
"""A task judges about so many parts, one after the other."""

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
        self._loaded = loaded
        self.headers: Mapping[str, Header] = {each.header.run: each.header for each in loaded.sources}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(one_line_errors())
        self._open.enter_context(self._loaded.parsed_once())
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.__exit__(*error)

    def set_aside(self) -> Set:
        return _set_aside(self._loaded)

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        nodes = measures(self._loaded.events)
        if nodes["client_rows"].sum() > LARGE_ROWS:
            announce_largest(self._loaded.events)
        return nodes, frame(self._loaded.events.where(IS_MARK).select(*MARK_COLUMNS)).unique(["run", "node", "seq"])

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        events = self._loaded.events
        return {**_clocks(events.where(F.col("run").isin(virtual))), **_names(events, cluster)}

    def of_clients(self, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        """The executors keep the results on their disks, from where they come here in parts."""
        rows = client_by_client(self.events(cluster), cluster, judge, columns, part_rows)
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
        return frame(self.events(cluster).where("client is null").select(*event.COLUMNS))

    def events(self, cluster: Cluster) -> DataFrame:
        """The rows of the cluster's runs."""
        if len(cluster.of_run) == len(self.headers):
            return self._loaded.events
        return self._loaded.events.where(F.col("run").isin(list(cluster.of_run)))


def client_by_client(events: DataFrame, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int) -> DataFrame:
    """The results of `judge` over the rows of whole clients, lazy; one exchange."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in whole_clients(batches, part_rows):
            yield from table_of(judge(part), columns).to_batches()

    count = int(cluster.nodes["client_rows"].sum())
    partitions = 1 if count <= part_rows else max(2, -(-count // (PARTS * part_rows)))
    rows = events.where("client is not null").select(*COLUMNS)
    rows = rows.repartition(partitions, "run", "client").sortWithinPartitions(*SORTED)
    return rows.mapInArrow(judged, ddl(columns))


def announce_largest(events: DataFrame) -> None:
    """Log which client has the most rows, all of which one Python worker holds at once, where these are many."""
    largest = events.where("client is not null").groupBy("run", "client").count().orderBy(F.desc("count")).first()
    if largest is not None and largest["count"] > LARGE_ROWS:
        need = largest["count"] * CLIENT_ROW_BYTES / 1e9
        text = "client %s of run %s has %d rows; the Python worker that judges it needs some %.1f GB"
        logging.getLogger("distro_spark").warning(text, largest["client"], largest["run"], largest["count"], need)


def whole_clients(batches: Iterable[pa.RecordBatch], part_rows: int) -> Iterator[pl.DataFrame]:
    """Sorted batches, cut anew where a client ends."""
    waiting: list[pl.DataFrame] = []
    size = 0
    for batch in batches:
        part = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch])))
        waiting.append(part)
        size += part.height
        if size < part_rows:
            continue
        rows = pl.concat(waiting)
        last = rows.select("run", "client").row(-1)
        is_last = (pl.col("run") == last[0]) & (pl.col("client") == last[1])
        begin = rows.height - int(rows.select(is_last.sum()).item())
        if begin:
            yield rows[:begin]
        waiting, size = [rows[begin:]], rows.height - begin if begin else 0
    if size:
        yield pl.concat(waiting)


def ddl(columns: Columns) -> str:
    names = {pl.Int64(): "long", pl.String(): "string", pl.Boolean(): "boolean"}
    return ", ".join(f"{name} {names[kind]}" for name, kind in columns.items())


def arrow_schema(columns: Columns) -> pa.Schema:
    types = {pl.Int64(): pa.int64(), pl.String(): pa.string(), pl.Boolean(): pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def table_of(rows: pl.DataFrame, columns: Columns) -> pa.Table:
    """These columns, as Spark reads them."""
    oldest = pl.CompatLevel.oldest()
    return rows.select(list(columns)).to_arrow(compat_level=oldest).cast(arrow_schema(columns))


def frame(rows: DataFrame) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.toArrow()))


def measures(events: DataFrame) -> pl.DataFrame:
    """Of each node its `MEASURES`.

    How many sequence numbers are different is counted exactly: a bitmap for each 32,768 of them.
    """
    found = (
        events.groupBy("run", "node", F.bitmap_bucket_number("seq").alias("bucket"))
        .agg(
            F.count("*").alias("rows"),
            F.max("seq").alias("last_seq"),
            F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position("seq"))).alias("distinct"),
            F.max("at_ms").alias("last_ms"),
            F.count("client").alias("client_rows"),
            F.count_if(F.expr(IS_DELETION)).alias("deletes"),
        )
        .groupBy("run", "node")
        .agg(
            *(F.sum(name).alias(name) for name in ("rows", "distinct", "client_rows", "deletes")),
            *(F.max(name).alias(name) for name in ("last_seq", "last_ms")),
        )
    )
    return frame(found).select("run", "node", *MEASURES)


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


def _clocks(events: DataFrame) -> dict[str, InvalidRecording]:
    """Virtual clocks that go back. A recording and a trace at rest have the rows of a node in their order, so a batch
    of rows says where it begins and ends, and whether the clock goes back within; only nodes of which that leaves a
    doubt are sorted. Of a table, whose rows have no order, that may be all."""
    rows = events.select("run", "node", "seq", "at_ms")
    in_order = Window.partitionBy("run", "node").orderBy("first", "last")
    after = (F.lag("last").over(in_order) >= F.col("first")) | (F.lag("last_ms").over(in_order) > F.col("first_ms"))
    spans = rows.mapInArrow(_spans, ddl(SPANS)).withColumn("after", F.coalesce(after, F.lit(False)))
    doubt = frame(spans.where("odd > 0 or after").select("run", "node").distinct())
    if doubt.is_empty():
        return {}
    before = F.lag("at_ms").over(Window.partitionBy("run", "node").orderBy("seq", "at_ms"))
    back = rows.join(F.broadcast(_sent(events.sparkSession, doubt)), ["run", "node"], "left_semi")
    back = back.withColumn("before_ms", before).where("at_ms < before_ms")
    first = back.groupBy("run").agg(F.min(F.struct("node", "seq", "before_ms", "at_ms")).alias("first")).collect()
    return {row["run"]: clock_went_back(*row["first"]) for row in first}


SPANS = {
    **dict.fromkeys(("run", "node"), pl.String()),
    **dict.fromkeys(("first", "first_ms", "last", "last_ms", "odd"), pl.Int64()),
}


def _spans(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of each node in each batch its first and last row, and whether number or clock go back in between."""
    for batch in batches:
        part = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch])))
        odd = ((pl.col("at_ms").diff() < 0) | (pl.col("seq").diff() < 0)).any().cast(pl.Int64)
        found = part.group_by("run", "node", maintain_order=True).agg(
            first=pl.col("seq").first(),
            first_ms=pl.col("at_ms").first(),
            last=pl.col("seq").last(),
            last_ms=pl.col("at_ms").last(),
            odd=odd,
        )
        yield from table_of(found, SPANS).to_batches()


def _sent(session: SparkSession, nodes: pl.DataFrame) -> DataFrame:
    return session.createDataFrame(table_of(nodes, {"run": pl.String(), "node": pl.String()}))


def _set_aside(loaded: Loaded) -> Set:
    """Reasons with their counts, and the cut recordings."""
    at_rest = tuple(CutFile(source.path, source.cut.line) for source in loaded.sources if source.cut is not None)
    if loaded.rows.where("reason is not null").limit(loaded.headers + 1).count() <= loaded.headers:
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
        _, _, text = str(error).partition("FAILED_READ_FILE")
        if not text:
            raise
        reason = text.splitlines()[0].partition("] ")[2]
        raise TraceError(f"a trace cannot be read to its end ({reason}); record or compact it again") from error
