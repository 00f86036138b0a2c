"""Recordings of this machine's disk as one frame in memory: every line an event, or set aside with the reason.

Arrow parses NDJSON, and refuses values of other types than the schema's. A file that it does not parse to the last
line, or with a row that is no event, is read line by line by `distro_traces.ndjson`, which also gives the reasons. So a
damaged file costs more than a whole one, but all readers set aside the same rows.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.json as pj

from distro_spark.result import CutFile, InvalidRows
from distro_traces import ndjson, parquet
from distro_traces.compact import segments_missing
from distro_traces.errors import DamagedTraceError, EmptyTraceError, TraceError, UnreadableTraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS, REQUIRED_COLUMNS, Event
from distro_traces.header import Header
from distro_traces.ndjson import (
    CALLED,
    DIGEST_CHARS,
    KINDS,
    LINE_BYTES_MAX,
    NOT_JSON,
    OUTCOMES,
    Cut,
    Rejected,
    parse_event,
)
from distro_traces.places import SUFFIXES, traces_at

EVENT_TYPES: Mapping[str, pl.DataType] = {
    name: pl.Int64() if name in INTEGER_COLUMNS else pl.Boolean() if name in BOOLEAN_COLUMNS else pl.String()
    for name in COLUMNS
}
_ARROW = pa.schema([pa.field(field.name, field.type) for field in parquet.SCHEMA])
_BLOCK_BYTES = 4 * LINE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Source:
    """One file with rows of one run; a large run lies in several, its segments. `path`: as `files` names it; that of a
    table is in all of its runs."""

    path: str
    header: Header
    cut: Cut | None = None  # of a recording that was compacted; NDJSON shows its cut when the rows are read

    @property
    def is_ndjson(self) -> bool:
        return self.path.endswith(ndjson.SUFFIX)


class SameRunTwiceError(TraceError):
    """Two files contain one run: their rows would be read as one history."""


@dataclass(frozen=True)
class Recorded:
    """`events` has the columns of `Event`; `aside`: by run the number of the rows in `set_aside`."""

    headers: Mapping[str, Header]
    events: pl.DataFrame
    set_aside: Sequence[InvalidRows]
    aside: Mapping[str, int]
    cuts: Sequence[CutFile]


@dataclass
class _File:
    """The content of one file."""

    events: pl.DataFrame
    set_aside: list[InvalidRows]
    cut: CutFile | None = None


def files_at(paths: Iterable[Path | str]) -> list[Path]:
    """The files of traces at these paths. Raises the TraceError family."""
    places = dict.fromkeys(Path(os.path.abspath(path)) for path in paths)
    return list(dict.fromkeys(file for place in places for file in traces_at(place)))


def headed(name: Path | str, file: BinaryIO | None = None) -> Source:
    """`file`: its beginning, where the name is not of a local file. Raises the TraceError family."""
    if str(name).endswith(ndjson.SUFFIX):
        return Source(str(name), ndjson.read_header(name, file))
    return Source(str(name), *parquet.read_footer(name, file))


def distinct(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The sources, which have each segment of a run once. Raises SameRunTwiceError, NotATraceError."""
    by_run: dict[tuple[str, int], Source] = {}
    for source in sources:
        run = source.header.run
        other = by_run.setdefault((run, source.header.segment), source)
        if other is not source:
            raise SameRunTwiceError(f"run {run} is in two files, {other.path} and {source.path}; check one of them")
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for (run, number), source in sorted(by_run.items(), key=itemgetter(0)):
        if source.path.endswith(SUFFIXES):  # a table may have the header of one segment alone
            numbers[run].append(number)
    for run, found in numbers.items():
        if found != list(range(1, len(found) + 1)):
            raise segments_missing(run, found, [by_run[run, number].path for number in found])
    return tuple(by_run.values())


def read(sources: Sequence[Source]) -> Recorded:
    """Raises the TraceError family."""
    parts = [_ndjson(Path(each.path), each.header) if each.is_ndjson else _parquet(each) for each in sources]
    aside = Counter[str]()
    for source, part in zip(sources, parts, strict=True):
        aside[source.header.run] += len(part.set_aside)
    return Recorded(
        {each.header.run: each.header for each in sources},
        pl.concat([part.events for part in parts], rechunk=True) if parts else pl.DataFrame(schema=EVENT_TYPES),
        [each for part in parts for each in part.set_aside],
        aside,
        [part.cut for part in parts if part.cut is not None],
    )


def _ndjson(path: Path, header: Header) -> _File:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error
    lengths = [len(line) for line in data.split(b"\n")]
    whole = _parsed(data, lengths, header.run)
    if whole is None:
        return _line_by_line(path)
    file = _File(whole, [])
    tail = data[len(data) - lengths[-1] :]
    if tail.strip():
        _add_last(file, path, len(lengths), tail, header.run)
    return file


def _parsed(data: bytes, lengths: Sequence[int], run: str) -> pl.DataFrame | None:
    """The events of all lines but the first and the last, which no line feed ends; None: not every line is one."""
    if len(lengths) < 2 or not data.isascii() or max(lengths) > LINE_BYTES_MAX:
        return None
    begin, end = lengths[0] + 1, len(data) - lengths[-1]
    if begin == end:
        return pl.DataFrame(schema=EVENT_TYPES)
    if data.count(b"\n{", begin - 1, end) != len(lengths) - 2:  # Arrow 26 ends this process at a line `null`
        return None
    options = pj.ParseOptions(explicit_schema=_ARROW, unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(
            pa.py_buffer(memoryview(data)[begin:end]), pj.ReadOptions(block_size=_BLOCK_BYTES), options
        )
    except pa.ArrowException:
        return None
    events = pl.DataFrame(pl.from_arrow(table.select(COLUMNS)))
    is_whole = events.height == len(lengths) - 2 and events.select(fits([run]).all()).item()
    return events if is_whole else None


def fits(runs: Iterable[str]) -> pl.Expr:
    """Whether a row of these types is an event of one of the runs."""
    present = pl.all_horizontal(pl.col(name).is_not_null() for name in REQUIRED_COLUMNS)
    outcome, operation, carried = pl.col("outcome"), pl.col("operation"), pl.col("digest")
    others = pl.all_horizontal(
        outcome.is_null() | outcome.is_in(list(OUTCOMES)),
        operation.is_null() | operation.is_in(list(CALLED)),
        carried.is_null() | ~carried.str.len_chars().is_in(DIGEST_CHARS) | (carried == carried.str.to_lowercase()),
    )
    values = pl.col("kind").is_in(list(KINDS)) & (pl.col("seq") >= 1) & pl.col("run").is_in(list(runs))
    return (present & others & values).fill_null(value=False)


def _add_last(file: _File, path: Path, number: int, line: bytes, run: str) -> None:
    """A last line without an end: an event all the same, or what the recorder was writing when it died."""
    try:
        file.events = pl.concat([file.events, frame_of([parse_event(line, run)])])
    except ValueError as reason:
        if str(reason) == NOT_JSON:
            file.cut = CutFile(str(path), number)
        else:
            file.set_aside.append(InvalidRows(str(reason), 1, str(path), number))


def _line_by_line(path: Path) -> _File:
    events: list[Event] = []
    file = _File(pl.DataFrame(schema=EVENT_TYPES), [])
    for row in ndjson.stream_ndjson(path):
        match row:
            case Event():
                events.append(row)
            case Rejected(line, reason, _):
                file.set_aside.append(InvalidRows(reason, 1, str(path), line))
            case Cut(line, _):
                file.cut = CutFile(str(path), line)
    file.events = frame_of(events)
    return file


def frame_of(events: Sequence[Event]) -> pl.DataFrame:
    return pl.DataFrame({name: [_value(event, name) for event in events] for name in COLUMNS}, EVENT_TYPES)


def _value(event: Event, name: str) -> object:
    value = getattr(event, name)
    # JSON allows a lone surrogate, but other systems do not accept it as text.
    return str(value).encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _parquet(source: Source) -> _File:
    path, run, cut = Path(source.path), source.header.run, source.cut
    rows = parquet_rows(path, path)
    good = rows.select(fits([run])).to_series()
    file = _File(rows, [], None if cut is None else CutFile(str(path), cut.line))
    if not good.all():
        file.events = rows.filter(good)
        file.set_aside = list(_invalid_rows(rows.filter(~good), path, run))
    return file


def parquet_rows(file: Path | BinaryIO, name: Path | str) -> pl.DataFrame:
    """Raises DamagedTraceError."""
    try:
        return pl.read_parquet(file, columns=list(COLUMNS), hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DamagedTraceError(name, error) from error


def _invalid_rows(rows: pl.DataFrame, path: Path, run: str) -> Iterator[InvalidRows]:
    for row in rows.iter_rows(named=True):
        try:
            ndjson.event_in(row, run)
        except ValueError as reason:
            yield InvalidRows(str(reason), 1, str(path), None)
