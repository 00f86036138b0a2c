"""Which files a check reads, and what can be said of them before any row is read.

Where the traces are, what their headers say, and every reason to refuse one (empty, unreadable, of a newer schema, of
another shape, the same run twice): one small read per file and none per event. So a user's mistake is one line at once,
and the profile of each run is known to the invariants. Files of this machine are opened several at
once; those of another file system Spark reads, on the executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pyspark.sql import SparkSession

from distro_spark.files import beginnings, is_local, named, traces_below
from distro_spark.frames import SameRunTwiceError
from distro_spark.tables import headers_of, is_table
from distro_traces import ndjson, parquet
from distro_traces.header import Header

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Source:
    """One file with rows of one run; a large run lies in several, its segments. `path`: as `files` names it; that of a
    table is in all of its runs."""

    path: str
    header: Header
    cut: ndjson.Cut | None = None  # of a recording that was compacted; NDJSON shows its cut when the rows are read
    size_bytes: int = 0  # of NDJSON

    @property
    def is_ndjson(self) -> bool:
        return self.path.endswith(ndjson.SUFFIX)


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
    by_run: dict[tuple[str, int], Source] = {}
    for source in sources:
        other = by_run.setdefault((source.header.run, source.header.segment), source)
        if other is not source:
            raise SameRunTwiceError(
                f"run {source.header.run} is in two files, {other.path} and {source.path}; check one of them"
            )
    return tuple(sources)


def _sources(session: SparkSession, names: Sequence[str]) -> list[Source]:
    elsewhere = beginnings(session, [name for name in names if not is_local(name)])
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each waits for its file system
        return list(pool.map(lambda name: _headed(name, *elsewhere.get(name, ())), names))


def _headed(name: str, file: BinaryIO | None = None, size_bytes: int = 0) -> Source:
    if name.endswith(ndjson.SUFFIX):
        header = ndjson.read_header(name, file)
        return Source(name, header, size_bytes=size_bytes if file else os.path.getsize(name))
    return Source(name, *parquet.read_footer(name, file))
