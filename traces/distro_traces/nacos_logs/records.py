"""A log file as time-stamped records, whatever the pattern of its lines.

Nobody can know the pattern: operators change it, containers put a stamp of their own in front, JSON layouts wrap the
line. So a record begins with a line that has a date and a time near its beginning, and takes all lines up to the next
such line (stack traces). A stamp without an offset is in the zone that the caller names. Records of one node are merged
in the order of their stamps; a stamp that goes back does not reorder the lines of a file.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from gzip import BadGzipFile
from pathlib import Path
from typing import NamedTuple

from distro_traces.errors import DamagedTraceError, UnreadableTraceError
from distro_traces.nacos_logs.files import NACOS_LOGS, LogFiles, open_log

NO_STAMP = "no date and time, and nothing before it that it could continue"
TOO_LONG = "longer than 64 KiB: the rest of the line"
TWICE = "the same record in two files"
CONTINUED = "continues the record before it"

_LINE_BYTES_MAX = 64 * 1024
_STAMP = re.compile(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?[ ]?(Z|[+-]\d\d:?\d\d)?(?![\d:])"
)
_STAMP_WITHIN_BYTES = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(NamedTuple):
    """One log record. `text` is the line with its stamp, `more` the lines that continue it."""

    at_ms: int  # since 1970, UTC
    text: str
    more: str
    log: str


def records(node: LogFiles, zone: tzinfo, skipped: Counter[str]) -> Iterator[Record]:
    """The records of all logs of a node in the order of their stamps; lines that are none are counted by reason."""
    rank = {log: position for position, log in enumerate(NACOS_LOGS)}
    streams = [
        _in_order(_chained(log, paths, zone, skipped), rank.get(log, len(rank))) for log, paths in node.by_log.items()
    ]
    at_ms, now = 0, dict[str, str]()
    for (at, _, _), record in heapq.merge(*streams, key=lambda item: item[0]):
        if at != at_ms:
            at_ms, now = at, {}
        body = record.text[record.text.find(" ") + 1 :]
        if now.setdefault(body, record.log) != record.log:
            skipped[TWICE] += 1
            continue
        yield record


def _in_order(stream: Iterator[Record], rank: int) -> Iterator[tuple[tuple[int, int, int], Record]]:
    latest_ms = 0
    for position, record in enumerate(stream):
        latest_ms = max(latest_ms, record.at_ms)
        yield (latest_ms, rank, position), record


def _chained(log: str, paths: Sequence[Path], zone: tzinfo, skipped: Counter[str]) -> Iterator[Record]:
    """The rotated files of one log, the oldest first."""

    def begins(path: Path) -> int:
        return next((record.at_ms for record in _records(log, path, zone, Counter())), 0)

    for path in sorted(paths, key=begins) if len(paths) > 1 else paths:
        yield from _records(log, path, zone, skipped)


def _records(log: str, path: Path, zone: tzinfo, skipped: Counter[str]) -> Iterator[Record]:
    at_ms, text, more = 0, "", list[str]()
    for line in _lines(path, skipped):
        stamp = _STAMP.search(line, 0, _STAMP_WITHIN_BYTES)
        stamped_ms = None if stamp is None else _stamp_ms(stamp, zone)
        if stamped_ms is not None:
            if text:
                yield Record(at_ms, text, "\n".join(more), log)
            at_ms, text, more = stamped_ms, line.decode("utf-8", "replace"), []
        elif text:
            skipped[CONTINUED] += 1
            if len(more) < 4:  # the exception and where it was thrown; a whole stack trace says no more
                more.append(line.decode("utf-8", "replace"))
        else:
            skipped[NO_STAMP] += 1
    if text:
        yield Record(at_ms, text, "\n".join(more), log)


def _lines(path: Path, skipped: Counter[str]) -> Iterator[bytes]:
    """The lines that are not blank, each cut to what memory should hold at once."""
    try:
        with open_log(path) as file:
            rest = False
            while line := file.readline(_LINE_BYTES_MAX):
                if rest:
                    skipped[TOO_LONG] += 1
                elif line.strip():
                    yield line.rstrip()
                rest = not line.endswith(b"\n")
    except EOFError:
        skipped["packed file cut in the middle"] += 1
    except (BadGzipFile, zlib.error) as error:
        raise DamagedTraceError(path, error) from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error


def _stamp_ms(stamp: re.Match[bytes], zone: tzinfo) -> int | None:
    *numbers, fraction, offset = stamp.groups()
    try:
        when = datetime(*map(int, numbers), tzinfo=zone if offset is None else _offset(offset))  # type: ignore[misc,arg-type]
    except ValueError:  # the 31st of February: no stamp
        return None
    return (when - _EPOCH) // timedelta(milliseconds=1) + int((fraction or b"0").ljust(3, b"0")[:3])


def _offset(text: bytes) -> tzinfo:
    if text == b"Z":
        return UTC
    digits = text[1:].replace(b":", b"")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=-minutes if text[:1] == b"-" else minutes))
