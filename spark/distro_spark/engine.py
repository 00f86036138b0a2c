"""What an engine supplies to a check: the rows of whole clients and of nodes, and what the reader set aside.

There are two: this process (`local`) and Spark (`on_spark`). This file is apart from `check`, so that an engine imports
nothing that judges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from distro_spark.cluster import MEASURES, Cluster
from distro_spark.result import CutFile, InvalidRows
from distro_spark.survey import Survey
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, clock_went_back, two_rows

PART_ROWS = 500_000
"""About so many rows of clients are judged at a time, since a part of few needs a tenth of a second too; more where
they are of one client."""

RESULTS_AT_ONCE = 500_000
"""Results that are in memory at once, some 500 MB of violations; more where a part has more."""

Judge = Callable[[pl.DataFrame], pl.DataFrame]
"""Over the rows of some whole clients."""

Columns = Mapping[str, pl.DataType]


@dataclass(frozen=True, slots=True)
class Set:
    """The rows set aside by the reader: reasons for quarantine with their counts, cut recordings, and the counts by the
    run in whose file or table the rows are."""

    invalid: tuple[InvalidRows, ...]
    cuts: tuple[CutFile, ...]
    of_run: Mapping[str, int]


def set_aside(rows: Iterable[tuple[str, InvalidRows]], cuts: Iterable[CutFile]) -> Set:
    """`rows`: some at a time, by run; of each reason the first ones are named, and the most frequent reason first."""
    found, of_run = dict[str, InvalidRows](), Counter[str]()
    for run, some in rows:
        first = found.get(some.reason)
        found[some.reason] = some if first is None else replace(first, rows=first.rows + some.rows)
        of_run[run] += some.rows
    return Set(tuple(sorted(found.values(), key=lambda each: (-each.rows, each.reason))), tuple(cuts), of_run)


_DISTINCT = "SELECT run, node, COUNT(DISTINCT seq) AS distinct FROM {rows} GROUP BY run, node"
_CLOCKS = """SELECT run, node, seq, before_ms, at_ms, ROW_NUMBER() OVER (PARTITION BY run ORDER BY node, seq) AS place
    FROM (SELECT *, LAG(at_ms) OVER (PARTITION BY run, node ORDER BY seq, at_ms) AS before_ms FROM {rows}) AS pairs
    WHERE at_ms < before_ms"""
_NAMES = """SELECT run, node, seq, ROW_NUMBER() OVER (PARTITION BY run ORDER BY seq, node) AS place
    FROM (SELECT run, node, seq, COUNT(*) AS times FROM (SELECT DISTINCT * FROM {rows}) AS each GROUP BY run, node, seq)
        AS numbers
    WHERE times > 1"""
_FIRST = "SELECT * FROM ({}) AS found WHERE place = 1"
"""The different sequence numbers of each node, clocks that go back in the order of these, sequence numbers that stand
for two rows that differ; and of each run the first."""


class Engine(ABC):
    """The rows and the computations over all of them. Frames that it gives are small: rows of nodes, and
    violations."""

    headers: Mapping[str, Header]

    @cached_property
    @abstractmethod
    def survey(self) -> Survey: ...

    @abstractmethod
    def set_aside(self) -> Set: ...

    @abstractmethod
    def queried(self, query: str, nodes: pl.DataFrame) -> pl.DataFrame:
        """The result of the SQL query over `{rows}`, which are the events of these nodes (run, node)."""

    @abstractmethod
    def of_clients(self, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        """The results of `judge`, which has these columns, over all rows about clients: some whole clients at a time,
        of about so many rows, sorted (`timeline.SORTED`). They come in parts, each of whole clients."""

    @abstractmethod
    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        """The rows about no client."""

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Nodes with their `cluster.MEASURES`, and the rows that are marks, each once."""
        nodes, marks = self.survey
        counted = self._queried(_DISTINCT, nodes.filter("is_unordered"))
        found = (
            nodes.join(counted, ["run", "node"], how="left") if counted.height else nodes.with_columns(distinct="rows")
        )
        return found.with_columns(pl.coalesce("distinct", "rows")).select("run", "node", *MEASURES), marks

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        """By run rows that contradict each other, and clocks that go back."""
        virtual = [run for run, header in self.headers.items() if header.clock == "virtual"]
        clocks = self._queried(
            _FIRST.format(_CLOCKS), self.survey.nodes.filter("may_go_back", pl.col("run").is_in(virtual))
        )
        names = self._queried(_FIRST.format(_NAMES), cluster.nodes.filter(pl.col("rows") > pl.col("distinct")))
        return {
            **{run: clock_went_back(*values) for run, *values, _ in clocks.iter_rows()},
            **{run: two_rows(*values) for run, *values, _ in names.iter_rows()},
        }

    def _queried(self, query: str, nodes: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame() if nodes.is_empty() else self.queried(query, nodes.select("run", "node"))
