"""Where violations are kept: tables to which each is added once, however often it is found.

A violation has an id that does not depend on when it was found: what is broken, by whom, since which event. Adding
leaves out those that are there; the rest is written by one task, which Parquet shows by one renamed file and a database
by one transaction. So whoever dies in the middle and begins again neither loses one nor writes one twice, as long as
one process at a time writes to a table.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.errors import SinkError
from distro_spark.violations import VIOLATION_COLUMNS

COLUMNS = pa.schema([pa.field("id", pa.string()), *VIOLATION_COLUMNS])
_DRIVERS = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}
_KEY = ("invariant", "run", "client", "node", "first_node", "first_seq")


class Sink(ABC):
    """A table of violations with the columns of `COLUMNS`."""

    @abstractmethod
    def read(self, session: SparkSession) -> DataFrame: ...

    @abstractmethod
    def write(self, rows: DataFrameWriter, mode: str) -> None: ...

    def make(self, session: SparkSession) -> None:
        """Begin the table unless it is there. Raises SinkError."""
        with self._errors():
            self.write(session.createDataFrame(COLUMNS.empty_table()).coalesce(1).write, "ignore")

    def add(self, session: SparkSession, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Add those that the table has not yet, and return them. Raises SinkError."""
        found = {violation_id(row): row for row in rows}
        if not found:
            return []
        with self._errors():
            ids = session.createDataFrame(pa.table({"id": list(found)}))
            there = self.read(session).select("id").join(F.broadcast(ids), "id", "left_semi")
            known = {row["id"] for row in there.collect()}
            news = {name: row for name, row in found.items() if name not in known}
            if news:
                table = pa.Table.from_pylist([{"id": name, **row} for name, row in news.items()], schema=COLUMNS)
                self.write(session.createDataFrame(table).coalesce(1).write, "append")
        return list(news.values())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            cause = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
            raise SinkError(f"{self}: {str(cause).splitlines()[0]}; look at the place and your rights there") from error


def violation_id(row: Mapping[str, Any]) -> str:
    text = "\0".join(str(row[name]) for name in _KEY)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class ParquetSink(Sink):
    """A directory on any file system that Spark can write to."""

    path: str

    def read(self, session: SparkSession) -> DataFrame:
        return session.read.parquet(self.path)

    def write(self, rows: DataFrameWriter, mode: str) -> None:
        rows.mode(mode).parquet(self.path)

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class JdbcSink(Sink):
    """A table of a database; its driver has to be among the jars of the session. `url` may hold user and password."""

    url: str
    table: str = "violations"

    def read(self, session: SparkSession) -> DataFrame:
        return session.read.jdbc(self.url, self.table, properties=self._properties)

    def write(self, rows: DataFrameWriter, mode: str) -> None:
        rows.jdbc(self.url, self.table, mode, self._properties)

    @property
    def _properties(self) -> dict[str, str]:
        """A driver that came with the job is not found by the kind of its URL, only by its name."""
        kind = self.url.removeprefix("jdbc:").partition(":")[0]
        return {"driver": _DRIVERS[kind]} if kind in _DRIVERS else {}

    def __str__(self) -> str:
        return self.url.partition("?")[0]


def add_to_all(
    session: SparkSession, sinks: Iterable[Sink], rows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Returns what is new in the last of them."""
    news: list[Mapping[str, Any]] = []
    for sink in sinks:
        news = sink.add(session, rows)
    return news
