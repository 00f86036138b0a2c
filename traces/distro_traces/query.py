"""SQL over traces in DuckDB, without Spark.

Views: `events` with the columns of `Event`, `runs` with a row for each header, and `violations` of the document that
`check --json` printed, or of Parquet files below a folder of that name. Lines of recordings that are no
events are left out; `check` counts them. Files are read where they lie; only a COPY writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from distro_traces import parquet
from distro_traces.errors import TooLongLineError, TraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS
from distro_traces.header import Header
from distro_traces.ndjson import LINE_BYTES_MAX, SUFFIX, first_too_long
from distro_traces.reading import headers_at

VIEWS = "views: events, runs, violations"
WITHOUT_VIOLATIONS = "views: events, runs; with --checked FILE also violations"


class QueryError(TraceError):
    """The SQL cannot be run; the message is the engine's first line."""


class Table(NamedTuple):
    """The answer of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(sql: str, path: Path, checked: Path | None = None) -> Table:
    """The answer of `sql` over the traces at `path`, and the violations in `checked`, a document of `check --json`.

    Raises QueryError and the TraceError family.
    """
    with opened(path, checked) as database:
        try:
            answer = database.execute(sql)
            if answer is None:
                raise QueryError(f"there is no statement in it; {_views(database)}")
            return Table(tuple(column[0] for column in answer.description or ()), answer.fetchall())
        except duckdb.Error as error:
            _refuse_too_long(path)
            raise QueryError(f"{str(error).splitlines()[0]}; {_views(database)}") from None


@contextmanager
def opened(path: Path, checked: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with the views over the traces at `path`. Raises the TraceError family."""
    found = headers_at(path)
    files = [file for _, files in found for file in files]
    with duckdb.connect(":memory:") as database:
        parts = [_select(kind, paths) for kind, paths in _by_kind(files) if paths]
        database.execute(f"CREATE VIEW events AS {' UNION ALL BY NAME '.join(parts)}")
        database.execute(
            "CREATE TABLE runs (run VARCHAR, profile VARCHAR, target VARCHAR, clock VARCHAR, nodes VARCHAR[], "
            "observed JSON, files VARCHAR[])"
        )
        rows = [_run_row(header, paths) for header, paths in found]
        database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        if checked is not None:
            _take_violations(database, checked)
            yield database
            return
        violations = sorted(path.rglob(f"{parquet.VIOLATIONS}*/*{parquet.SUFFIX}")) if path.is_dir() else []
        if violations:
            database.execute(f"CREATE VIEW violations AS SELECT * FROM read_parquet({_texts(violations)})")
        yield database


def _views(database: duckdb.DuckDBPyConnection) -> str:
    """The names that a statement may use. The violations are known only where they were given."""
    found = database.execute("SELECT table_name FROM information_schema.tables").fetchall()
    return VIEWS if ("violations",) in found else WITHOUT_VIOLATIONS


def _refuse_too_long(path: Path) -> None:
    """Find a line that is too long, after an error of the engine, which names only the file."""
    for _, files in headers_at(path):
        for file in files if files[0].suffix == SUFFIX else ():
            line = first_too_long(file)
            if line is not None:
                raise TooLongLineError(file, line, LINE_BYTES_MAX)


_REFERENCE = ("node", "seq", "at_ms", "kind", "message")
_EVENT = "STRUCT(node VARCHAR, seq BIGINT, at_ms BIGINT, kind VARCHAR, message VARCHAR)"
_TEXTS_OF_VIOLATION = ("invariant", "run", "profile", "client", "node", "message", "expected", "after", "known")
_VIOLATION = ", ".join(
    [
        *(f'"{name}" VARCHAR' for name in _TEXTS_OF_VIOLATION),
        *(f"{end}_event {_EVENT}" for end in ("first", "last")),
        "evidence JSON",
    ]
)


def _take_violations(database: duckdb.DuckDBPyConnection, document: Path) -> None:
    """Those that `check --json` listed, in the columns that they have at rest. Raises QueryError."""
    events = (f"v.{end}_event.{name} AS {end}_{name}" for end in ("first", "last") for name in _REFERENCE)
    columns = ", ".join([*(f'v."{name}"' for name in _TEXTS_OF_VIOLATION), *events, "v.evidence"])
    source = f"read_json(?, columns={{schema: 'VARCHAR', violations: 'STRUCT({_VIOLATION})[]'}}, maximum_object_size=?)"
    arguments = [str(document), document.stat().st_size + 1]
    try:
        (schema,) = database.execute(f"SELECT schema FROM {source}", arguments).fetchone() or (None,)
        listed = f"SELECT unnest(violations) AS v FROM {source}"
        database.execute(f"CREATE TABLE violations AS SELECT {columns} FROM ({listed})", arguments)
    except duckdb.Error:
        schema = None
    if schema != "distrocheck/check/1":
        raise QueryError(f"{document}: no document of 'distrocheck check --json'; write one into a file and name that")


def _run_row(header: Header, files: Sequence[Path]) -> tuple[object, ...]:
    observed = json.dumps(header.observed.to_json())
    names = [str(file) for file in files]
    return header.run, header.profile, header.target, header.clock, list(header.nodes), observed, names


def _by_kind(files: Sequence[Path]) -> tuple[tuple[str, list[Path]], ...]:
    at_rest = [file for file in files if file.suffix == parquet.SUFFIX]
    return ("parquet", at_rest), ("json", [file for file in files if file.suffix != parquet.SUFFIX])


def _select(kind: str, files: Sequence[Path]) -> str:
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    if kind == "parquet":
        return f"SELECT {columns} FROM read_parquet({_texts(files)}, hive_partitioning=false)"
    types = ", ".join(f"'{name}': '{_type(name)}'" for name in COLUMNS)
    return (
        f"SELECT {columns} FROM read_json({_texts(files)}, format='newline_delimited', ignore_errors=true, "
        f"maximum_object_size={LINE_BYTES_MAX}, hive_partitioning=false, columns={{{types}}}) "
        "WHERE kind IS NOT NULL AND seq IS NOT NULL"
    )


def _type(name: str) -> str:
    if name in INTEGER_COLUMNS:
        return "BIGINT"
    return "BOOLEAN" if name in BOOLEAN_COLUMNS else "VARCHAR"


def _texts(files: Sequence[Path]) -> str:
    return "[" + ", ".join("'" + str(file).replace("'", "''") + "'" for file in files) + "]"
