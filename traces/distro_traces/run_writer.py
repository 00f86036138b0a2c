"""One run straight to Parquet, from bare rows, with a bounded part of it in memory.

Rows wait as tuples, are turned into Arrow columns batch by batch, and each node's batches go to a hidden file of its
own beside the place of the run. When the run ends they are put together: sorted by node and sequence number, in files
of 64 to 256 MB (one smaller file where there is no more), zstd. `compact` writes recordings with it and the simulator
its runs. The directory of the run appears whole or not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from distro_traces.errors import RunExistsError, UnwritableTraceError
from distro_traces.event import COLUMNS
from distro_traces.header import Header
from distro_traces.ndjson import Cut
from distro_traces.parquet import CUT_KEY, FOLLOWED_KEY, HEADER_KEY, SCHEMA, part_name, run_directory

BATCH_ROWS = 16_384
"""So many rows of one node wait as Python objects, at about 500 bytes each."""

GROUP_ROWS = 8 * BATCH_ROWS
PART_BYTES = 128 * 1024 * 1024
"""A file is closed once it is that large; a last one of less than half is written together with the one before."""


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
    """Takes the rows of one run, those of each node in their order, and writes the files when it is closed."""

    def __init__(self, directory: Path, header: Header, *, part_bytes: int = PART_BYTES) -> None:
        """Raises RunExistsError when the run is there already, UnwritableTraceError when nothing can be written."""
        self.header = replace(header, segment=1)
        self.rows = 0
        self.place = run_directory(directory, header.run)
        if self.place.exists():
            raise RunExistsError(f"{self.place}: the run is there already; write into another directory")
        self._part_bytes = part_bytes
        self._hidden = self.place.with_name(f".{self.place.name}.{os.getpid()}.tmp")
        self._nodes: dict[str, _NodeRows] = {}

    def add(self, node: str, row: Values, seq: int | None = None) -> None:
        """Append a row to those of the node. Without `seq` it is the position among the node's rows."""
        rows = self._nodes.get(node)
        if rows is None:
            rows = self._nodes[node] = _NodeRows(self._hidden / f"{len(self._nodes)}.arrow", self.header.run, node)
        rows.add(row, seq)
        self.rows += 1

    def close(self, cut: Cut | None = None) -> tuple[Path, ...]:
        """Write the files and return their paths. Raises UnwritableTraceError when that cannot be done."""
        try:
            self._hidden.mkdir(parents=True, exist_ok=True)
            parts = self._write(self._hidden / "parts", cut)
            (self._hidden / "parts").rename(self.place)
        except OSError as error:
            raise UnwritableTraceError(self.place, error) from error
        finally:
            self.abandon()
        return tuple(self.place / part.name for part in parts)

    def abandon(self) -> None:
        """Leave nothing behind of what is not written yet."""
        for rows in self._nodes.values():
            rows.close()
        shutil.rmtree(self._hidden, ignore_errors=True)

    def _write(self, parts: Path, cut: Cut | None) -> list[Path]:
        parts.mkdir()
        groups = _grouped(batch for node in sorted(self._nodes) for batch in self._nodes[node].batches())
        written: list[Path] = []
        group = next(groups, None)
        while group is not None or not written:
            path = parts / part_name(len(written))
            with self._part(path, len(written) + 1, cut) as writer:
                while group is not None and path.stat().st_size < self._part_bytes:
                    writer.write_table(group)
                    group = next(groups, None)
                if group is not None:
                    writer.add_key_value_metadata({FOLLOWED_KEY: b"true"})
            written.append(path)
        if len(written) > 1 and written[-1].stat().st_size < self._part_bytes // 2:
            self._join(written, cut)
        return written

    def _join(self, written: list[Path], cut: Cut | None) -> None:
        """The last file and the one before it as one."""
        joined = written[-1].with_name("joined")
        with self._part(joined, len(written) - 1, cut) as writer:
            for path in written[-2:]:
                with pq.ParquetFile(path) as file:
                    for group in _grouped(file.iter_batches(BATCH_ROWS)):
                        writer.write_table(group)
        written.pop().unlink()
        joined.replace(written[-1])

    def _part(self, path: Path, number: int, cut: Cut | None) -> pq.ParquetWriter:
        metadata = {HEADER_KEY: json.dumps(replace(self.header, segment=number).to_json())}
        if cut is not None:
            metadata[CUT_KEY] = json.dumps(cut)
        return pq.ParquetWriter(path, SCHEMA.with_metadata(metadata), compression="zstd")


class _NodeRows:
    """The rows of one node: the last ones as tuples, all before them in a file."""

    def __init__(self, path: Path, run: str, node: str) -> None:
        self._path, self._run, self._node = path, run, node
        self._waiting: list[Values] = []
        self._seqs: list[int] = []
        self._last = 0
        self._in_order = True
        self._file: pa.ipc.RecordBatchStreamWriter | None = None

    def add(self, row: Values, seq: int | None) -> None:
        number = self._last + 1 if seq is None else seq
        if number < self._last:
            self._in_order = False
        self._last = number
        self._seqs.append(number)
        self._waiting.append(row)
        if len(self._waiting) >= BATCH_ROWS:
            self._spill()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows by sequence number. A trace that was edited by hand is sorted in memory."""
        if self._file is None:  # little enough to stay where it is
            stored: Iterator[pa.RecordBatch] = iter((self._pack(),))
        else:
            self._spill()
            self.close()
            stored = _stored(self._path)
        if self._in_order:
            yield from stored
        else:
            yield from pa.Table.from_batches(stored, SCHEMA).sort_by("seq").to_batches(BATCH_ROWS)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._file = pa.ipc.new_stream(str(self._path), SCHEMA, options=options)
        self._file.write_batch(self._pack())

    def _pack(self) -> pa.RecordBatch:
        size = len(self._waiting)
        given = zip(*self._waiting, strict=True) if size else ([] for _ in _GIVEN)
        columns = {
            "run": pa.repeat(self._run, size),
            "node": pa.repeat(self._node, size),
            "seq": pa.array(self._seqs, pa.int64()),
            **{name: pa.array(values, SCHEMA.field(name).type) for name, values in zip(_GIVEN, given, strict=True)},
        }
        self._waiting, self._seqs = [], []
        return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], schema=SCHEMA)


def _grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Row groups of a size that readers work well with."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(waiting, SCHEMA)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting, SCHEMA)


def _stored(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        yield from stream
