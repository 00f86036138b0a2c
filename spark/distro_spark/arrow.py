"""Between Spark and Polars: batches and tables of Arrow, and the types of columns in both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

from distro_spark.engine import Columns

_DDL = {pl.Int64(): "long", pl.String(): "string", pl.Boolean(): "boolean", pl.Binary(): "binary"}
_ARROW = {pl.Int64(): pa.int64(), pl.String(): pa.string(), pl.Boolean(): pa.bool_(), pl.Binary(): pa.binary()}


def ddl(columns: Columns) -> str:
    return ", ".join(f"{name} {_DDL[kind]}" for name, kind in columns.items())


def table_of(rows: pl.DataFrame, columns: Columns) -> pa.Table:
    """These columns, as Spark reads them."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns.items()])
    return rows.select(list(columns)).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)


def frame(rows: DataFrame) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.toArrow()))


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
