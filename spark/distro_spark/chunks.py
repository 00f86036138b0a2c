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
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

from distro_spark.arrow import gathered, table_of
from distro_spark.expressions import c
from distro_spark.frames import ASIDE, EVENT_TYPES, parquet_rows
from distro_spark.load import PART_BATCH_ROWS, Loaded, Part
from distro_spark.survey import SPANS, spans

CHUNKS = {**SPANS, **ASIDE, "bucket": pl.Int64(), "chunk": pl.Binary()}
"""A row has either the columns of `survey.spans`, or those of `frames.ASIDE`, or a bucket, its chunk and the number of
`rows` in that (of a file: null); the other columns are null."""

OF_PARQUET = b"PAR1"
"""The first bytes of a chunk that is a Parquet file; a chunk without them is an Arrow stream."""


class Buckets(NamedTuple):
    number: int
    small: frozenset[str]

    def of(self, run: str, client: str | None) -> int:
        return crc32((run if run in self.small else f"{run}\n{client}").encode()) % self.number


def chunked(loaded: Loaded, number: int) -> DataFrame:
    """All rows as `CHUNKS`, in that number of buckets."""
    return loaded.read(partial(_chunks, Buckets(number, loaded.small_runs)), CHUNKS)


def _chunks(buckets: Buckets, read: Iterator[Part]) -> Iterator[pl.DataFrame]:
    for parts in gathered(read, lambda part: part.events.height, PART_BATCH_ROWS):
        chunks: list[tuple[int, bytes, int | None]] = [
            (buckets.of(each.events["run"][0], None), each.file.to_pybytes(), None)
            for each in parts
            if each.file is not None
        ]
        others = [each.events for each in parts if each.file is None]
        if others:
            chunks += _in_buckets(pl.concat(others, rechunk=True), buckets)
        found = pl.DataFrame(chunks, {name: CHUNKS[name] for name in ("bucket", "chunk", "rows")}, orient="row")
        aside = [each.aside for each in parts]
        surveyed = [*aside, spans([each.events for each in parts]), found]
        yield pl.concat([pl.DataFrame(schema=CHUNKS), *surveyed], how="diagonal_relaxed")


def _in_buckets(events: pl.DataFrame, buckets: Buckets) -> Iterator[tuple[int, bytes, int]]:
    clients = events.select("run", "client").unique()
    places = [buckets.of(run, client) for run, client in clients.iter_rows()]
    clients = clients.with_columns(bucket=pl.Series(places, dtype=pl.Int64))
    placed = events.join(clients, ["run", "client"], nulls_equal=True, maintain_order="left")
    for (bucket,), rows in placed.partition_by("bucket", as_dict=True, include_key=False).items():
        chunk = io.BytesIO()
        rows.write_ipc_stream(chunk, compression="lz4")
        yield bucket, chunk.getvalue(), rows.height


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
