"""Which files a check reads, and what can be said of them before any row is read.

Where the traces are, what their headers say, and every reason to refuse one (empty, unreadable, of a newer schema, of
another shape, the same run twice): one small read per file and none per event. So a user's mistake is one line at once,
and the profile of each run is known to the invariants. Files of this machine are opened several at
once; those of another file system Spark reads, on the executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from distro_spark.files import beginnings, is_local, named, traces_below
from distro_spark.frames import Source, distinct, headed
from distro_spark.tables import headers_of, is_table

_AT_ONCE = 16


def discover(session: SparkSession, paths: Iterable[Path | str]) -> tuple[Source, ...]:
    """The traces at `paths`: files, directories with NDJSON or Parquet anywhere below, or `table:NAME`. Raises the
    TraceError family.

    A path is whatever Spark can read. Hidden files are skipped.
    """
    paths = list(dict.fromkeys(paths))
    tables = [str(path) for path in paths if is_table(path)]
    names = dict.fromkeys(name for path in paths if not is_table(path) for name in traces_below(session, named(path)))
    sources = _sources(session, list(names))
    sources += [Source(table, header) for table in tables for header in headers_of(session, table)]
    return distinct(sources)


def _sources(session: SparkSession, names: Sequence[str]) -> list[Source]:
    elsewhere = beginnings(session, [name for name in names if not is_local(name)])
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each waits for its file system
        return list(pool.map(lambda name: headed(name, elsewhere.get(name)), names))
