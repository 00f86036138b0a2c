"""One line of a log file: its time, its text, and its source file.

The pattern of a log is unknown: operators change it, and the tools that transport the lines (a container runtime, a
shipper, grep) wrap them. So a line is unwrapped first (JSON, CSV, HTML escapes, the file name that grep puts in
front); it begins a record if it has a date and a time near its beginning. The stamp that the server wrote is the one
closest to the message: a stamp before it, or beside it in JSON, is the time at which the line was collected.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from distro_traces.errors import TraceError

ONE_DOCUMENT = (
    "many records in one JSON value; write one record a line (logcli: --output=jsonl, jq: -c '.data.result[].values[]')"
)
_RECORD = 40
"""Characters. A longer text with a stamp is a record, not only a time."""

STAMP_WITHIN = 200
"""Characters. A date that comes later is part of the message."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?:[ \u202f]?(?P<half>[AaPp][Mm])\b)?[ ]?(?P<offset>Z|[+-]\d\d:?\d\d)?"
)
_STAMPS = tuple(
    re.compile(rf"(?<!\d){date}{_TIME}(?![\d:])")
    for date in (
        r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]",
        r"(?P<name>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}),? (?:@ )?",
        r"(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4}),? ",
        r"(?P<year>\d{4})年(?P<month>\d\d?)月(?P<day>\d\d?)日 ?",
        r"(?P<day>\d\d)[-/](?P<name>[A-Z][a-z]{2})[-/](?P<year>\d{4})[ :]",
    )
)
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\b")
_CONTINUES = re.compile(
    r"\s*(?:(?:Caused by|Suppressed): |\.\.\. \d+ |at [\w.$/]+\(|\w+(?:\.[\w$]+)+(?:Exception|Error)\b)"
)
"""The beginning of a line of an exception; a date in it is no stamp."""
_BETWEEN = 64  # characters between the stamp of a collector and that of the server
_ANSI = re.compile(r"\x1b\[[\d;]*m")
_GREP = re.compile(
    r"(?P<source>[^\s:|{\"]*?[^\s:|{\"/](?:\.log|\.txt|\.out|\.gz)[^\s:|{\"]*?)(?::|-(?=\d{4}-))(?:\d+[:-](?=\d{4}-))?(?=\S)"
)
_COMPOSE = re.compile(r"(?P<source>[\w.\-]+)\s+\|\s")
_KUBECTL = re.compile(r"\[pod/(?P<source>[^/\]]+)/[^\]]+\] ")
_STERN = re.compile(r"(?P<source>[a-z][\w.\-]*) [a-z][\w.\-]* (?=\d{4}-\d\d-\d\d)")
_SYSLOG = re.compile(
    r"(?:<\d{1,3}>1? ?)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) "
    r"(?!TRACE|DEBUG|INFO|WARN|ERROR)(?P<source>[A-Za-z][\w.\-]*) [\w.\-/]+(?:\[\d+\])?:(?: |$)"
)
"""A host may write for several servers: into one file of a collector of logs."""
_LABELS = re.compile(r"\{(?:\w+=\"[^\"]*\"(?:, ?)?)+\}(?:\s|$)")
_LABEL = re.compile(r"(\w+)=\"([^\"]*)\"")
_MESSAGES = ("message", "log", "msg", "@message", "MESSAGE", "line", "textPayload", "short_message", "body", "_raw")
_TIMES = ("@timestamp", "timestamp", "time", "ts", "date", "@t")
_PATHS = (
    *(("log", "file", "path"), ("source",), ("filename",), ("file",), ("path",)),
    *(("labels", "filename"), ("stream", "filename")),
)
_HOSTS = (
    *(("host", "name"), ("hostname",), ("host",), ("_HOSTNAME",)),
    *(("kubernetes", "pod", "name"), ("kubernetes", "pod_name"), ("labels", "pod"), ("stream", "pod")),
)
SOURCE_NAMES = frozenset(path[-1] for path in (*_PATHS, *_HOSTS))
"""The fields that name a source, in JSON."""

_IN_FRONT = (_GREP, _COMPOSE, _KUBECTL, _STERN, _SYSLOG)
_LABELS_WITHIN = 600


class OneDocumentError(TraceError):
    """Many records in one JSON value."""


class Line(NamedTuple):
    """`at_ms`: the stamp of the server, or the only one in a plain line; `outer_ms`: the stamp of the collector."""

    text: str
    at_ms: int | None
    outer_ms: int | None = None
    source: str = ""  # the file, and host, named in the line


class LineReader:
    """Reads lines of one zone. The text of an hour is looked up, since almost all lines share one with the last."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._hours: dict[bytes, int | None] = {}

    def plain_ms(self, line: bytes) -> int | None:
        """The stamp of a line in the default pattern, `2025-09-02 16:45:13,123 INFO …`; None: any other line."""
        if line[4:5] != b"-" or line[19:20] not in (b",", b".") or not line[20:23].isdigit() or line[23:24] not in b" ":
            return None
        hour = line[:13]
        if hour not in self._hours:
            try:
                self._hours[hour] = self._ms(datetime.strptime(hour.decode(), "%Y-%m-%d %H").replace(tzinfo=self._zone))
            except ValueError:
                self._hours[hour] = None
        base = self._hours[hour]
        try:
            # Another stamp may follow, that of the server itself; escapes have to be read.
            if base is None or line[24:28].isdigit() or b"\x1b[" in line or b"&#39;" in line or b"&quot;" in line:
                return None
            return base + int(line[14:16]) * 60_000 + int(line[17:19]) * 1000 + int(line[20:23])
        except ValueError:
            return None

    def read(self, raw: bytes) -> Line:
        """Any line."""
        text = raw.decode("utf-8", "replace").lstrip("\ufeff").rstrip()
        if "\x1b[" in text:
            text = _ANSI.sub("", text)
        if "&#39;" in text or "&quot;" in text:
            text = html.unescape(text)
        source, outer_ms = "", None
        found = next((found for form in _IN_FRONT if (found := form.match(text)) is not None), None)
        if found is not None:
            source, text = found["source"], text[found.end() :]
            outer_ms = self._stamps_ms(found.group())[0]
        elif (found := _LABELS.search(text, 0, _LABELS_WITHIN)) is not None:
            labels = dict(_LABEL.findall(found.group()))
            names = (labels.get("pod") or labels.get("host") or "", labels.get("filename", ""))
            source = "/".join(name for name in names if name)
            outer_ms = self._stamps_ms(text[: found.start()])[0]
            text = text[found.end() :]
        line = self._wrapped(text)
        if line is None:
            at_ms, first_ms = self._stamps_ms(text)
            return Line(text, at_ms, first_ms if outer_ms is None else outer_ms, source)
        return line._replace(source="/".join(part for part in (source, line.source) if part))

    def _wrapped(self, text: str) -> Line | None:
        """A line of JSON or CSV; None: neither."""
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except ValueError:
                return None
            return self._of_json(found) if isinstance(found, dict) else None
        if text.startswith('"') and text.endswith('"'):
            fields = next(csv.reader([text]), [])
            if len(fields) > 1:
                message = max(fields, key=len)
                others = [field for field in fields if field is not message]
                outer_ms = next((ms for field in others if (ms := self._stamps_ms(field)[0]) is not None), None)
                return self._inner(message, outer_ms, " ".join(others))
        return None

    def _of_json(self, found: Mapping[str, Any]) -> Line | None:
        message = next((found[name] for name in _MESSAGES if isinstance(found.get(name), str)), None)
        if message is None:  # in a field of another name: the longest text with a stamp of a server
            texts = [text for text in _texts_in(found) if self._stamps_ms(text)[0] is not None and len(text) > _RECORD]
            if len(texts) > 1:
                raise OneDocumentError
            message = max(texts, key=len, default=None)
        if message is None:
            return None
        times = (found[name] for name in _TIMES if isinstance(found.get(name), str))
        outer_ms = next((ms for time in times if (ms := self._stamps_ms(time)[0]) is not None), None)
        level = found.get("level", found.get("severity", ""))
        line = self._inner(message.rstrip("\n"), outer_ms, level if isinstance(level, str) else "")
        names = [next((name for path in paths if (name := _at(found, path))), "") for paths in (_HOSTS, _PATHS)]
        return line._replace(source="/".join(part for part in (*names, line.source) if part))

    def _inner(self, message: str, outer_ms: int | None, before: str) -> Line:
        line = self._wrapped(message) or Line(message, *self._stamps_ms(message))
        if line.at_ms is None and before:
            line = line._replace(text=f"{before} {line.text}")
        return line._replace(outer_ms=outer_ms if line.outer_ms is None else line.outer_ms)

    def _stamps_ms(self, text: str) -> tuple[int | None, int | None]:
        """The last of the adjacent stamps before the message, and the first one if there are several."""
        last_ms, first_ms, end = None, None, 0
        if _CONTINUES.match(text):
            return None, None
        while True:
            found = next((m for each in _STAMPS if (m := each.search(text, end, end + STAMP_WITHIN))), None)
            if found is None or (end and (found.start() - end > _BETWEEN or _LEVEL.search(text, end, found.start()))):
                return last_ms, first_ms
            read_ms = self._read(found)
            if read_ms is None:
                return last_ms, first_ms
            if last_ms is not None and first_ms is None:
                first_ms = last_ms
            last_ms, end = read_ms, found.end()

    def _read(self, stamp: re.Match[str]) -> int | None:
        part = stamp.groupdict()
        try:
            month = int(part["month"]) if part.get("month") else _MONTHS.index(part["name"]) + 1
            day = (int(part["year"]), month, int(part["day"]))
            time = (_hour(part["hour"], part["half"]), int(part["minute"]), int(part["second"]))
            zone = self._zone if part["offset"] is None else _offset(part["offset"])
            when = datetime(*day, *time, tzinfo=zone)
        except ValueError:  # the 31st of February: no stamp
            return None
        return self._ms(when) + int((part["fraction"] or "0").ljust(3, "0")[:3])

    @staticmethod
    def _ms(when: datetime) -> int:
        return (when - _EPOCH) // timedelta(milliseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _at(found: Mapping[str, Any], path: tuple[str, ...]) -> str:
    value: Any = found
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def _texts_in(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, Mapping | list):
        for value in found.values() if isinstance(found, Mapping) else found:
            yield from _texts_in(value)


def _hour(text: str, half: str | None) -> int:
    if half is None:
        return int(text)
    return int(text) % 12 + (12 if half in ("PM", "pm", "Pm") else 0)


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=-minutes if text[:1] == "-" else minutes))
