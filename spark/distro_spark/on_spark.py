"""The engine on Spark: the same functions over the same rows, as many as there are, on as many machines.

All rows of a client come to one task, sorted, by one exchange; there they become a Polars frame, and what `local` does
in one process is done to it. Only DataFrames are used, so that a session of Spark Connect will do. What is known of the
nodes goes along with the function; it is little for each node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
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

    @cached_property
    def _survey(self) -> Survey:
        return surveyed(self._loaded.rows)

    def set_aside(self) -> Set:
        return _set_aside(self._loaded, self._survey.aside > self._loaded.headers)

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        nodes = self._survey.nodes
        runs = nodes.group_by("run").agg(pl.col("client_rows").sum()).filter(pl.col("client_rows") > LARGE_ROWS)
        if not runs.is_empty():
            announce_largest(self._loaded.events.where(F.col("run").isin(runs["run"].to_list())))
        distinct = _distinct(self._loaded.events, nodes.filter("is_unordered").select("run", "node"))
        nodes = nodes.join(distinct, ["run", "node"], how="left")
        nodes = nodes.with_columns(distinct=pl.coalesce("distinct", "rows"))
        return nodes.select("run", "node", *MEASURES), self._survey.marks

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        doubt = self._survey.nodes.filter("may_go_back", pl.col("run").is_in(virtual)).select("run", "node")
        return {**_clocks(self._loaded.events, doubt), **_names(self._loaded.events, cluster)}

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
        events = self._loaded.events if self._survey.aside else self._loaded.unchecked
        if len(cluster.of_run) == len(self.headers):
            return events
        return events.where(F.col("run").isin(list(cluster.of_run)))


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
    for rows in frames_of(batches, part_rows):
        run, client = rows.select("run", "client").row(-1)
        of_last = (pl.col("run") == run) & (pl.col("client") == client)
        begin = rows.height - int(rows.select(of_last.sum()).item())
        if begin:
            yield pl.concat([*waiting, rows[:begin]], rechunk=True)
            waiting = []
        waiting.append(rows[begin:])
    if waiting:
        yield pl.concat(waiting, rechunk=True)


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


@dataclass(frozen=True)
class Survey:
    """What one pass over all rows finds. `nodes`: run, node, `MEASURES` but `distinct`, `is_unordered` (sequence
    numbers are perhaps not different), `may_go_back` (the clock perhaps does); `marks`: each once; `aside`: how many
    rows are no events, headers of NDJSON included."""

    nodes: pl.DataFrame
    marks: pl.DataFrame
    aside: int


def surveyed(rows: DataFrame) -> Survey:
    """A recording and a trace at rest have the rows of a node in their order, so what a batch begins and ends with, and
    whether it is in order, shows that no number is there twice and that no clock goes back; only nodes of which that
    leaves a doubt are counted and sorted. Of a table, whose rows have no order, that may be all."""
    flags = {"is_event": "reason is null", "is_of_client": "client is not null", "is_deletion": IS_DELETION}
    columns = [F.coalesce(F.expr(condition), F.lit(False)).alias(name) for name, condition in flags.items()]
    mark = F.when(F.expr(IS_MARK), F.to_json(F.struct(*MARK_COLUMNS[4:])))  # as text, which is cheaper than a struct
    found = frame(rows.select(*MARK_COLUMNS[:4], *columns, mark.alias("mark")).mapInArrow(_spans, ddl(SPANS)))
    marks = found.filter(pl.col("kind").is_not_null()).select(MARK_COLUMNS).unique(["run", "node", "seq"])
    spans = found.filter(pl.col("kind").is_null(), pl.col("run").is_not_null()).sort("run", "node", "seq", "last_seq")
    after = pl.col("seq") <= pl.col("last_seq").shift().over("run", "node")
    back = after | (pl.col("at_ms") < pl.col("last_ms").shift().over("run", "node"))
    nodes = (
        spans.with_columns(pl.col("is_unordered") | after, pl.col("may_go_back") | back)
        .group_by("run", "node")
        .agg(
            pl.col("rows", "client_rows", "deletes").sum(),
            pl.col("last_seq", "most_ms").max(),
            pl.col("is_unordered", "may_go_back").any(),
        )
        .rename({"most_ms": "last_ms"})
    )
    return Survey(nodes, marks, int(found.filter(pl.col("run").is_null())["rows"].sum()))


SURVEYED_ROWS = 100_000
SPANS = {
    **dict.fromkeys((name for name in MARK_COLUMNS if name not in ("seq", "at_ms")), pl.String()),
    **dict.fromkeys(("seq", "at_ms", "last_seq", "last_ms", "most_ms"), pl.Int64()),
    **dict.fromkeys(("rows", "client_rows", "deletes"), pl.Int64()),
    **dict.fromkeys(("is_unordered", "may_go_back"), pl.Boolean()),
}
"""A row is a mark, or a node in some batches (kind null; from seq and at_ms to last_seq and last_ms in the order of the
file), or the number of the rows that are no events (run null)."""


def _spans(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for rows in frames_of(batches, SURVEYED_ROWS):
        events = rows.filter("is_event")
        seq, at_ms = pl.col("seq"), pl.col("at_ms")
        nodes = events.group_by("run", "node", maintain_order=True).agg(
            seq.first(),
            at_ms.first(),
            last_seq=seq.max(),
            last_ms=at_ms.last(),
            most_ms=at_ms.max(),
            rows=pl.len().cast(pl.Int64),
            client_rows=pl.col("is_of_client").sum().cast(pl.Int64),
            deletes=pl.col("is_deletion").sum().cast(pl.Int64),
            is_unordered=(seq.diff() <= 0).any(),
            may_go_back=((seq.diff() <= 0) | (at_ms.diff() < 0)).any(),
        )
        fields = pl.Struct(dict.fromkeys(MARK_COLUMNS[4:], pl.String))
        marks = events.filter(pl.col("mark").is_not_null()).select(
            *MARK_COLUMNS[:4], pl.col("mark").str.json_decode(fields)
        )
        marks = marks.unnest("mark")
        aside = pl.DataFrame({"rows": [rows.height - events.height]})
        found = pl.concat([pl.DataFrame(schema=SPANS), nodes, marks, aside], how="diagonal_relaxed")
        yield from table_of(found, SPANS).to_batches()


def frames_of(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pl.DataFrame]:
    """Some batches at a time, of so many rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= rows:
            yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches(waiting)))
            waiting = []
    if waiting:
        yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches(waiting)))


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
        _, _, text = str(error).partition("FAILED_READ_FILE")
        if not text:
            raise
        reason = text.splitlines()[0].partition("] ")[2]
        raise TraceError(f"a trace cannot be read to its end ({reason}); record or compact it again") from error
