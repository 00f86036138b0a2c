"""Rows on their way from the task that reads them to the one that judges them: many in one value, a *pack*.

Spark needs time for each value of each row that it reads, moves, sorts or gives to Python. So files of Parquet are
given to Python as they are, and other rows once. There they are surveyed, and become packs. A file with all of a small
run is a pack as it is. Of all other rows those of the clients of one *bucket* are one, the bytes of an Arrow stream.
Only packs are kept, and pass the exchange; the rows in them are sorted where they are judged (`timeline.sorted_parts`).

    task that reads        files or rows ─→ frames ─→ survey.spans            ─→ driver
                                                   └→ a pack for each bucket  ─→ disk ─→ exchange ─→ task that judges

A client is in the bucket of its checksum, in each task the same; a small run has a single bucket.
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

PACKED = {**SPANS, "bucket": pl.Int64(), "pack": pl.Binary()}
"""What `survey.spans` gives, or a pack; the other columns are null."""

PACKED_ROWS = 500_000
"""So many rows are in memory at once in a task that reads."""

OF_PARQUET = b"PAR1"
"""With which a pack begins that is a file."""


class Part(NamedTuple):
    """Events, and how many rows beside them are none. `file`: its bytes, where it has nothing but events of a small
    run."""

    events: pl.DataFrame
    aside: int
    file: pa.Buffer | None = None


class Buckets(NamedTuple):
    number: int
    small: frozenset[str]

    def of(self, run: str, client: str | None) -> int:
        return crc32((run if run in self.small else f"{run}\n{client}").encode()) % self.number


Read = Callable[[Iterator[pa.RecordBatch]], Iterator[Part]]


def packed(loaded: Loaded, number: int) -> DataFrame:
    """`PACKED`, of all rows, in so many buckets; one pass."""
    found, buckets = [], Buckets(number, loaded.small_runs)
    if loaded.files is not None:
        read: Read = partial(_in_files, loaded.runs, loaded.small_runs)
        found.append(loaded.files.mapInArrow(partial(_packs, read, buckets), ddl(PACKED)))
    if loaded.others is not None:
        rows = loaded.others.select(*COLUMNS, F.col("reason").isNull().alias("is_event"))
        found.append(rows.mapInArrow(partial(_packs, _in_rows, buckets), ddl(PACKED)))
    return reduce(DataFrame.union, found)


def _packs(read: Read, buckets: Buckets, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for parts in gathered(read(batches), lambda part: part.events.height, PACKED_ROWS):
        yield from _of(parts, buckets)


def _of(read: Sequence[Part], buckets: Buckets) -> Iterator[pa.RecordBatch]:
    aside = pl.DataFrame({"rows": [sum(each.aside for each in read)]})
    packs = [
        (buckets.of(each.events["run"][0], None), each.file.to_pybytes()) for each in read if each.file is not None
    ]
    others = [each.events for each in read if each.file is None]
    if others:
        packs += _in_buckets(pl.concat(others, rechunk=True), buckets)
    parts = [
        pl.DataFrame(schema=PACKED),
        aside,
        spans([each.events for each in read]),
        pl.DataFrame(packs, {name: PACKED[name] for name in ("bucket", "pack")}, orient="row"),
    ]
    yield from table_of(pl.concat(parts, how="diagonal_relaxed"), PACKED).to_batches()


def _in_buckets(events: pl.DataFrame, buckets: Buckets) -> Iterator[tuple[int, bytes]]:
    clients = events.select("run", "client").unique()
    places = [buckets.of(run, client) for run, client in clients.iter_rows()]
    clients = clients.with_columns(bucket=pl.Series(places, dtype=pl.Int64))
    placed = events.join(clients, ["run", "client"], nulls_equal=True, maintain_order="left")
    for (bucket,), rows in placed.partition_by("bucket", as_dict=True, include_key=False).items():
        pack = io.BytesIO()
        rows.write_ipc_stream(pack, compression="lz4")
        yield bucket, pack.getvalue()


def _in_files(runs: frozenset[str], small: frozenset[str], batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            rows = parquet_rows(io.BytesIO(content.as_buffer()), name_of(path))
            here = runs.intersection(rows["run"].unique())
            events = rows.filter(fits(here))
            is_pack = events.height == rows.height and len(here) == 1 and here <= small
            yield Part(events, rows.height - events.height, content.as_buffer() if is_pack else None)


def _in_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[Part]:
    for rows in frames_of(batches, PACKED_ROWS):
        events = rows.filter("is_event").drop("is_event")
        yield Part(events, rows.height - events.height)


def rows_in(pack: pa.Buffer) -> pl.DataFrame:
    file = io.BytesIO(pack)
    return parquet_rows(file, "a file") if pack.slice(0, 4).to_pybytes() == OF_PARQUET else pl.read_ipc_stream(file)


def of_no_client(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """From packs the rows about no client."""
    for batch in batches:
        for pack in batch.column("pack"):
            yield from table_of(rows_in(pack.as_buffer()).filter(c("client").is_null()), EVENT_TYPES).to_batches()


def whole_buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """From packs that are sorted by bucket."""
    each = (pair for batch in batches for pair in zip(batch.column("bucket"), batch.column("pack"), strict=True))
    for _, pairs in groupby(each, lambda pair: pair[0].as_py()):
        yield pl.concat(rows_in(pack.as_buffer()) for _, pack in pairs)
