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
ASIDE = {
    **dict.fromkeys(("run", "file", "reason"), pl.String()),
    **dict.fromkeys(("block", "line", "rows"), pl.Int64()),
    "is_last": pl.Boolean(),
}
"""So many `rows` that are no events, for one reason. `run`: null for lines, which are of the run of their file; `line`:
the first one's number in a block of the file, null in Parquet; `is_last`: it is the last one of those that were read at
once. Without a reason: so many lines of a block. The first line of a file, its header, has no number."""

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


def read(sources: Iterable[Source]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All events, and what is set aside (`ASIDE`). Raises the TraceError family."""
    found = [(pl.DataFrame(schema=EVENT_TYPES), pl.DataFrame(schema=ASIDE))]
    for source in sources:
        path, runs, count = source.path, [source.header.run], 0
        if source.is_ndjson:
            for text in _pieces(Path(path)):
                found.append(lines_in(text, runs, path, 0, count))
                count += _lines(text)
        else:
            found.append(events_among(parquet_rows(Path(path), path).with_columns(file=pl.lit(path)), runs))
    events, aside = zip(*found, strict=True)
    return pl.concat(events, rechunk=True), pl.concat(aside)


def lines_in(
    text: bytes, runs: Collection[str], file: str, block: int, before: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The events of these lines of a block, and the others with the number of all (`ASIDE`)."""
    events, reasons = events_in(text, runs)
    piece, count = {"file": file, "block": block}, _lines(text)
    each = [
        {**piece, "reason": reason, "line": before + place + 1, "is_last": place + 1 == count}
        for place, reason in reasons.items()
    ]
    return events, pl.concat([_counted(each), pl.DataFrame([{**piece, "rows": count}], ASIDE)])


def events_among(rows: pl.DataFrame, runs: Collection[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of the rows, with their `file`, the events of these runs, and the others (`ASIDE`)."""
    is_event = rows.select(fits(runs)).to_series()
    others = rows.filter(~is_event).iter_rows(named=True)
    reasons = ({"run": row["run"], "file": row["file"], "reason": reason_of(row, runs)} for row in others)
    return rows.filter(is_event).select(COLUMNS), _counted(reasons)


def _counted(aside: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    rows = list(aside)
    if not rows:  # nearly always; to count none costs as much as to read a small file
        return pl.DataFrame(schema=ASIDE)
    by = pl.DataFrame(rows, ASIDE).group_by("run", "file", "block", "reason", "is_last", maintain_order=True)
    return by.agg(pl.col("line").min(), rows=pl.len().cast(pl.Int64)).select(list(ASIDE))


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
    return text.count(b"\n") + (text[-1:] not in (b"", b"\n"))


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
