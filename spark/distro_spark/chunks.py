"""Chunks: many rows in one binary value, between the task that reads rows and the task that judges them.

Spark needs time for each value of each row that it reads, moves, sorts or gives to Python. So Python gets the bytes of
Parquet files, and each row of other sources once. It surveys the rows and makes chunks of them. A Parquet file that
holds only rows of a small run is a chunk without change. All other rows are divided by client into *buckets*; the rows
of one bucket are one chunk, the bytes of an Arrow stream. Spark stores and exchanges only chunks. The task that judges
a chunk sorts its rows (`timeline.sorted_parts`).

    task that reads        files or rows ─→ frames ─→ survey.spans            ─→ driver
                                                   └→ a chunk for each bucket  ─→ disk ─→ exchange ─→ task that judges

The checksum of a client's id decides its bucket, so every task chooses the same one. A small run has a single bucket.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl, frames_of, gathered, table_of
from distro_spark.expressions import c
from distro_spark.files import name_of
from distro_spark.frames import EVENT_TYPES, fits, parquet_rows
from distro_spark.load import Loaded
from distro_spark.survey import SPANS, spans
from distro_traces.event import COLUMNS

CHUNKS = {**SPANS, "bucket": pl.Int64(), "chunk": pl.Binary()}
"""A row has either the columns of `survey.spans`, or a bucket, its chunk and the number of `rows` in that (of a file:
null); the other columns are null."""

CHUNK_ROWS = 500_000
"""The number of rows that a reading task has in memory at once."""

OF_PARQUET = b"PAR1"
"""The first bytes of a chunk that is a Parquet file; a chunk without them is an Arrow stream."""


class Part(NamedTuple):
    """The events among some rows, and the number of rows that are no events.

    `file`: the bytes of the file, if it has only events of a small run.
    """

    events: pl.DataFrame
    aside: int
    file: pa.Buffer | None = None


class Buckets(NamedTuple):
    number: int
    small: frozenset[str]

    def of(self, run: str, client: str | None) -> int:
        return crc32((run if run in self.small else f"{run}\n{client}").encode()) % self.number


Read = Callable[[Iterator[pa.RecordBatch]], Iterator[Part]]


def chunked(loaded: Loaded, number: int) -> DataFrame:
    """All rows as `CHUNKS`, in that number of buckets. Spark reads the source once."""
    found, buckets = [], Buckets(number, loaded.small_runs)
    if loaded.files is not None:
        read: Read = partial(_in_files, loaded.runs, loaded.small_runs)
        found.append(loaded.files.mapInArrow(partial(_chunks, read, buckets), ddl(CHUNKS)))
    if loaded.others is not None:
        rows = loaded.others.select(*COLUMNS, F.col("reason").isNull().alias("is_event"))
        found.append(rows.mapInArrow(partial(_chunks, _in_rows, buckets), ddl(CHUNKS)))
    return reduce(DataFrame.union, found)


def _chunks(read: Read, buckets: Buckets, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for parts in gathered(read(batches), lambda part: part.events.height, CHUNK_ROWS):
        yield from _of(parts, buckets)


def _of(read: Sequence[Part], buckets: Buckets) -> Iterator[pa.RecordBatch]:
    aside = pl.DataFrame({"rows": [sum(each.aside for each in read)]})
    chunks: list[tuple[int, bytes, int | None]] = [
        (buckets.of(each.events["run"][0], None), each.file.to_pybytes(), None)
        for each in read
        if each.file is not None
    ]
    others = [each.events for each in read if each.file is None]
    if others:
        chunks += _in_buckets(pl.concat(others, rechunk=True), buckets)
    parts = [
        pl.DataFrame(schema=CHUNKS),
        aside,
        spans([each.events for each in read]),
        pl.DataFrame(chunks, {name: CHUNKS[name] for name in ("bucket", "chunk", "rows")}, orient="row"),
    ]
    yield from table_of(pl.concat(parts, how="diagonal_relaxed"), CHUNKS).to_batches()


def _in_buckets(events: pl.DataFrame, buckets: Buckets) -> Iterator[tuple[int, bytes, int]]:
    clients = events.select("run", "client").unique()
    places = [buckets.of(run, client) for run, client in clients.iter_rows()]
    clients = clients.with_columns(bucket=pl.Series(places, dtype=pl.Int64))
    placed = events.join(clients, ["run", "client"], nulls_equal=True, maintain_order="left")
    for (bucket,), rows in placed.partition_by("bucket", as_dict=True, include_key=False).items():
        chunk = io.BytesIO()
        rows.write_ipc_stream(chunk, compression="lz4")
        yield bucket, chunk.getvalue(), rows.height


def _in_files(runs: frozenset[str], small: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            rows = parquet_rows(io.BytesIO(content.as_buffer()), name_of(path))
            here = runs.intersection(rows["run"].unique())
            events = rows.filter(fits(here))
            is_chunk = events.height == rows.height and len(here) == 1 and here <= small
            yield Part(events, rows.height - events.height, content.as_buffer() if is_chunk else None)


def _in_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for rows in frames_of(batches, CHUNK_ROWS):
        events = rows.filter("is_event").drop("is_event")
        yield Part(events, rows.height - events.height)


def rows_in(chunk: pa.Buffer) -> pl.DataFrame:
    file = io.BytesIO(chunk)
    return parquet_rows(file, "a file") if chunk.slice(0, 4).to_pybytes() == OF_PARQUET else pl.read_ipc_stream(file)


def of_no_client(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the chunks that are about no client."""
    for batch in batches:
        for chunk in batch.column("chunk"):
            yield from table_of(rows_in(chunk.as_buffer()).filter(c("client").is_null()), EVENT_TYPES).to_batches()


def whole_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """The rows of each bucket, from chunks that are sorted by bucket."""
    each = (pair for batch in batches for pair in zip(batch.column("bucket"), batch.column("chunk"), strict=True))
    for _, pairs in groupby(each, lambda pair: pair[0].as_py()):
        yield pl.concat(rows_in(chunk.as_buffer()) for _, chunk in pairs)
