"""The engine on Spark: the same functions over the same rows, as many as there are, on as many machines.

All rows of a client come to one task, in chunks, by one exchange; there they are a Polars frame, and what `local` does
in one process is done to it. Only DataFrames are used, so that a session of Spark Connect will do. What is known of the
nodes goes along with the function; it is little for each node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl, frame, table_of
from distro_spark.chunks import chunked, of_no_client, whole_buckets
from distro_spark.cluster import Cluster
from distro_spark.engine import PART_ROWS, RESULTS_AT_ONCE, Columns, Engine, Judge
from distro_spark.errors import spark_errors
from distro_spark.files import name_of
from distro_spark.frames import ASIDE, EVENT_TYPES
from distro_spark.load import Loaded, load
from distro_spark.survey import SPANS, Survey, surveyed
from distro_spark.tables import is_table
from distro_spark.timeline import sorted_parts
from distro_traces.errors import DamagedTraceError, TraceError

LARGE_ROWS = 2_000_000
CLIENT_ROW_BYTES = 1_600
"""A client of more rows is announced; what a row of one client needs in a Python worker (measured, November 2026)."""


class OnSpark(Engine):
    """The traces at some paths, or in tables; a context, within which lines are parsed once. Raises the TraceError
    family."""

    def __init__(self, session: SparkSession, traces: Path | str | Iterable[Path | str] | Loaded) -> None:
        self._session = session
        paths = [traces] if isinstance(traces, Path | str) else traces
        self.loaded = paths if isinstance(paths, Loaded) else load(session, paths)
        super().__init__(self.loaded.sources)
        self._open = ExitStack()
        self._is_open = False

    def __enter__(self) -> Self:
        self._open.enter_context(one_line_errors())
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.__exit__(*error)

    @cached_property
    def chunks(self) -> DataFrame:
        """All rows (`chunks.CHUNKS`)."""
        chunks = chunked(self.loaded, -(-self.loaded.count() // PART_ROWS) or 1)
        if self._is_open:
            self._open.callback(chunks.persist(StorageLevel.DISK_ONLY).unpersist)
        return chunks

    @cached_property
    def survey(self) -> Survey:
        return surveyed(self._read.filter(pl.col("node").is_not_null()))

    @cached_property
    def _read(self) -> pl.DataFrame:
        """What the reader found beside chunks."""
        return frame(self.chunks.where("chunk is null").select(*{**SPANS, **ASIDE}))

    @property
    def aside(self) -> pl.DataFrame:
        uris = self._read["file"].unique().to_list()
        names = {uri: uri if uri is None or is_table(uri) else name_of(uri) for uri in uris}
        return self._read.filter(pl.col("node").is_null()).with_columns(pl.col("file").replace_strict(names))

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        runs = self.survey.nodes.group_by("run").agg(pl.col("client_rows").sum())
        runs = runs.filter(pl.col("client_rows") > LARGE_ROWS)
        if not runs.is_empty() and self._largest_bucket > LARGE_ROWS:
            announce_largest(self.loaded.events.where(F.col("run").isin(runs["run"].to_list())))
        return super().measured()

    @property
    def _largest_bucket(self) -> int:
        """The rows of the largest one, from the chunks: no client has more. To count each client's is to read all rows
        once more."""
        sizes = frame(self.chunks.where("bucket is not null").groupBy("bucket").agg(F.sum("rows").alias("rows")))
        return int(sizes["rows"].max() or 0)  # type: ignore[arg-type]

    def queried(self, query: str, nodes: pl.DataFrame) -> pl.DataFrame:
        sent = self._session.createDataFrame(table_of(nodes, {"run": pl.String(), "node": pl.String()}))
        rows = self.loaded.events.join(F.broadcast(sent), ["run", "node"], "left_semi")
        return frame(self._session.sql(query, rows=rows))

    def of_clients(self, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        """The executors keep the results on their disks, from where they come here in parts."""
        rows = client_by_client(self.chunks, cluster, judge, columns, part_rows)
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
        rows = self.chunks.where("chunk is not null").select("chunk").mapInArrow(of_no_client, ddl(EVENT_TYPES))
        return cluster.own(frame(rows))


def client_by_client(chunks: DataFrame, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int) -> DataFrame:
    """The results of `judge` over the rows of whole clients, lazy; one exchange."""

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in whole_buckets(batches):
            for part in sorted_parts(cluster.own(rows), part_rows):
                yield from table_of(judge(part), columns).to_batches()

    count = int(cluster.nodes["client_rows"].sum())
    partitions = -(-count // PART_ROWS) or 1
    of_clients = chunks.where("chunk is not null").select("bucket", "chunk")
    return of_clients.repartition(partitions, "bucket").sortWithinPartitions("bucket").mapInArrow(judged, ddl(columns))


def announce_largest(events: DataFrame) -> None:
    """Log which client has the most rows, all of which one Python worker holds at once, where these are many."""
    largest = events.where("client is not null").groupBy("run", "client").count().orderBy(F.desc("count")).first()
    if largest is not None and largest["count"] > LARGE_ROWS:
        need = largest["count"] * CLIENT_ROW_BYTES / 1e9
        text = "client %s of run %s has %d rows; the Python worker that judges it needs some %.1f GB"
        logging.getLogger("distro_spark").warning(text, largest["client"], largest["run"], largest["count"], need)


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
