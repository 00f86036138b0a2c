"""A trace at rest: Parquet files of one run, sorted by node and sequence number, below `run=<run>`.

`<directory>/run=<run>/part-0.parquet` and, of a large run, further parts. The columns derive from `Event`; `run` is a
column too, so that a file moved elsewhere still says what it is. The header, and the cut of a recording that ended in
mid-line, are kept in each file's metadata; a file that another one follows says so, and the last one does not, so that
a reader misses a last file that is lost. `compact` and `run_writer` write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from distro_traces.errors import DamagedTraceError, EmptyTraceError, NotATraceError, UnreadableTraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS, REQUIRED_COLUMNS, Event, Kind, Outcome
from distro_traces.header import Header, parse_header
from distro_traces.ndjson import Cut, Rejected, TraceFile, event_in

SUFFIX = ".parquet"
VIOLATIONS = "violations"
"""The folder beside recordings in which a check keeps what it found: no recording, though it is Parquet."""
HEADER_KEY = b"distrocheck.header"
CUT_KEY = b"distrocheck.cut"
FOLLOWED_KEY = b"distrocheck.followed"


class Footer(NamedTuple):
    """The metadata of a file. `is_followed`: the run has a further one; older files do not say that."""

    header: Header
    cut: Cut | None
    is_followed: bool


def _column_type(name: str) -> pa.DataType:
    if name in INTEGER_COLUMNS:
        return pa.int64()
    return pa.bool_() if name in BOOLEAN_COLUMNS else pa.string()


SCHEMA = pa.schema([pa.field(name, _column_type(name), nullable=name not in REQUIRED_COLUMNS) for name in COLUMNS])


def run_directory(directory: Path, run: str) -> Path:
    """Where a run lies below a directory of runs."""
    return directory / f"run={quote(run, safe=' ')}"


def part_name(number: int) -> str:
    """The name of a file of a run, from 0."""
    return f"part-{number}{SUFFIX}"


def parts_of(run: Path) -> tuple[Path, ...]:
    """The files of the directory of a run, in their order. A file stands for itself."""
    if not run.is_dir():
        return (run,)
    return tuple(sorted(run.glob(f"*{SUFFIX}"), key=lambda path: read_footer(path)[0].segment))


def read_parquet(path: Path | str) -> TraceFile:
    """Read one run, its directory or its only file, into memory, as `read_ndjson` would have read its recording.

    Raises the TraceError family.
    """
    parts = parts_of(Path(path))
    if not parts:
        raise EmptyTraceError(f"{path}: no *{SUFFIX} in it; name the directory of a run, or one of its files")
    header, cut, _ = read_footer(parts[0])
    rows = [row for part in parts for row in stream_parquet(part)]
    events = tuple(row for row in rows if isinstance(row, Event))
    return TraceFile(header, events, cut, tuple(row for row in rows if isinstance(row, Rejected)))


def stream_parquet(path: Path) -> Iterator[Event | Rejected]:
    """The rows of one file in their order, a batch of them in memory. Raises DamagedTraceError."""
    run = read_footer(path)[0].run
    try:
        # ParquetFile and not read_table, which would take `run=…` in the path for a second column of that name.
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=list(COLUMNS)):  # version 1 has one column more
                for row in batch.to_pylist():
                    try:
                        yield event_in(row, [run])
                    except ValueError as reason:
                        yield Rejected(0, str(reason), json.dumps(row))
    except (pa.ArrowException, OSError) as error:
        raise DamagedTraceError(path, error) from error


def read_footer(path: Path | str, file: BinaryIO | None = None) -> Footer:
    """Read the metadata without the rows, and compare the columns with the schema.

    `file`: its bytes, where `path` is not a local file.
    Raises NotATraceError for a file of another kind or with columns of other types, NewerTraceError, EmptyTraceError.
    """
    try:
        with pq.ParquetFile(file or path) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata.metadata or {}
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except pa.ArrowInvalid as error:
        raise NotATraceError(f"{path}: not a whole Parquet file; compact the recording again") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error
    if HEADER_KEY not in metadata:
        columns = ", ".join(schema.names[:5]) + (", …" if len(schema.names) > 5 else "")
        raise NotATraceError(
            f"{path}: not a distrocheck trace, this Parquet file has no header in its metadata (its columns: "
            f"{columns}); name a trace of distrocheck or a directory of them"
        )
    header = parse_header(metadata[HEADER_KEY], path)
    for expected in SCHEMA:
        index = schema.get_field_index(expected.name)
        found = schema.field(index).type if index >= 0 else "missing"
        if found != expected.type:
            raise NotATraceError(
                f"{path}: column {expected.name} is {found} instead of {expected.type}; compact the recording again"
            )
    cut = metadata.get(CUT_KEY)
    return Footer(header, Cut(*json.loads(cut)) if cut else None, FOLLOWED_KEY in metadata)


def event_of(row: dict[str, Any]) -> Event:
    """A row of `SCHEMA`, as pyarrow gives it, that fits."""
    values = {name: value for name, value in row.items() if value is not None}
    values["kind"] = Kind(values["kind"])
    if "outcome" in values:
        values["outcome"] = Outcome(values["outcome"])
    return Event(**values)
