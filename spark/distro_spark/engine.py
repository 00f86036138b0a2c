"""What an engine supplies to a check: the rows of whole clients and of nodes, and what the reader set aside.

There are two: this process (`local`) and Spark (`on_spark`). This file is apart from `check`, so that an engine imports
nothing that judges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from distro_spark.cluster import MEASURES, Cluster
from distro_spark.frames import ASIDE, Source
from distro_spark.result import CutFile, InvalidRows
from distro_spark.survey import Survey
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording, clock_went_back, two_rows
from distro_traces.ndjson import NOT_JSON
from distro_traces.places import SUFFIXES

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
    """The rows set aside by the reader: reasons for quarantine with their counts, the most frequent first, and the
    place of the first row; cut recordings; and the counts by the run in whose file or table the rows are."""

    invalid: tuple[InvalidRows, ...]
    cuts: tuple[CutFile, ...]
    of_run: Mapping[str, int]


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

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.headers: Mapping[str, Header] = {each.header.run: each.header for each in sources}

    @cached_property
    @abstractmethod
    def survey(self) -> Survey: ...

    @property
    @abstractmethod
    def aside(self) -> pl.DataFrame:
        """What the reader sets aside (`frames.ASIDE`)."""

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

    def set_aside(self) -> Set:
        """Lines are numbered within a block of a file, so those in the blocks before are added, and the header. A last
        line that is no JSON was cut. The run of a line is that of its file; in a table each row names its own."""
        cuts = [CutFile(each.path, each.cut.line) for each in self.sources if each.cut is not None]
        of_file = {each.path: each.header.run for each in self.sources if each.path.endswith(SUFFIXES)}
        reason = pl.col("reason")
        blocks = self.aside.filter(reason.is_null()).group_by("file", "block").agg(pl.col("rows").sum())
        blocks = blocks.sort("file", "block").with_columns(end=pl.col("rows").cum_sum().over("file") + 1)
        before = {(file, block): end - rows for file, block, rows, end in blocks.iter_rows()}
        last = dict(blocks.group_by("file").agg(pl.col("end").max()).iter_rows())
        found, of_run = dict[str, InvalidRows](), Counter[str]()
        aside = self.aside.filter(reason.is_not_null()).sort("file", "block", "line", "reason")
        for run, file, why, block, line, rows, is_last in aside.select(list(ASIDE)).iter_rows():
            number = None if line is None else before[file, block] + line
            if number is not None and is_last and number == last[file] and why == NOT_JSON:
                cuts.append(CutFile(file, number))
                continue
            first = found.get(why, InvalidRows(why, 0, file, number))
            found[why] = replace(first, rows=first.rows + rows)
            of_run[of_file.get(file, run)] += rows
        invalid = sorted(found.values(), key=lambda each: (-each.rows, each.reason))
        return Set(tuple(invalid), tuple(cuts), of_run)

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
