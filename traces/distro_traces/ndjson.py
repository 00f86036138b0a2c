"""A trace during its recording: append-only NDJSON, and the reader of such files.

The header is the first line, every further line is one event, each written and handed to the system before `record`
returns: when the recording process dies, at most the line it was writing is incomplete. A long run goes on in a further
file, a segment with the same header, before one grows too large. The reader reads a file up to the cut and reports it,
and sets aside every invalid line with the reason. `distro_spark.frames` reads the same files into frames, and takes the
reasons from here.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, TypedDict, Unpack
from urllib.parse import quote

from distro_traces.errors import EmptyTraceError, RunExistsError, UnreadableTraceError, UnwritableTraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS, REQUIRED_COLUMNS, Event, Kind, Outcome
from distro_traces.header import Clock, Header, parse_header
from distro_traces.observed import EVERYTHING, OPERATIONS, Observed

SUFFIX = ".ndjson"
NOT_JSON = "not JSON"
KINDS = frozenset(kind.value for kind in Kind)
OUTCOMES = frozenset(outcome.value for outcome in Outcome)
CALLED = frozenset({*OPERATIONS, "ADD"})
"""Operations in rows: ADD is on the wire what CHANGE is."""
DIGEST_CHARS = (16, 64)
SEGMENT_BYTES = 256 * 1024 * 1024
LINE_BYTES_MAX = 1024 * 1024
TOO_LONG = "longer than 1 MiB"
_INT64 = range(-(2**63), 2**63)


class EventFields(TypedDict, total=False):
    """The optional columns of an `Event`, which `Recorder.record` takes by name."""

    peer: str | None
    message: str | None
    operation: str | None
    client: str | None
    owned: bool | None
    revision: int | None
    digest: str | None
    outcome: Outcome | None
    detail: str | None


class Recorder:
    """Writes one run. `path` is the file, or the directory in which `<run>.ndjson` is made; one thread at a time.

    A file that has reached `segment_bytes` is closed and `<run>.2.ndjson` goes on, then 3.
    """

    def __init__(
        self,
        path: Path | str,
        run: str,
        *,
        profile: str,
        target: str,
        clock: Clock = "virtual",
        nodes: Sequence[str] = (),
        observed: Observed = EVERYTHING,
        segment_bytes: int = SEGMENT_BYTES,
        began: str | None = None,
    ) -> None:
        """Raises RunExistsError when the file is there already, UnwritableTraceError when it cannot be made."""
        path = Path(path)
        self.path = path if path.suffix == SUFFIX else path / f"{quote(run, safe=' ')}{SUFFIX}"
        self.header = Header(
            run=run, profile=profile, target=target, clock=clock, nodes=tuple(nodes), observed=observed, began=began
        )
        self.events = 0
        self._seq: Counter[str] = Counter()
        self._messages = 0
        self._segment_bytes = segment_bytes
        self._open(self.path, self.header)

    def record(self, node: str, kind: Kind, *, at_ms: int, **fields: Unpack[EventFields]) -> Event:
        """Append one event and give it the next `seq` of its node. `at_ms`: milliseconds since the run began."""
        self._seq[node] += 1
        event = Event(run=self.header.run, node=node, seq=self._seq[node], at_ms=at_ms, kind=kind, **fields)
        self._write(event.to_json())
        self.events += 1
        return event

    def new_message_id(self) -> str:
        """An id for one call, unique in the run; its request and reply rows share it."""
        self._messages += 1
        return f"m{self._messages}"

    def close(self) -> None:
        self._file.close()

    def _open(self, path: Path, header: Header) -> None:
        """Begin a file, which appears with its header, so that a process killed here leaves none that is no trace."""
        hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = hidden.open("wb")
            self._bytes = 0
            self._segment = header.segment
            self._write(header.to_json())
            os.link(hidden, path)
        except FileExistsError as error:
            self._file.close()
            raise RunExistsError(
                f"{path}: holds a recording already; record into another directory or under another run name"
            ) from error
        except OSError as error:
            raise UnwritableTraceError(path, error) from error
        finally:
            hidden.unlink(missing_ok=True)

    def _write(self, row: dict[str, Any]) -> None:
        if self._bytes >= self._segment_bytes:
            self._file.close()
            number = self._segment + 1
            self._open(segment_path(self.path, number), replace(self.header, segment=number))
        self._bytes += self._file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Rejected(NamedTuple):
    """An invalid line, and the reason. Line 1 is the header; a row at rest has no line: 0."""

    line: int
    reason: str
    text: str

    @property
    def place(self) -> str:
        return f"line {self.line}, {self.reason}" if self.line else self.reason


class Cut(NamedTuple):
    """The last line, when the recording process died while writing it."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class TraceFile:
    """The whole content of an NDJSON file."""

    header: Header
    events: tuple[Event, ...]
    cut: Cut | None
    rejected: tuple[Rejected, ...]


def segment_path(first: Path, number: int) -> Path:
    """Where the segment of that number of the recording `first` is written."""
    return first if number == 1 else first.with_name(f"{first.name.removesuffix(SUFFIX)}.{number}{SUFFIX}")


def read_ndjson(path: Path | str) -> TraceFile:
    """Read one file of a recording into memory. Raises the TraceError family when it as a whole cannot be used."""
    events: list[Event] = []
    rejected: list[Rejected] = []
    cut = None
    for row in stream_ndjson(path):
        match row:
            case Event():
                events.append(row)
            case Rejected():
                rejected.append(row)
            case Cut():
                cut = row
    return TraceFile(read_header(path), tuple(events), cut, tuple(rejected))


def stream_ndjson(path: Path | str) -> Iterator[Event | Rejected | Cut]:
    """The rows of one file in their order, never more than one line in memory. Raises the TraceError family."""
    lines = _lines(path)
    header = parse_header(_first(lines, path), path)
    waiting: Rejected | None = None  # the last line may be a cut, which only its successor shows
    for number, line in lines:
        if waiting is not None:
            yield waiting
            waiting = None
        if not line.strip():
            continue
        try:
            if len(line) > LINE_BYTES_MAX:
                raise ValueError(TOO_LONG)
            yield parse_event(line, [header.run])
        except ValueError as reason:
            waiting = Rejected(number, str(reason), line[:LINE_BYTES_MAX].decode("utf-8", "replace"))
    if waiting is not None:
        yield Cut(waiting.line, waiting.text) if waiting.reason == NOT_JSON else waiting


def read_header(path: Path | str, file: BinaryIO | None = None) -> Header:
    """Read only the first line; from `file` where `path` is not a local file. Raises the TraceError family."""
    return parse_header(_first(_lines(path, file), path), path)


def first_too_long(path: Path | str) -> int | None:
    """The number of the first line that is too long, never more than so much in memory."""
    return next((number for number, line in _lines(path) if len(line) > LINE_BYTES_MAX), None)


def parse_event(line: str | bytes, runs: Collection[str]) -> Event:
    """A line of one of these runs as an event. Raises ValueError; its text is the reason for setting the line aside."""
    try:
        row = json.loads(line)
    except ValueError:
        raise ValueError(NOT_JSON) from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return event_in(row, runs)


def event_in(row: dict[str, Any], runs: Collection[str]) -> Event:
    """A row of one of these runs, by column, as an event. Raises ValueError as `parse_event` does."""
    values = {name: value for name in COLUMNS if (value := row.get(name)) is not None}
    for name in REQUIRED_COLUMNS:
        if name not in values:
            raise ValueError(f"missing field {name}")
    for name, value in values.items():
        if not _has_its_type(name, value):
            raise ValueError(f"wrong type for {name}")
    if values["kind"] not in KINDS:
        raise ValueError(f"unknown kind {values['kind']}")
    if values.get("outcome", Outcome.SUCCESS) not in OUTCOMES:
        raise ValueError(f"unknown outcome {values['outcome']}")
    if values.get("operation", "ADD") not in CALLED:
        raise ValueError(f"unknown operation {values['operation']}")
    carried = values.get("digest", "")
    if len(carried) in DIGEST_CHARS and carried != carried.lower():
        raise ValueError("digest in capital letters")
    if values["seq"] < 1:
        raise ValueError("seq below 1")
    if values["run"] not in runs:
        raise ValueError(f"run {values['run']} has no header")
    values["kind"] = Kind(values["kind"])
    if "outcome" in values:
        values["outcome"] = Outcome(values["outcome"])
    return Event(**values)


def _has_its_type(name: str, value: object) -> bool:
    if name in INTEGER_COLUMNS:
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    return isinstance(value, bool if name in BOOLEAN_COLUMNS else str)


def _lines(path: Path | str, opened: BinaryIO | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1; of one that is too long only the beginning. Only a line feed ends a line."""
    try:
        with nullcontext(opened) if opened else Path(path).open("rb") as file:
            number = 0
            while line := file.readline(LINE_BYTES_MAX + 1):
                number += 1
                end = line
                while len(end) > LINE_BYTES_MAX and not end.endswith(b"\n"):
                    end = file.readline(LINE_BYTES_MAX + 1)
                yield number, line.rstrip(b"\n")
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error


def _first(lines: Iterator[tuple[int, bytes]], path: Path | str) -> bytes:
    for _, line in lines:
        return line
    raise EmptyTraceError(f"{path}: empty, the recording ended before its header was written; remove the file")
