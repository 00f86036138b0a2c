"""One run straight to Parquet, for whoever makes events faster than a recording could take them.

A recording is written line by line, because its process may die; a simulated run can simply be made again. So rows come
as bare tuples, are turned into Arrow columns batch by batch, and stand in the file as `compact` would have put them:
sorted by node and sequence number, under the same name. Until the run ends it is held as Arrow columns (some 150 bytes
a row); whoever makes runs without end bounds each of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from distro_traces.event import COLUMNS
from distro_traces.header import Header
from distro_traces.parquet import SCHEMA, place_of, write_rows

BATCH_ROWS = 16_384
"""So many rows of one node wait as Python objects, at about 500 bytes each."""


class Row(NamedTuple):
    """The columns of an `Event` that its place does not give away. `seq` is the position among the node's rows."""

    at_ms: int
    kind: str
    peer: str | None = None
    message: str | None = None
    operation: str | None = None
    client: str | None = None
    owned: bool | None = None
    revision: int | None = None
    digest: str | None = None
    outcome: str | None = None
    detail: str | None = None


_Text = str | None
Values = tuple[int, str, _Text, _Text, _Text, _Text, bool | None, int | None, _Text, _Text, _Text]
"""A `Row` without its names: where rows are made by the million, a bare tuple costs least."""

_GIVEN = Row._fields


class RunWriter:
    """Takes the rows of one run, those of each node in their order, and writes the file when it is closed."""

    def __init__(self, directory: Path, header: Header) -> None:
        """Raises RunExistsError when the run is there already."""
        self.header = header
        self.rows = 0
        self._place = place_of(directory, header.run)
        self._waiting: dict[str, list[Values]] = {node: [] for node in header.nodes}
        self._batches: dict[str, list[pa.RecordBatch]] = {node: [] for node in header.nodes}
        self._seq = dict.fromkeys(header.nodes, 0)

    def add(self, node: str, row: Values) -> None:
        """Append a row to those of the node."""
        waiting = self._waiting[node]
        waiting.append(row)
        self.rows += 1
        if len(waiting) >= BATCH_ROWS:
            self._pack(node)

    def close(self) -> Path:
        """Write the file and return its path. Raises UnreadableTraceError when that cannot be done."""
        for node in self._waiting:
            self._pack(node)
        batches = [batch for node in sorted(self._batches) for batch in self._batches[node]]
        return write_rows(self._place, self.header, pa.Table.from_batches(batches, SCHEMA))

    def _pack(self, node: str) -> None:
        waiting = self._waiting[node]
        if not waiting:
            return
        first, size = self._seq[node] + 1, len(waiting)
        columns = {
            "run": pa.repeat(self.header.run, size),
            "node": pa.repeat(node, size),
            "seq": pa.array(range(first, first + size), pa.int64()),
            **{
                name: pa.array(values, SCHEMA.field(name).type)
                for name, values in zip(_GIVEN, zip(*waiting, strict=True), strict=True)
            },
        }
        self._batches[node].append(pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], schema=SCHEMA))
        self._seq[node] += size
        waiting.clear()
