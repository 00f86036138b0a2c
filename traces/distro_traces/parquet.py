"""A trace at rest: one Parquet file per run, sorted by node and sequence number.

`compact` turns recordings into `<directory>/run=<run>/part-0.parquet`. The columns derive from `Event`; `run` is a
column too, so that a file moved elsewhere still says what it is. The header, and the cut of a recording that ended in
mid-line, are kept in the file's metadata. A file appears whole or not at all: it is written beside its place under a
hidden name, which readers skip, and then renamed. A run must fit in memory to be compacted.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from distro_traces.errors import EmptyTraceError, MisfitError, NotATraceError, RunExistsError, UnreadableTraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS, REQUIRED_COLUMNS, Event, Kind, Outcome
from distro_traces.header import Header, parse_header
from distro_traces.ndjson import Cut, TraceFile, read_ndjson

SUFFIX = ".parquet"
_HEADER_KEY = b"distrocheck.header"
_CUT_KEY = b"distrocheck.cut"


def _column_type(name: str) -> pa.DataType:
    if name in INTEGER_COLUMNS:
        return pa.int64()
    return pa.bool_() if name in BOOLEAN_COLUMNS else pa.string()


SCHEMA = pa.schema([pa.field(name, _column_type(name), nullable=name not in REQUIRED_COLUMNS) for name in COLUMNS])


def compact(recordings: Iterable[Path | str], directory: Path | str) -> tuple[Path, ...]:
    """Write each NDJSON recording as Parquet below `directory` and return the files made; the recordings stay.

    Raises MisfitError when a recording has lines that do not fit: at rest there is no place for them, and they must
    not get lost. Raises RunExistsError when the run is there already, and the TraceError family of `read_ndjson`.
    """
    return tuple(_write(read_whole(path), Path(directory)) for path in recordings)


def read_whole(path: Path | str) -> TraceFile:
    """`read_ndjson`, but a line that does not fit is an error (a cut last line is none)."""
    trace = read_ndjson(path)
    if trace.rejected:
        first = trace.rejected[0]
        raise MisfitError(
            f"{path}: lines that do not fit: {len(trace.rejected)} (the first: line {first.line}, {first.reason}); "
            "`distrocheck check` lists them, remove them before compacting"
        )
    return trace


def read_parquet(path: Path | str) -> TraceFile:
    """Read one run back into memory, as `read_ndjson` would have read its recording. Raises the TraceError family."""
    header, cut = read_footer(path)
    # ParquetFile and not read_table, which would take `run=…` in the path for a second column of that name.
    with pq.ParquetFile(path) as file:
        rows = file.read(columns=list(COLUMNS)).to_pylist()  # version 1 has one more
    return TraceFile(header, tuple(_event(row) for row in rows), cut, ())


def read_footer(path: Path | str) -> tuple[Header, Cut | None]:
    """Read the header and the cut without the rows, and compare the columns with the schema.

    Raises NotATraceError for a file of another kind or with columns of other types, NewerTraceError, EmptyTraceError.
    """
    try:
        schema = pq.read_schema(path)
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except pa.ArrowInvalid as error:
        raise NotATraceError(f"{path}: not a whole Parquet file; compact the recording again") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error
    metadata = schema.metadata or {}
    header = parse_header(metadata.get(_HEADER_KEY, b""), path)
    for expected in SCHEMA:
        index = schema.get_field_index(expected.name)
        found = schema.field(index).type if index >= 0 else "missing"
        if found != expected.type:
            raise NotATraceError(
                f"{path}: column {expected.name} is {found} instead of {expected.type}; compact the recording again"
            )
    cut = metadata.get(_CUT_KEY)
    return header, Cut(*json.loads(cut)) if cut else None


def place_of(directory: Path, run: str) -> Path:
    """Where a run lies below a directory of runs. Raises RunExistsError when it is there already."""
    place = directory / f"run={quote(run, safe=' ')}" / f"part-0{SUFFIX}"
    if place.exists():
        raise RunExistsError(f"{place}: the run is there already; write into another directory")
    return place


def write_rows(place: Path, header: Header, rows: pa.Table, cut: Cut | None = None) -> Path:
    """Write the sorted rows of a run: whole, or not at all. Returns `place`. Raises UnreadableTraceError."""
    metadata = {_HEADER_KEY: json.dumps(header.to_json())}
    if cut is not None:
        metadata[_CUT_KEY] = json.dumps(cut)
    unfinished = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.replace_schema_metadata(metadata), unfinished, compression="zstd")
        unfinished.replace(place)
    except OSError as error:
        raise UnreadableTraceError(place, error) from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if not place.exists() and place.parent.is_dir():
            place.parent.rmdir()
    return place


def _write(trace: TraceFile, directory: Path) -> Path:
    place = place_of(directory, trace.header.run)
    rows = [event.to_json() for event in sorted(trace.events, key=lambda event: (event.node, event.seq))]
    return write_rows(place, trace.header, pa.Table.from_pylist(rows, schema=SCHEMA), trace.cut)


def _event(row: dict[str, Any]) -> Event:
    values = {name: value for name, value in row.items() if value is not None}
    values["kind"] = Kind(values["kind"])
    if "outcome" in values:
        values["outcome"] = Outcome(values["outcome"])
    return Event(**values)
