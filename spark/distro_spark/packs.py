"""Rows on their way from the task that reads them to the one that judges them: many in one value, a *pack*.

Spark needs time for each value of each row that it reads, moves, sorts or gives to Python. So files of Parquet are
given to Python as they are, and other rows once; there they are surveyed, and those of the clients of one *bucket*
become one value, the bytes of an Arrow stream. Only packs are kept, and pass the exchange; the rows in them are sorted
where they are judged (`timeline.sorted_rows`).

    task that reads        files or rows ─→ frames ─→ survey.spans            ─→ driver
                                                   └→ a pack for each bucket  ─→ disk ─→ exchange ─→ task that judges

A client is in the bucket of its checksum, in each task the same. Rows about no client are in bucket -1.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from zlib import crc32

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import ddl, frames_of, table_of
from distro_spark.files import name_of
from distro_spark.frames import EVENT_TYPES, fits, parquet_rows
from distro_spark.load import Loaded
from distro_spark.survey import SPANS, spans
from distro_traces.event import COLUMNS

PACKED = {**SPANS, "bucket": pl.Int64(), "pack": pl.Binary()}
"""What `survey.spans` gives, or a pack; the other columns are null."""

PACKED_ROWS = 500_000
"""So many rows are in memory at once in a task that reads."""

OF_NO_CLIENT = -1

Read = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[pl.DataFrame, int]]]
"""The events, some at a time, and how many rows are none."""


def packed(loaded: Loaded, buckets: int) -> DataFrame:
    """`PACKED`, of all rows; one pass."""
    found = []
    if loaded.files is not None:
        found.append(loaded.files.mapInArrow(partial(_packs, partial(_in_files, loaded.runs), buckets), ddl(PACKED)))
    if loaded.others is not None:
        rows = loaded.others.select(*COLUMNS, F.col("reason").isNull().alias("is_event"))
        found.append(rows.mapInArrow(partial(_packs, _in_rows, buckets), ddl(PACKED)))
    return reduce(DataFrame.union, found)


def _packs(
    read: Read,
    buckets: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    waiting: list[pl.DataFrame] = []
    for events, aside in read(batches):
        if aside:
            yield from _sent(pl.DataFrame({"rows": [aside]}))
        waiting.append(events)
        if sum(each.height for each in waiting) >= PACKED_ROWS:
            yield from _of(pl.concat(waiting, rechunk=True), buckets)
            waiting = []
    if waiting:
        yield from _of(pl.concat(waiting, rechunk=True), buckets)


def _of(events: pl.DataFrame, buckets: int) -> Iterator[pa.RecordBatch]:
    yield from _sent(spans(events))
    for (bucket,), rows in _in_buckets(events, buckets).partition_by("bucket", as_dict=True, include_key=False).items():
        pack = io.BytesIO()
        rows.write_ipc_stream(pack, compression="lz4")
        yield from _sent(pl.DataFrame({"bucket": [bucket], "pack": [pack.getvalue()]}))


def _sent(rows: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    found = pl.concat([pl.DataFrame(schema=PACKED), rows], how="diagonal_relaxed")
    yield from table_of(found, PACKED).to_batches()


def _in_buckets(events: pl.DataFrame, buckets: int) -> pl.DataFrame:
    clients = events.select("run", "client").unique()
    places = [
        OF_NO_CLIENT if client is None else crc32(f"{run}\n{client}".encode()) % buckets
        for run, client in clients.iter_rows()
    ]
    clients = clients.with_columns(bucket=pl.Series(places, dtype=pl.Int64))
    return events.join(clients, ["run", "client"], nulls_equal=True, maintain_order="left")


def _in_files(runs: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pl.DataFrame, int]]:
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            rows = parquet_rows(io.BytesIO(content.as_buffer()), name_of(path))
            events = rows.filter(fits(runs.intersection(rows["run"].unique())))
            yield events, rows.height - events.height


def _in_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pl.DataFrame, int]]:
    for rows in frames_of(batches, PACKED_ROWS):
        events = rows.filter("is_event").drop("is_event")
        yield events, rows.height - events.height


def in_packs(packs: Iterable[bytes | pa.Buffer]) -> pl.DataFrame:
    """The rows."""
    found = [pl.read_ipc_stream(io.BytesIO(pack)) for pack in packs]
    return pl.concat(found) if found else pl.DataFrame(schema=EVENT_TYPES)


def whole_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """From packs that are sorted by bucket."""
    now, waiting = OF_NO_CLIENT, list[pa.Buffer]()
    for batch in batches:
        for bucket, pack in zip(batch.column("bucket").to_pylist(), batch.column("pack"), strict=True):
            if bucket != now and waiting:
                yield in_packs(waiting)
                waiting = []
            now = bucket
            waiting.append(pack.as_buffer())
    if waiting:
        yield in_packs(waiting)
