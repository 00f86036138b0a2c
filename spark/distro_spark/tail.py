"""Recordings that are still being written, as a streaming source of Spark: lines, each once, as far as they are whole.

Spark's own source reads a file when it appears and never again; a recording appears with its header and grows. Here an
offset is, for each file, the end of its last whole line, so Spark's log of offsets says exactly which bytes a batch
has, also after a crash. The recorder closes a segment before it begins the next one; since the files are listed before
their sizes are asked for, a batch that has lines of a segment has all of those before it. Files must be on a disk that
every executor has: elsewhere nothing can grow.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from distro_traces.errors import NotATraceError
from distro_traces.ndjson import LINE_BYTES_MAX, SUFFIX

PIECE_BYTES = 64 * 1024 * 1024
"""So much of a file is read by one task."""

_STEP_BYTES = 1 << 16
_BATCH_BYTES = 8 * 1024 * 1024
_SCHEMA = pa.schema([("text", pa.string()), ("bytes", pa.int64()), ("file", pa.string()), ("position", pa.int64())])


class Recordings(DataSource):
    """Option `path`: a directory. Columns: the text of a line, its bytes with the line feed, file, and where it begins.

    Of a line that is too long for any event the text is only the beginning. Headers are left out.
    """

    @classmethod
    def name(cls) -> str:
        return "distrocheck-recordings"

    def schema(self) -> str:
        return "text string, bytes long, file string, position long"

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's name
        return Tail(Path(self.options["path"]))


@dataclass(frozen=True)
class Piece(InputPartition):
    """The lines of a file that begin at `begin` or later and before `end`."""

    file: str
    begin: int
    end: int


class Tail(DataSourceStreamReader):
    """What is new in the recordings below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._ends: dict[str, int] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name, like the next one
        return {}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802 - as before 4.2, without a limit
        for name in [str(path) for path in recordings_below(self._directory)]:
            self._ends[name] = whole_until(name, self._ends.get(name, 0))
        return self._ends

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Piece]:
        return [
            Piece(name, begin, min(begin + PIECE_BYTES, until))
            for name, until in end.items()
            for begin in range(start.get(name, 0), until, PIECE_BYTES)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Piece)
        rows: list[tuple[str, int, str, int]] = []
        size = 0
        for position, line, length in _lines(partition):
            rows.append((line.decode("utf-8", "replace"), length, partition.file, position))
            size += len(line)
            if size >= _BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
        yield _batch(rows)


def recordings_below(directory: Path) -> list[Path]:
    """Hidden files, and those in hidden folders, are none."""
    found = sorted(directory.rglob(f"*{SUFFIX}"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(directory).parts)]


def whole_until(name: str, known: int) -> int:
    """Where the last whole line of the file ends; `known`: where one ended before."""
    with open(name, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > known:
            begin = max(known, end - _STEP_BYTES)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
    return known


def _lines(piece: Piece) -> Iterator[tuple[int, bytes, int]]:
    """Where a line begins, its text, of a very long one the beginning, and all of its bytes."""
    with open(piece.file, "rb") as file:
        position = 0
        if piece.begin:
            position = file.seek(piece.begin - 1)  # what ends in this very byte is no line of ours, and neither is more
        position += _line(file)[1]
        while position < piece.end:
            line, length = _line(file)
            if not length:
                raise NotATraceError(f"{piece.file}: shorter than it was; a recording only grows")
            yield position, line, length
            position += length


def _line(file: BinaryIO) -> tuple[bytes, int]:
    line = end = file.readline(LINE_BYTES_MAX + 1)
    length = len(line)
    while end and not end.endswith(b"\n"):
        end = file.readline(LINE_BYTES_MAX + 1)
        length += len(end)
    return line.removesuffix(b"\n"), length


def _batch(rows: list[tuple[str, int, str, int]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) or [()] * len(_SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )
