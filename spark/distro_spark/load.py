"""From paths to the rows of their traces, as Spark reads them; no rows pass through the driver.

There are three sources of rows. Spark reads the lines of recordings, which Python parses (`frames.events_in`). It reads
the rows of tables and of large Parquet files, and the bytes of smaller Parquet files, which Polars reads in Python. A
reader makes *parts* of what a task gets of a source: its events, and the other rows with their reasons.

If the last line of a recording is incomplete JSON, the recording was cut by a crash, which is no defect. The cut is
reported and does not change the verdict: all lines before it are complete. INV-CONV is judged at the checkpoints that
were recorded, and what happened after the last of them is not part of it; a run without any does not conform.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl, frames_of, table_of
from distro_spark.engine import PART_ROWS, Columns
from distro_spark.files import beginnings, contents, is_local, literal, name_of, named, sizes, traces_below
from distro_spark.frames import EVENT_TYPES, FITS, Source, distinct, events_among, headed, lines_in, parquet_rows
from distro_spark.tables import EVENT, as_events, fitting, headers_of, is_table, rows_of
from distro_traces.event import COLUMNS
from distro_traces.header import Header
from distro_traces.ndjson import SUFFIX

WHOLE_FILE_BYTES = 32 << 20
"""Larger files are read by Spark in pieces, since the content of a smaller one is in the memory of a JVM as a whole."""

ROW_BYTES, LINE_BYTES = 8, 150
"""The approximate minimum size of a row in Parquet, and in NDJSON."""

_AT_ONCE = 16


PART_BATCH_ROWS = 500_000
"""The number of rows that a reader has in memory at once."""


class Part(NamedTuple):
    """The events among some rows, and the others with the numbers of lines (`ASIDE`).

    `file`: the bytes of the file, if it has only events of a small run.
    """

    events: pl.DataFrame
    aside: pl.DataFrame
    file: pa.Buffer | None = None


Read = Callable[[Iterator[pa.RecordBatch]], Iterator[Part]]
Made = Callable[[Iterator[Part]], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Loaded:
    """Rows of one or many runs. `events` has the columns of `Event`."""

    sources: tuple[Source, ...]
    lines: DataFrame | None  # of NDJSON files: text, file, block
    files: DataFrame | None  # path and content of the small Parquet files
    rows: DataFrame | None  # of tables and large Parquet files: the columns of an event, and `file`
    at_rest: DataFrame | None  # the same, with those of small Parquet files
    tables: tuple[DataFrame, ...]
    file_rows: int  # the approximate number of rows that are not in tables
    small_runs: frozenset[str]  # runs in a single one of `files`, small enough to be judged at once

    def read(self, made: Made, columns: Columns) -> DataFrame:
        """What is made of the parts of all rows, in these columns. Spark reads each source once."""
        sources: list[tuple[DataFrame | None, Read]] = [
            (self.files, partial(_in_files, self.runs, self.small_runs)),
            (self.lines, partial(_in_lines, self.runs)),
            (self.rows, partial(_in_rows, self.runs)),
        ]
        found = [
            source.mapInArrow(partial(_tables, read, made, columns), ddl(columns))
            for source, read in sources
            if source is not None
        ]
        return reduce(DataFrame.union, found)

    @property
    def events(self) -> DataFrame:
        """Spark reads Parquet and tables here, since it reads only the columns that are asked for."""
        found = []
        if self.lines is not None:
            found.append(replace(self, files=None, rows=None).read(_events, EVENT_TYPES))
        if self.at_rest is not None:
            # An Arrow table, since it needs no Python worker.
            runs = self.at_rest.sparkSession.createDataFrame(
                pa.table({"run": pa.array(sorted(self.runs), pa.string())})
            )
            found.append(self.at_rest.where(FITS).join(F.broadcast(runs), "run", "left_semi").select(*COLUMNS))
        return reduce(DataFrame.unionByName, found)

    @property
    def runs(self) -> frozenset[str]:
        return frozenset(source.header.run for source in self.sources)

    def count(self) -> int:
        """The approximate number of rows. The rows of tables are counted by a job."""
        return self.file_rows + sum(table.count() for table in self.tables)


def discover(session: SparkSession, paths: Iterable[Path | str]) -> tuple[Source, ...]:
    """The traces at `paths`: files, directories with NDJSON or Parquet anywhere below, or `table:NAME`. Raises the
    TraceError family, since each header is read: headers of local files in threads, of others on the executors.

    A path is whatever Spark can read. Hidden files are skipped.
    """
    paths = list(dict.fromkeys(paths))
    tables = [str(path) for path in paths if is_table(path)]
    found = (name for path in paths if not is_table(path) for name in traces_below(session, named(path)))
    names = list(dict.fromkeys(found))
    elsewhere = beginnings(session, [name for name in names if not is_local(name)])
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each thread waits for the file system
        sources = list(pool.map(lambda name: headed(name, elsewhere.get(name)), names))
    sources += [Source(table, header) for table in tables for header in headers_of(session, table)]
    return distinct(sources)


def load(session: SparkSession, paths: Iterable[Path | str]) -> Loaded:
    """Load the traces at `paths` (files, directories, `table:NAME`). Lazy; raises the TraceError family before any job
    over the rows runs."""
    sources = discover(session, paths)
    recordings = [source.path for source in sources if source.is_ndjson]
    at_rest = [source.path for source in sources if not source.is_ndjson and not is_table(source.path)]
    names = dict.fromkeys(source.path for source in sources if is_table(source.path))
    bytes_of = sizes(session, [*recordings, *at_rest])
    small = [name for name in at_rest if bytes_of[name] <= WHOLE_FILE_BYTES]
    large = [name for name in at_rest if bytes_of[name] > WHOLE_FILE_BYTES]
    tables = [rows_of(session, name).withColumn("file", F.lit(name)) for name in names]
    rows = [*([_from_parquet(session, large)] if large else []), *tables]
    at_rest_rows = [*rows, *([_from_parquet(session, small)] if small else [])]
    segments = Counter(source.header.run for source in sources)
    of_small = [each for each in sources if each.path in small and bytes_of[each.path] <= PART_ROWS * ROW_BYTES]
    return Loaded(
        sources,
        _lines(session, recordings) if recordings else None,
        contents(session, small) if small else None,
        reduce(DataFrame.unionByName, rows) if rows else None,
        reduce(DataFrame.unionByName, at_rest_rows) if at_rest_rows else None,
        tuple(tables),
        sum(bytes_of[name] // (LINE_BYTES if name.endswith(SUFFIX) else ROW_BYTES) for name in bytes_of),
        frozenset(each.header.run for each in of_small if segments[each.header.run] == 1),
    )


def loaded_of(events: DataFrame, headers: Iterable[Header]) -> Loaded:
    """The rows of a DataFrame that has the columns of an event, of the runs with these headers. Raises
    NotATraceError."""
    sources = tuple(Source("", header) for header in headers)
    rows = as_events(fitting(events, "events", EVENT)).withColumn("file", F.lit(""))
    return Loaded(sources, None, None, rows, rows, (rows,), 0, frozenset())


def _lines(session: SparkSession, files: list[str]) -> DataFrame:
    rows = session.read.option("lineSep", "\n").text([literal(file) for file in files])
    file, block = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    return rows.select(F.col("value").cast("binary").alias("text"), file.alias("file"), block.alias("block"))


def _from_parquet(session: SparkSession, files: list[str]) -> DataFrame:
    # `run` is a column of the file, and must not be inferred from its path
    rows = session.read.schema(ddl(EVENT_TYPES)).option("recursiveFileLookup", "true").parquet(*map(literal, files))
    return rows.select(*COLUMNS, F.col("_metadata.file_path").alias("file"))


def _in_lines(runs: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    """A task has all lines of a block, in order. The first line of a file, its header, is neither an event nor set
    aside."""
    counts = Counter[tuple[object, ...]]()
    for some in frames_of(batches, PART_BATCH_ROWS):
        for place, rows in some.partition_by("file", "block", as_dict=True, maintain_order=True).items():
            file, block = place
            lines = rows["text"].to_list()[int(block == 0 and place not in counts) :]
            yield Part(*lines_in(b"\n".join([*lines, b""]), runs, file, block, counts[place]))
            counts[place] += len(lines)


def _in_rows(runs: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for rows in frames_of(batches, PART_BATCH_ROWS):
        yield Part(*events_among(rows, runs))


def _in_files(runs: frozenset[str], small: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            rows = parquet_rows(io.BytesIO(content.as_buffer()), name_of(path)).with_columns(file=pl.lit(path))
            here = runs.intersection(rows["run"].unique())
            events, aside = events_among(rows, here)
            is_chunk = aside.is_empty() and len(here) == 1 and here <= small
            yield Part(events, aside, content.as_buffer() if is_chunk else None)


def _events(parts: Iterator[Part]) -> Iterator[pl.DataFrame]:
    return (part.events for part in parts)


def _tables(read: Read, made: Made, columns: Columns, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for frame in made(read(batches)):
        yield from table_of(frame, columns).to_batches()
