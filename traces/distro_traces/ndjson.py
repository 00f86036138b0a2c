"""A trace while it is being recorded: append-only NDJSON, and the reader of such files.

The header is the first line, every further line is one event, each written and handed to the system before `record`
returns: when the recording process dies, at most the line it was writing is incomplete. The reader takes such a file
up to the cut and says so, and sets aside every line that does not fit, with the reason, instead of losing it.
`distro_spark.load` reads the same files with the same reasons, without passing them through one process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypedDict, Unpack
from urllib.parse import quote

from distro_traces.errors import EmptyTraceError, RunExistsError, UnreadableTraceError
from distro_traces.event import BOOLEAN_COLUMNS, COLUMNS, INTEGER_COLUMNS, REQUIRED_COLUMNS, Event, Kind, Outcome
from distro_traces.header import Clock, Header, parse_header
from distro_traces.observed import EVERYTHING, Observed

SUFFIX = ".ndjson"
NOT_JSON = "not JSON"
KINDS = frozenset(kind.value for kind in Kind)
OUTCOMES = frozenset(outcome.value for outcome in Outcome)
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
    """Writes one run. `path` is the file, or the directory in which `<run>.ndjson` is made; one thread at a time."""

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
    ) -> None:
        """Raises RunExistsError when the file is there already, UnreadableTraceError when it cannot be made."""
        path = Path(path)
        self.path = path if path.suffix == SUFFIX else path / f"{quote(run, safe=' ')}{SUFFIX}"
        self.header = Header(
            run=run, profile=profile, target=target, clock=clock, nodes=tuple(nodes), observed=observed
        )
        self.events = 0
        self._seq: Counter[str] = Counter()
        self._messages = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except FileExistsError as error:
            raise RunExistsError(
                f"{self.path}: holds a recording already; record into another directory or under another run name"
            ) from error
        except OSError as error:
            raise UnreadableTraceError(self.path, error) from error
        self._write(self.header.to_json())

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

    def _write(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Rejected(NamedTuple):
    """A line that does not fit, and why. Line 1 is the header."""

    line: int
    reason: str
    text: str


class Cut(NamedTuple):
    """The last line, when the recording process died while writing it."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class TraceFile:
    """All that an NDJSON file holds; nothing of it is lost."""

    header: Header
    events: tuple[Event, ...]
    cut: Cut | None
    rejected: tuple[Rejected, ...]


def read_ndjson(path: Path | str) -> TraceFile:
    """Read one recording into memory. Raises the TraceError family when the file as a whole cannot be used."""
    lines = _lines(path)
    header = parse_header(_first(lines, path), path)
    events: list[Event] = []
    rejected: list[Rejected] = []
    last = 1
    for last, line in lines:
        if not line.strip():
            continue
        try:
            events.append(parse_event(line, header.run))
        except ValueError as reason:
            rejected.append(Rejected(last, str(reason), line.decode("utf-8", "replace")))
    cut = None
    if rejected and rejected[-1].line == last and rejected[-1].reason == NOT_JSON:
        cut = Cut(last, rejected.pop().text)
    return TraceFile(header, tuple(events), cut, tuple(rejected))


def read_header(path: Path | str) -> Header:
    """Read only the first line. Raises the TraceError family."""
    return parse_header(_first(_lines(path), path), path)


def parse_event(line: str | bytes, run: str) -> Event:
    """One line of run `run` as an event. Raises ValueError whose text is the reason for setting the line aside."""
    try:
        row = json.loads(line)
    except ValueError:
        raise ValueError(NOT_JSON) from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
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
    if values["seq"] < 1:
        raise ValueError("seq below 1")
    if values["run"] != run:
        raise ValueError(f"run {values['run']} has no header")
    values["kind"] = Kind(values["kind"])
    if "outcome" in values:
        values["outcome"] = Outcome(values["outcome"])
    return Event(**values)


def _has_its_type(name: str, value: object) -> bool:
    if name in INTEGER_COLUMNS:
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    return isinstance(value, bool if name in BOOLEAN_COLUMNS else str)


def _lines(path: Path | str) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1. Only a line feed ends a line."""
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.rstrip(b"\n")
    except FileNotFoundError as error:
        raise EmptyTraceError(f"{path}: no such file; name a recording or a directory of them") from error
    except OSError as error:
        raise UnreadableTraceError(path, error) from error


def _first(lines: Iterator[tuple[int, bytes]], path: Path | str) -> bytes:
    for _, line in lines:
        return line
    raise EmptyTraceError(f"{path}: empty, the recording ended before its header was written; remove the file")
