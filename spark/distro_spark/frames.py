"""Rows of recordings as frames: every line an event, or set aside with the reason; for both engines.

Arrow parses NDJSON, and refuses values of other types than the schema's. Lines that it does not parse, or with one that
is no event, are read one by one by `distro_traces.ndjson`, which also gives the reasons. So a damaged file costs more
than a whole one, but all readers set aside the same rows.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.json as pj

from distro_spark.result import CutFile, InvalidRows
from distro_traces import ndjson, parquet
from distro_traces.compact import require_whole
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
    TOO_LONG,
    Cut,
    parse_event,
)
from distro_traces.places import SUFFIXES, traces_at

EVENT_TYPES: Mapping[str, pl.DataType] = {
    name: pl.Int64() if name in INTEGER_COLUMNS else pl.Boolean() if name in BOOLEAN_COLUMNS else pl.String()
    for name in COLUMNS
}
_ARROW = pa.schema([pa.field(field.name, field.type) for field in parquet.SCHEMA])
_BLOCK_BYTES = 4 * LINE_BYTES_MAX
_PIECE_BYTES = 4 * _BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Source:
    """One file with rows of one run; a large run lies in several, its segments. `path`: as `files` names it; that of a
    table is in all of its runs."""

    path: str
    header: Header
    cut: Cut | None = None  # of a recording that was compacted; NDJSON shows its cut when the rows are read
    is_followed: bool = False  # a file at rest: by a further one of the run

    @property
    def is_ndjson(self) -> bool:
        return self.path.endswith(ndjson.SUFFIX)


class SameRunTwiceError(TraceError):
    """Two files contain one run: their rows would be read as one history."""


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
    segments: defaultdict[str, list[Source]] = defaultdict(list)
    for (run, _), source in sorted(by_run.items(), key=itemgetter(0)):
        if source.path.endswith(SUFFIXES):  # a table may have the header of one segment alone
            segments[run].append(source)
    for run, found in segments.items():
        numbers = [(source.header.segment, source.path) for source in found]
        require_whole(run, numbers, is_followed=found[-1].is_followed)
    return tuple(by_run.values())


def read(sources: Sequence[Source]) -> tuple[pl.DataFrame, list[InvalidRows], list[CutFile]]:
    """All events, the rows that are none, each by itself, and the cuts. Raises the TraceError family."""
    parts, invalid, cuts = [pl.DataFrame(schema=EVENT_TYPES)], list[InvalidRows](), list[CutFile]()
    for source in sources:
        path, runs, cut = source.path, [source.header.run], source.cut and source.cut.line
        if source.is_ndjson:
            aside, lines = dict[int, str](), 1
            for text in _pieces(Path(path)):
                events, reasons = events_in(text, runs)
                parts.append(events)
                aside |= {lines + 1 + place: reason for place, reason in reasons.items()}
                lines += _lines(text)
            cut = lines if aside.get(lines) == NOT_JSON else None
            invalid += [InvalidRows(reason, 1, path, line) for line, reason in aside.items() if line != cut]
        else:
            rows = parquet_rows(Path(path), path)
            parts.append(rows.filter(fits(runs)))
            others = rows.filter(~fits(runs)).iter_rows(named=True)
            invalid += [InvalidRows(reason_of(row, runs), 1, path, None) for row in others]
        cuts += [] if cut is None else [CutFile(path, cut)]
    return pl.concat(parts, rechunk=True), invalid, cuts


def _pieces(path: Path) -> Iterator[bytes]:
    """The lines after the first one, some at a time. A last line that no line feed ends is a piece of its own."""
    try:
        with path.open("rb") as file:
            file.readline()
            while text := file.read(_PIECE_BYTES):
                text += file.readline()
                end = text.rfind(b"\n") + 1
                yield from filter(None, (text[:end], text[end:]))
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error


def _lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n"))


def events_in(text: bytes, runs: Collection[str]) -> tuple[pl.DataFrame, dict[int, str]]:
    """The events of these lines, and by place of each line that is none the reason. Blank lines are skipped."""
    whole = _parsed(text, runs)
    if whole is not None:
        return whole, {}
    events, reasons = list[Event](), dict[int, str]()
    for place, line in enumerate(text.split(b"\n")):
        try:
            if len(line) > LINE_BYTES_MAX:
                raise ValueError(TOO_LONG)
            if line.strip():
                events.append(parse_event(line, runs))
        except ValueError as reason:
            reasons[place] = str(reason)
    return frame_of(events), reasons


def _parsed(text: bytes, runs: Collection[str]) -> pl.DataFrame | None:
    """None: not every line is an event."""
    if not text:
        return pl.DataFrame(schema=EVENT_TYPES)
    count = _lines(text)
    if text.startswith(b"{") + text.count(b"\n{") != count:  # Arrow 26 ends this process at a line `null`
        return None
    if not text.isascii() or max(map(len, text.split(b"\n"))) > LINE_BYTES_MAX:
        return None
    options = pj.ParseOptions(explicit_schema=_ARROW, unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(pa.py_buffer(text), pj.ReadOptions(block_size=_BLOCK_BYTES), options)
    except pa.ArrowException:
        return None
    events = pl.DataFrame(pl.from_arrow(table.select(COLUMNS)))
    return events if events.height == count and events.select(fits(runs).all()).item() else None


_PRESENT = " AND ".join(f"{name} IS NOT NULL" for name in REQUIRED_COLUMNS)
FITS = f"""{_PRESENT} AND seq >= 1 AND kind IN ('{"', '".join(sorted(KINDS))}')
    AND (outcome IS NULL OR outcome IN ('{"', '".join(sorted(OUTCOMES))}'))
    AND (operation IS NULL OR operation IN ('{"', '".join(sorted(CALLED))}'))
    AND (digest IS NULL OR length(digest) NOT IN {DIGEST_CHARS} OR digest = lower(digest))"""
"""The condition of a row that is an event, in SQL, for both engines."""


def fits(runs: Collection[str]) -> pl.Expr:
    """Whether a row of these types is an event of one of the runs."""
    return (pl.sql_expr(FITS) & pl.col("run").is_in(list(runs))).fill_null(value=False)


def reason_of(row: dict[str, Any], runs: Collection[str]) -> str:
    """Why a row, by column, is no event of these runs."""
    try:
        ndjson.event_in(row, runs)
    except ValueError as reason:
        return str(reason)
    raise AssertionError(f"it is one: {row}")


def frame_of(events: Sequence[Event]) -> pl.DataFrame:
    return pl.DataFrame({name: [_value(event, name) for event in events] for name in COLUMNS}, EVENT_TYPES)


def _value(event: Event, name: str) -> object:
    value = getattr(event, name)
    # JSON allows a lone surrogate, but other systems do not accept it as text.
    return str(value).encode("utf-8", "replace").decode() if isinstance(value, str) else value


def parquet_rows(file: Path | BinaryIO, name: Path | str) -> pl.DataFrame:
    """Raises DamagedTraceError."""
    try:
        return pl.read_parquet(file, columns=list(COLUMNS), hive_partitioning=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DamagedTraceError(name, error) from error
