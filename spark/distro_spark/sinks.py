"""Tables of violations: each violation is added once, however often it is found.

The id of a violation does not depend on when it was found: it consists of run, invariant, node, client, first event,
and, since several may begin with the same event, of what they then differ in (`with_ids`). Violations that the table
has already are left out; the others are written at once, by one renamed file or one transaction. So a process that dies
and starts again neither loses a violation nor writes one twice, as long as one process at a time writes to a table.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from distro_spark.arrow import table_of
from distro_spark.errors import SinkError, first_line, one_line
from distro_spark.invariants import INVARIANTS
from distro_spark.violations import VIOLATION_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {"id": pl.String(), **VIOLATION_COLUMNS}
KEY = ("run", "invariant", "node", "client", "first_node", "first_seq")
_DRIVERS = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}
_ADVICE = "look at the place and your rights there"
_DRIVER_ADVICE = "add the driver's jar: --conf spark.jars.packages=GROUP:NAME:VERSION"


class Sink(Protocol):
    """A table of violations with the columns of `COLUMNS`."""

    def add(self, violations: pl.DataFrame) -> pl.DataFrame:
        """Add the violations that the table does not have yet, and return them. Raises SinkError."""
        ...


def with_ids(violations: pl.DataFrame) -> pl.DataFrame:
    """One violation for each id, the last one found. Violations that begin with the same event have different ids where
    their invariant names what they differ in (`Invariant.differ_by`)."""
    by = pl.col("invariant").replace_strict({name: each.differ_by for name, each in INVARIANTS.items()}, default="peer")
    of_evidence = pl.col("evidence").str.json_path_match("$." + by)
    other = pl.when(by == "last_seq").then(pl.col("last_seq").cast(pl.String)).otherwise(of_evidence)
    texts = (
        "\0".join(str(value) for value in row if value is not None)
        for row in violations.select(*KEY, other=other).iter_rows()
    )
    ids = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    return violations.select(pl.Series("id", ids, dtype=pl.String), *VIOLATION_COLUMNS).unique(
        "id", keep="last", maintain_order=True
    )


@dataclass(frozen=True)
class ParquetSink:
    """A directory of this machine."""

    path: Path

    def add(self, violations: pl.DataFrame) -> pl.DataFrame:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            parts = sorted(self.path.glob("*.parquet"))
            known = pl.concat([pl.DataFrame(schema=COLUMNS)["id"], *(pl.read_parquet(part)["id"] for part in parts)])
            news = with_ids(violations).filter(~pl.col("id").is_in(known.to_list()))
            if news.height or not parts:
                hidden = self.path / f".part-{os.getpid()}.tmp"
                news.write_parquet(hidden)
                hidden.replace(self.path / f"part-{len(parts):05}-{os.urandom(4).hex()}.parquet")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SinkError(f"{self.path}: {first_line(error)}; {_ADVICE}") from error
        return news


@dataclass(frozen=True)
class JdbcSink:
    """A table of a database, which Spark writes; its driver has to be among the jars of the session. `url` may hold
    user and password."""

    session: SparkSession
    url: str
    table: str = "violations"

    def add(self, violations: pl.DataFrame) -> pl.DataFrame:
        found = with_ids(violations)
        with one_line(self._error):
            self._write(found.clear(), "ignore")
            known = {row["id"] for row in self.read().select("id").collect()} if found.height else set()
            news = found.filter(~pl.col("id").is_in(list(known)))
            if news.height:
                self._write(news, "append")
        return news

    def _error(self, text: str) -> SinkError:
        advice = _DRIVER_ADVICE if "No suitable driver" in text else _ADVICE
        return SinkError(f"{self.url.partition('?')[0]}: {text}; {advice}")

    def read(self) -> DataFrame:
        return self.session.read.jdbc(self.url, self.table, properties=self._properties)

    def _write(self, rows: pl.DataFrame, mode: str) -> None:
        self.session.createDataFrame(table_of(rows, COLUMNS)).coalesce(1).write.jdbc(
            self.url, self.table, mode, self._properties
        )

    @property
    def _properties(self) -> dict[str, str]:
        """A driver that came with the job is not found by the kind of its URL, only by its name."""
        kind = self.url.removeprefix("jdbc:").partition(":")[0]
        return {"driver": _DRIVERS[kind]} if kind in _DRIVERS else {}


def add_to_all(sinks: Iterable[Sink], violations: pl.DataFrame) -> pl.DataFrame:
    """Returns the violations that are new in the last sink."""
    news = violations.clear()
    for sink in sinks:
        news = sink.add(violations)
    return news
