"""What an engine supplies to a check: the rows of whole clients and of nodes, and what the reader set aside.

There are two: this process (`local`) and Spark (`on_spark`). This file is apart from `check`, so that an engine imports
nothing that judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from distro_spark.cluster import Cluster
from distro_spark.result import CutFile, Misfit
from distro_traces.header import Header
from distro_traces.invalid import InvalidRecording

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
    """The rows set aside by the reader: reasons for quarantine with their counts, and cut recordings."""

    misfits: tuple[Misfit, ...]
    cuts: tuple[CutFile, ...]


class Engine(Protocol):
    """The rows and the computations over all of them. Frames that it gives are small: rows of nodes, and
    violations."""

    headers: Mapping[str, Header]

    def set_aside(self) -> Set: ...

    def measured(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Nodes with their `cluster.MEASURES`, and the rows that are marks, each once."""
        ...

    def invalid(self, cluster: Cluster) -> Mapping[str, InvalidRecording]:
        """By run rows that contradict each other, and clocks that go back."""
        ...

    def of_clients(self, cluster: Cluster, judge: Judge, columns: Columns, part_rows: int, /) -> Iterator[pl.DataFrame]:
        """The results of `judge`, which has these columns, over all rows about clients: some whole clients at a time,
        of about so many rows, sorted (`timeline.SORTED`). They come in parts, each of whole clients."""
        ...

    def of_nodes(self, cluster: Cluster) -> pl.DataFrame:
        """The rows about no client."""
        ...
