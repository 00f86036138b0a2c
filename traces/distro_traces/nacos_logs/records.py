"""The time-stamped records of log files, each with its file and line, in the order of their stamps.

A record begins with a line that has a date and a time near its beginning (`lines`). It includes the lines up to the
next such line, for example a stack trace. A file may have the lines of several log files (the output of grep over
rotated files, the stream of a log shipper). The lines of one of them are a *part*, which is read like a file. If the
time goes back within a part, it was joined from several files; the pieces between are *stretches*. They are sorted by
time. If they overlap the order is unknown, and the file is refused.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from distro_traces.errors import TraceError
from distro_traces.nacos_logs.blocks import LINE_BYTES_MAX, TOO_LONG, Block, OnRead, blocks
from distro_traces.nacos_logs.files import NACOS_LOGS
from distro_traces.nacos_logs.lines import ONE_DOCUMENT, SOURCE_NAMES, Line, LineReader, OneDocumentError

NO_STAMP = "no date and time, and nothing before it that it could continue"
TWICE = "the same record in two files"
CONTINUED = "continues the record before it"
LEVEL_WITHIN = 144
"""The level of a line is within this number of characters."""

_SOURCE_NAME = re.compile(b"|".join(f'"{name}"'.encode() for name in sorted(SOURCE_NAMES)))
_SOURCE = re.compile(rb"(?:" + _SOURCE_NAME.pattern + rb')\s*:\s*(?:"[^"]*"|.)')
_FEW = 4
"""Up to this number, lines are read one by one."""
_MORE_MAX = 4
"""The number of continuation lines that are kept: the exception and where it was thrown, not the whole stack trace."""
_DATE = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_DATES = 20
"""A long line with more dates than this contains many records."""
_LOOKS_MAX = 100
"""If none of this number of lines has a stamp, the block is read line by line."""
_LEVELS = (b"INFO", b"DEBUG", b"TRACE")
_STAMP = 24
_PLAIN = b"0000-00-00 00:00:00,000 "
_DIGITS = bytes.maketrans(b"123456789.T", b"000000000, ")
_GOES_BACK_MS = 5000
"""The stamps of one file may go back by this time, since clocks are set and threads wait for each other."""

_STRETCHES_MAX = 1000


class DisorderError(TraceError):
    """The lines of a file are in an order that cannot be the order in which they were written."""


class Record(NamedTuple):
    """One log record. `text` is the line with its stamp, `more` the first lines that continue it."""

    at_ms: int  # since 1970, UTC
    text: str
    more: str
    log: str
    path: Path
    first_line: int
    is_cut: bool = False  # the last line of a file, without an end of line

    @property
    def place(self) -> str:
        return f"{self.path.name}:{self.first_line}"

    @property
    def amount(self) -> int:
        return 1


class Quiet(NamedTuple):
    """`amount` consecutive records of a file that report no fact about replication. They were not read one by one."""

    first_ms: int
    last_ms: int
    first_line: int
    last_line: int
    amount: int
    pause_ms: int  # a usual pause between two of them
    log: str
    lines: list[bytes]
    levels: tuple[bytes, ...]  # those of the words `_LEVELS` that occur in their block
    reader: LineReader

    @property
    def at_ms(self) -> int:
        return self.first_ms

    def last_before(self, at_ms: int) -> int:
        """The stamp of the last record before a time, which is after the first record."""
        if self.last_ms < at_ms:
            return self.last_ms
        found = (self._ms(line) for line in reversed(self.lines))
        return next((ms for ms in found if ms is not None and ms < at_ms), self.first_ms)

    def at_level(self, words: tuple[bytes, ...]) -> tuple[int, int] | None:
        """The time span of the records that have one of these words as their level."""
        there = tuple(word for word in words if word in self.levels)
        if not there:
            return None
        bounds = [
            next((ms for line in lines if _has_word(line, there) and (ms := self._ms(line)) is not None), None)
            for lines in (self.lines, reversed(self.lines))
        ]
        return None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])

    def _ms(self, line: bytes) -> int | None:
        ms = self.reader.plain_ms(line.rstrip())
        return self.reader.read(line).at_ms if ms is None else ms


def _has_word(line: bytes, words: tuple[bytes, ...]) -> bool:
    head = line[:LEVEL_WITHIN]
    return any(word in head for word in words)


class Stretch(NamedTuple):
    """Lines of a part within which the time does not go back."""

    first_line: int
    last_line: int
    first_ms: int
    last_ms: int


@dataclass(slots=True)
class Part:
    """The lines of one file that come from the same source: all lines, or those that begin with the same name."""

    path: Path
    source: str
    log: str
    stretches: list[Stretch] = field(default_factory=list)
    amount: int = 0  # of records
    is_silent: bool = True  # none of them reports a fact
    longest_pause_ms: int = 0  # between records that were read one by one

    @property
    def first_ms(self) -> int:
        return min(stretch.first_ms for stretch in self.stretches)

    @property
    def last_ms(self) -> int:
        return max(stretch.last_ms for stretch in self.stretches)

    def extend(self, record: Record | Quiet) -> None:
        """Add a record. Raises DisorderError if there are too many stretches for rotated files."""
        first_line, last_line, last_ms = record.first_line, record.first_line, record.at_ms
        if isinstance(record, Quiet):
            last_line, last_ms = record.last_line, record.last_ms
            self.longest_pause_ms = max(self.longest_pause_ms, record.pause_ms)
        self.amount += record.amount
        last = self.stretches[-1] if self.stretches else None
        if last is not None and record.at_ms >= last.last_ms - _GOES_BACK_MS:
            self.longest_pause_ms = max(self.longest_pause_ms, record.at_ms - last.last_ms)
            self.stretches[-1] = last._replace(last_line=last_line, last_ms=max(last.last_ms, last_ms))
            return
        if last is not None and len(self.stretches) >= _STRETCHES_MAX:
            raise self._disorder(last, first_line, record.at_ms)
        self.stretches.append(Stretch(first_line, last_line, record.at_ms, last_ms))

    def ordered(self) -> list[Stretch]:
        """The stretches in order of time. Raises DisorderError when they overlap."""
        found = sorted(self.stretches, key=lambda stretch: stretch.first_ms)
        for one, other in pairwise(found):
            if other.first_ms < one.last_ms - _GOES_BACK_MS:
                later = max(one, other)
                before = next(s for s in self.stretches if s.last_line < later.first_line)
                raise self._disorder(before, later.first_line, later.first_ms)
        return found

    def _disorder(self, before: Stretch, line: int, at_ms: int) -> DisorderError:
        back_s = (before.last_ms - at_ms) / 1000
        where = f"{self.path} line {line}" + (f" ({self.source})" if self.source else "")
        return DisorderError(
            f"{where}: the time goes back by {back_s:g} s, and later lines overlap earlier ones, so the order is "
            "unknown; import the files as the server wrote them, or name the zone (--zone) if the clock was changed"
        )


def read_file(
    log: str,
    path: Path,
    zone: tzinfo,
    skipped: Counter[str],
    marks: tuple[bytes, ...],
    on_read: OnRead | None = None,
) -> Iterator[tuple[str, Record | Quiet]]:
    """The records of a file, each with the source that it names. Records without any of the `marks` may come as
    `Quiet`.

    Raises UnreadableTraceError, DamagedTraceError.
    """
    cutter = _Cutter(log, path, LineReader(zone), skipped)
    for block in blocks(path, skipped, on_read):
        first, cutter.is_cut, cutter.levels = 0, block.is_cut, tuple(word for word in _LEVELS if word in block.data)
        for hit in _hits(block, marks):
            yield from cutter.pass_over(block.lines[first:hit], block.first_line + first)
            yield from cutter.take(block.lines[hit], block.first_line + hit)
            first = hit + 1
        rest = block.lines[first:] if first else block.lines
        yield from cutter.pass_over(rest, block.first_line + first)
    yield from cutter.end()


def _hits(block: Block, marks: tuple[bytes, ...]) -> list[int]:
    """The numbers of the lines of a block that have one of the marks."""
    data, found, ends = block.data, set[int](), list[int]()
    for mark in marks:
        place = data.find(mark)
        while place >= 0:
            ends = ends or list(accumulate(len(line) + 1 for line in block.lines))
            line = bisect_right(ends, place)
            found.add(line)
            place = data.find(mark, ends[line])
    return sorted(found)


class _Wrapping(NamedTuple):
    """The text that a log collector has added around the lines of a server. `at`: the position of the server's stamp;
    `fields`: text that is in each line, with the values that name the source."""

    at: int | None = None
    source: str = ""
    fields: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, raw: bytes, at: int | None, source: str) -> _Wrapping:
        fields = tuple(found.group() for found in _SOURCE.finditer(raw))
        return cls(None if source and not fields else at, source, fields)

    def removed(self, lines: list[bytes]) -> list[bytes]:
        """The lines from the server's stamp on. The lines are returned unchanged unless all wrappings differ only in
        numbers."""
        if not self.at or not lines or len({line[: self.at].translate(_DIGITS) for line in lines if line}) > 1:
            return lines
        data = b"\n".join(lines)
        count = sum(1 for line in lines if line)
        alike = all(data.count(each) == count * self.fields.count(each) for each in self.fields)
        if not alike or sum(1 for _ in _SOURCE_NAME.finditer(data)) != count * len(self.fields):
            return lines
        return [line[self.at :] for line in lines]


class _Cutter:
    """Cuts the lines of a file into records."""

    def __init__(self, log: str, path: Path, reader: LineReader, skipped: Counter[str]) -> None:
        self._log = log
        self._path = path
        self._reader = reader
        self._skipped = skipped
        self.levels: tuple[bytes, ...] = ()
        self.is_cut = False
        self._open: tuple[int, str, int, str, bool] | None = None  # the open record: stamp, text, line, source, is cut
        self._more: list[str] = []
        self._has_own = set[str]()  # sources whose lines have a stamp of the server and one of the collector
        self._wrapping = _Wrapping()  # that of the last wrapped line with two stamps

    def take(self, raw: bytes, number: int) -> Iterator[tuple[str, Record]]:
        """Add a line. If it begins a record, yield the record before it."""
        raw = raw.rstrip()
        if not raw:
            return
        if len(raw) > LINE_BYTES_MAX:
            self._skipped[TOO_LONG] += 1
            raw = raw[:LINE_BYTES_MAX]
        stamped_ms, text, named = self._reader.plain_ms(raw), "", ""
        if stamped_ms is not None:
            text = raw.decode("utf-8", "replace")
        else:
            line = self._read(raw, number)
            text, named = line.text, line.source
            stamped_ms = line.at_ms
            if stamped_ms is not None and line.outer_ms is not None:
                self._has_own.add(named)
                self._wrapping = _Wrapping.of(raw, self._place_of(stamped_ms, raw), named)
            elif named not in self._has_own:
                stamped_ms = line.outer_ms if stamped_ms is None else stamped_ms
            else:  # one stamp instead of two: the collector's, so the line continues the record
                stamped_ms = None
        if stamped_ms is not None:
            yield from self.end()
            self._open = (stamped_ms, text, number, named, self.is_cut)
        elif self._open is not None:
            self._skipped[CONTINUED] += 1
            if len(self._more) < _MORE_MAX:
                self._more.append(text)
        else:
            self._skipped[NO_STAMP] += 1

    def _read(self, raw: bytes, number: int) -> Line:
        is_document = len(raw) >= LINE_BYTES_MAX and raw[:1] in (b"{", b"[") and len(_DATE.findall(raw)) > _DATES
        try:
            if is_document:
                raise OneDocumentError
            return self._reader.read(raw)
        except OneDocumentError:
            raise OneDocumentError(f"{self._path} line {number}: {ONE_DOCUMENT}") from None

    def end(self) -> Iterator[tuple[str, Record]]:
        """Yield the last record."""
        if self._open is not None:
            at_ms, text, number, source, is_cut = self._open
            yield source, Record(at_ms, text, "\n".join(self._more), self._log, self._path, number, is_cut)
        self._open, self._more = None, []

    def pass_over(self, lines: list[bytes], number: int) -> Iterator[tuple[str, Record | Quiet]]:
        """Add lines without a mark, without reading them one by one."""
        begin, bare = 0, self._wrapping.removed(lines)
        while begin < len(lines) and self._open is not None and self._reader.plain_ms(bare[begin]) is None:
            yield from self.take(lines[begin], number + begin)  # it may continue the record before it
            begin += 1
        if begin:
            lines, bare, number = lines[begin:], bare[begin:], number + begin
        quiet = self._quiet(bare, number) if len(lines) >= _FEW and self._is_plain(bare[0]) else None
        if quiet is None:
            for place, line in enumerate(lines):
                yield from self.take(line, number + place)
            return
        yield from self.end()
        yield "" if bare is lines else self._wrapping.source, quiet

    def _is_plain(self, line: bytes) -> bool:
        """Whether a line begins with a stamp. As long as no line had two stamps, each line passes."""
        return not self._has_own or self._reader.plain_ms(line.rstrip()) is not None

    def _place_of(self, at_ms: int, raw: bytes) -> int | None:
        """The position of the server's stamp in a wrapped line; None: the stamp is not in the default pattern."""
        places = (found.start() for found in _DATE.finditer(raw))
        return next((place for place in places if self._reader.plain_ms(raw[place:]) == at_ms), None)

    def _quiet(self, lines: list[bytes], number: int) -> Quiet | None:
        """All lines as one `Quiet`; None: they must be read one by one, since they are wrapped or out of order."""
        size = len(lines)
        if self._reader.plain_ms(lines[0].rstrip()) is not None:
            stamps = [line[:_STAMP] for line in lines]
            if b"".join(stamps).translate(_DIGITS).count(_PLAIN) < len(lines):
                lines = [line for line in lines if line[:_STAMP].translate(_DIGITS) == _PLAIN]
                stamps = [line[:_STAMP] for line in lines]
                self._skipped[CONTINUED] += size - len(stamps)
            if sorted(stamps) != stamps:
                return None
            first_ms, last_ms = self._reader.plain_ms(stamps[0]), self._reader.plain_ms(stamps[-1])
            count = len(stamps)
        else:
            first_ms, last_ms = self._bare_ms(lines), self._bare_ms(reversed(lines))
            count, stamps = len(lines), []
        if first_ms is None or last_ms is None:
            return None
        last = number + size - 1
        pause_ms = max(10 * (last_ms - first_ms) // max(1, count), self._pause_ms(stamps))
        return Quiet(first_ms, last_ms, number, last, count, pause_ms, self._log, lines, self.levels, self._reader)

    def _pause_ms(self, stamps: list[bytes]) -> int:
        """A lower bound, to the minute, of the longest time between two consecutive stamps."""
        last_of_minute = dict(zip([stamp[:16] for stamp in stamps], stamps, strict=True)).values()
        found = [ms for stamp in last_of_minute if (ms := self._reader.plain_ms(stamp)) is not None]
        return max((later - one - 60_000 for one, later in pairwise(found)), default=0)

    def _bare_ms(self, lines: Iterable[bytes]) -> int | None:
        """The first stamp in lines without a wrapping; None: the lines are wrapped, or have no stamp."""
        for raw in islice(lines, _LOOKS_MAX):
            line = self._reader.read(raw)
            if line.source or line.outer_ms is not None or raw.lstrip()[:1] in (b"{", b'"'):
                return None
            if line.at_ms is not None:
                return line.at_ms
        return None


def records(
    parts: Sequence[Part],
    zone: tzinfo,
    skipped: Counter[str],
    marks: tuple[bytes, ...],
    on_read: OnRead | None = None,
) -> Iterator[Record | Quiet]:
    """The records of the parts of a node in the order of their stamps. A record that is in two files is returned once.
    Records without a fact about replication may come as `Quiet`, at their first stamp."""
    rank = {log: position for position, log in enumerate(NACOS_LOGS)}

    def chained(lane: Sequence[Part]) -> Iterator[Record | Quiet]:
        for part in lane:
            for number, stretch in enumerate(part.ordered()):
                is_first = number == 0 and not part.source
                counted, progress = (skipped, on_read) if is_first else (Counter[str](), None)
                for source, record in read_file(part.log, part.path, zone, counted, marks, progress):
                    if record.first_line > stretch.last_line:
                        break
                    if source == part.source and record.first_line >= stretch.first_line:
                        yield record

    streams = [
        _in_order(chained(lane), rank.get(lane[0].log, len(rank)), number) for number, lane in enumerate(_lanes(parts))
    ]
    at_ms, now = 0, dict[str, Path]()
    for _, record in heapq.merge(*streams, key=lambda item: item[0]):
        if isinstance(record, Quiet):
            yield record
            continue
        if record.at_ms != at_ms:
            at_ms, now = record.at_ms, {}
        body = record.text[record.text.find(" ") + 1 :]
        if now.setdefault(body, record.path) != record.path:
            skipped[TWICE] += 1
            continue
        yield record


def _lanes(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts grouped into sequences of parts that follow each other, as rotated files, so that few files are
    open."""
    lanes: list[list[Part]] = []
    for part in sorted(parts, key=lambda part: (part.log, part.first_ms, part.last_ms)):
        for lane in lanes:
            if lane[-1].log == part.log and lane[-1].last_ms <= part.first_ms:
                lane.append(part)
                break
        else:
            lanes.append([part])
    return lanes


def _in_order(
    stream: Iterator[Record | Quiet], rank: int, lane: int
) -> Iterator[tuple[tuple[int, int, int, int], Record | Quiet]]:
    latest_ms = 0
    for position, record in enumerate(stream):
        latest_ms = max(latest_ms, record.at_ms)
        yield (latest_ms, rank, lane, position), record
        if isinstance(record, Quiet):
            latest_ms = max(latest_ms, record.last_ms)
