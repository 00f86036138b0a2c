"""Traces in a table that the session knows by name: Delta, Iceberg, Hive or whatever its catalogs hold.

A row is an event, with the columns of one; `header` has the header of its run, in the JSON of the first line of a
recording, and may be null in all rows of a run but one. How the table is stored is the business of its own reader,
which comes with the session (`spark.jars.packages`, `spark.sql.catalog.…`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.arrow import types
from distro_spark.errors import one_line
from distro_spark.frames import EVENT_TYPES
from distro_traces.errors import EmptyTraceError, NotATraceError
from distro_traces.event import COLUMNS
from distro_traces.header import Header, parse_header

PREFIX = "table:"
"""What a path begins with that names a table: `table:lake.ops.traces`."""

HEADER = "header"


EVENT = types(EVENT_TYPES)
"""The columns of an event, and the types that Spark has for them."""


def is_table(path: Path | str) -> bool:
    return str(path).startswith(PREFIX)


def rows_of(session: SparkSession, path: str) -> DataFrame:
    """The columns of `EVENT`. Raises NotATraceError, EmptyTraceError."""
    return as_events(_opened(session, path))


def headers_of(session: SparkSession, path: str) -> list[Header]:
    """Of each run that has one; one job over one column. Raises NotATraceError, NewerTraceError, EmptyTraceError."""
    return headers_in(_opened(session, path).select("run", HEADER), path)


def headers_in(runs: DataFrame, name: str = "runs") -> list[Header]:
    """Of a table with the columns `run` and `header`; one row for each segment of a run. Raises NotATraceError,
    NewerTraceError, EmptyTraceError."""
    columns = dict.fromkeys(("run", HEADER), "string")
    rows = fitting(runs, name, columns, "runs").select(*columns)
    found: dict[tuple[str, int], Header] = {}
    for run, line in rows.where(F.col(HEADER).isNotNull()).distinct().collect():
        header = parse_header(line, f"{name}: run {run}")
        if header.run != run:
            raise NotATraceError(f"{name}: the header of run {run} is that of run {header.run}")
        if found.setdefault((run, header.segment), header) != header:
            raise NotATraceError(f"{name}: run {run} has two headers that differ; keep one of them")
    if not found:
        raise EmptyTraceError(f"{name}: no row has a header, so of no run it is known what it was; fill in its column")
    return list(found.values())


def add(session: SparkSession, path: str, events: DataFrame, headers: Iterable[Header]) -> None:
    """Append events of `Loaded.events` to the table, which is made where there is none, as its catalog makes tables."""
    lines = {header.run: json.dumps(header.to_json()) for header in headers}
    runs = session.createDataFrame(pa.table({"run": list(lines), HEADER: list(lines.values())}))
    rows = events.select(*COLUMNS).join(F.broadcast(runs), "run", "left").select(*COLUMNS, HEADER)
    rows.write.saveAsTable(path.removeprefix(PREFIX), mode="append")


def fitting(rows: DataFrame, name: str, columns: Mapping[str, str], of: str = "events") -> DataFrame:
    """The rows, which have these columns. Raises NotATraceError."""
    found = dict(rows.dtypes)
    for column, kind in columns.items():
        has = found.get(column, "missing")
        if has != kind and (has, kind) != ("int", "bigint"):
            raise NotATraceError(f"{name}: not a table of {of}, its column {column} is {has} instead of {kind}")
    return rows


def as_events(rows: DataFrame) -> DataFrame:
    """The columns of `EVENT`, in its types."""
    return rows.select(*(F.col(name).cast(kind) for name, kind in EVENT.items()))


def _opened(session: SparkSession, path: str) -> DataFrame:
    advice = (
        "name a table that a catalog of the session has, and give the session the catalog's jar and settings (--conf)"
    )
    with one_line(lambda text: EmptyTraceError(f"{path}: {text}; {advice}")):
        return fitting(session.table(path.removeprefix(PREFIX)), path, {**EVENT, HEADER: "string"})
