"""Between Spark and Polars: batches and tables of Arrow, and the types of columns in both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pyarrow as pa

from distro_spark.engine import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

_SPARK = {pl.Int64(): "bigint", pl.String(): "string", pl.Boolean(): "boolean", pl.Binary(): "binary"}
_ARROW = {pl.Int64(): pa.int64(), pl.String(): pa.string(), pl.Boolean(): pa.bool_(), pl.Binary(): pa.binary()}


def types(columns: Columns) -> dict[str, str]:
    """What Spark calls the types of these columns."""
    return {name: _SPARK[kind] for name, kind in columns.items()}


def ddl(columns: Columns) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types(columns).items())


def table_of(rows: pl.DataFrame, columns: Columns) -> pa.Table:
    """These columns, as Spark reads them."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
    return rows.select(list(columns)).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)


def frame(rows: DataFrame) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.toArrow()))


def frames_of(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pl.DataFrame]:
    """Some batches at a time, of so many rows."""
    for some in gathered(batches, attrgetter("num_rows"), rows):
        yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches(some)))


def gathered(items: Iterable[T], size_of: Callable[[T], int], size: int) -> Iterator[list[T]]:
    """Some items at a time, which have that size together; the last ones may have less."""
    waiting: list[T] = []
    waiting_size = 0
    for item in items:
        waiting.append(item)
        waiting_size += size_of(item)
        if waiting_size >= size:
            yield waiting
            waiting, waiting_size = [], 0
    if waiting:
        yield waiting
