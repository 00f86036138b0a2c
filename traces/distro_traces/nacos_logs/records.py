"""The time-stamped records of log files: which file and line each is at, in the order of their stamps.

A record begins with a line that has a date and a time near its beginning (`lines`) and takes all lines up to the next
such line (stack traces). A file may hold the lines of several others (grep over rotated files, a shipper's stream);
these are read as if each was a file of its own, a *part*. A file in which the time goes back was put together from
several: its stretches are put in order, unless they overlap; then nobody can say what came first, and it is refused.
"""

from __future__ import annotations

import heapq
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from gzip import BadGzipFile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from distro_traces.errors import DamagedTraceError, TraceError, UnreadableTraceError
from distro_traces.nacos_logs.files import NACOS_LOGS, open_log
from distro_traces.nacos_logs.lines import LineReader

NO_STAMP = "no date and time, and nothing before it that it could continue"
TOO_LONG = "longer than 64 KiB: the rest of the line"
TWICE = "the same record in two files"
CONTINUED = "continues the record before it"
CUT = "packed file cut in the middle"

_LINE_BYTES_MAX = 64 * 1024
_GOES_BACK_MS = 5000
"""Clocks are set, and threads wait for each other: the stamps of one file may go back so far."""

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
    line: int

    @property
    def place(self) -> str:
        return f"{self.path.name}:{self.line}"


class Stretch(NamedTuple):
    """Lines of a part within which the time does not go back."""

    first_line: int
    last_line: int
    first_ms: int
    last_ms: int


@dataclass(slots=True)
class Part:
    """The lines of one file that come from the same source: all of them, or those with one name in front."""

    path: Path
    source: str
    log: str
    stretches: list[Stretch] = field(default_factory=list)

    @property
    def first_ms(self) -> int:
        return min(stretch.first_ms for stretch in self.stretches)

    @property
    def last_ms(self) -> int:
        return max(stretch.last_ms for stretch in self.stretches)

    def extend(self, record: Record) -> None:
        """Take note of where a record is. Raises DisorderError when the stretches are too many to be rotated files."""
        last = self.stretches[-1] if self.stretches else None
        if last is not None and record.at_ms >= last.last_ms - _GOES_BACK_MS:
            self.stretches[-1] = last._replace(last_line=record.line, last_ms=max(last.last_ms, record.at_ms))
            return
        if last is not None and len(self.stretches) >= _STRETCHES_MAX:
            raise self._disorder(last, record.line, record.at_ms)
        self.stretches.append(Stretch(record.line, record.line, record.at_ms, record.at_ms))

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
            f"{where}: the time goes back by {back_s:g} s, and what follows overlaps what came before, so the order is "
            "unknown; import the files as the server wrote them, or name the zone (--zone) if the clock was changed"
        )


def read_file(log: str, path: Path, zone: tzinfo, skipped: Counter[str]) -> Iterator[tuple[str, Record]]:
    """All records of a file with the source that each names. Raises UnreadableTraceError, DamagedTraceError."""
    reader = LineReader(zone)
    at_ms, text, more, first_line, source = 0, "", list[str](), 0, ""
    has_own = set[str]()  # sources whose lines have a stamp of their own, beside that of what collected them
    for number, raw in _lines(path, skipped):
        stamped_ms, said, named = reader.plain_ms(raw), "", ""
        if stamped_ms is not None:
            said = raw.decode("utf-8", "replace")
        else:
            line = reader.read(raw)
            said, named = line.text, line.source
            stamped_ms = line.at_ms
            if stamped_ms is not None and line.outer_ms is not None:
                has_own.add(named)
            elif named not in has_own:
                stamped_ms = line.outer_ms if stamped_ms is None else stamped_ms
            else:  # one stamp where there should be two: the next line of the same record, as it was collected
                stamped_ms = None
        if stamped_ms is not None:
            if text:
                yield source, Record(at_ms, text, "\n".join(more), log, path, first_line)
            at_ms, text, more, first_line, source = stamped_ms, said, [], number, named
        elif text:
            skipped[CONTINUED] += 1
            if len(more) < 4:  # the exception and where it was thrown; a whole stack trace says no more
                more.append(said)
        else:
            skipped[NO_STAMP] += 1
    if text:
        yield source, Record(at_ms, text, "\n".join(more), log, path, first_line)


def records(parts: Sequence[Part], zone: tzinfo, skipped: Counter[str]) -> Iterator[Record]:
    """The records of a node's parts in the order of their stamps; one that is in two files comes once."""
    rank = {log: position for position, log in enumerate(NACOS_LOGS)}
    streams = [
        _in_order(_chained(lane, zone, skipped), rank.get(lane[0].log, len(rank)), number)
        for number, lane in enumerate(_lanes(parts))
    ]
    at_ms, now = 0, dict[str, Path]()
    for _, record in heapq.merge(*streams, key=lambda item: item[0]):
        if record.at_ms != at_ms:
            at_ms, now = record.at_ms, {}
        body = record.text[record.text.find(" ") + 1 :]
        if now.setdefault(body, record.path) != record.path:
            skipped[TWICE] += 1
            continue
        yield record


def _lanes(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts of one log that follow each other (rotated files), so that few files are open at a time."""
    lanes: list[list[Part]] = []
    for part in sorted(parts, key=lambda part: (part.log, part.first_ms, part.last_ms)):
        for lane in lanes:
            if lane[-1].log == part.log and lane[-1].last_ms <= part.first_ms:
                lane.append(part)
                break
        else:
            lanes.append([part])
    return lanes


def _chained(lane: Sequence[Part], zone: tzinfo, skipped: Counter[str]) -> Iterator[Record]:
    for part in lane:
        stretches = part.ordered()
        for number, stretch in enumerate(stretches):
            counted = skipped if number == 0 and not part.source else Counter[str]()
            for source, record in read_file(part.log, part.path, zone, counted):
                if record.line > stretch.last_line:
                    break
                if source == part.source and record.line >= stretch.first_line:
                    yield record


def _in_order(stream: Iterator[Record], rank: int, lane: int) -> Iterator[tuple[tuple[int, int, int, int], Record]]:
    latest_ms = 0
    for position, record in enumerate(stream):
        latest_ms = max(latest_ms, record.at_ms)
        yield (latest_ms, rank, lane, position), record


def _lines(path: Path, skipped: Counter[str]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank with their numbers, each cut to what memory should hold at once."""
    try:
        with open_log(path) as file:
            rest, number = False, 1
            while line := file.readline(_LINE_BYTES_MAX):
                if rest:
                    skipped[TOO_LONG] += 1
                elif stripped := line.rstrip():
                    yield number, stripped
                rest = not line.endswith(b"\n")
                number += not rest
    except EOFError:
        skipped[CUT] += 1
    except (BadGzipFile, zlib.error) as error:
        raise DamagedTraceError(path, error) from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error
