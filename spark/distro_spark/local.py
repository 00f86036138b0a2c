"""The engine in this process: recordings of a local disk, as large as memory, without Spark and without Java.

A part of the clients is judged at a time, so that what is derived from rows is never all in memory at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import polars as pl

from distro_spark import frames
from distro_spark.cluster import Cluster
from distro_spark.engine import Columns, Engine, Judge
from distro_spark.survey import Survey, spans, surveyed
from distro_spark.timeline import sorted_parts


class Local(Engine):
    """The traces at some paths. Raises the TraceError family."""

    def __init__(self, paths: Path | str | Iterable[Path | str]) -> None:
        files = frames.files_at([paths] if isinstance(paths, Path | str) else paths)
        super().__init__(frames.distinct(map(frames.headed, files)))
        self._events, self._aside = frames.read(self.sources)

    @property
    def aside(self) -> pl.DataFrame:
        return self._aside

    @cached_property
    def survey(self) -> Survey:
        return surveyed(spans([self._events]))

    def queried(self, query: str, nodes: pl.DataFrame) -> pl.DataFrame:
        rows = self._events.lazy().join(nodes.lazy(), ["run", "node"], how="semi")
        return pl.SQLContext(rows=rows).execute(query.format(rows="rows")).collect()

    def of_clients(self, cluster: Cluster, judge: Judge, _: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        yield from map(judge, sorted_parts(cluster.own(self._events), part_rows))

    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        return cluster.own(self._events).filter(pl.col("client").is_null())
