"""What may be concluded from the logs of one node: which of them were read, at which level, over which time.

A fact that is not logged did not happen only if the log that would have it was read at the level that contains it, and
reaches over the time in question. A log counts as read at INFO when a record of that level was found in it, or a record
that only this log has at INFO was found elsewhere: all logs in one stream, where only such records are known to be its
own. Its time is that from its first to its last record: what was rotated away before, or not copied after, is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from distro_traces.nacos_logs.facts import LEVEL, LOG_OF, What
from distro_traces.nacos_logs.files import NACOS_LOGS
from distro_traces.nacos_logs.records import Record
from distro_traces.observed import Covered

Span = tuple[int, int]
CALLS, COPIES, CLIENTS = "protocol-distro", "naming-distro", "naming-server"
_STARTS_WITHIN_MS = 60_000
"""A log whose first record is that late after a start was not read from the start on."""


@dataclass(slots=True)
class Coverage:
    """Of one node, filled record by record, in any order. Times are since 1970."""

    spans: defaultdict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    levels: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by log

    def add(self, record: Record, what: What | None) -> None:
        """Take note of a record and of what it says."""
        log = LOG_OF.get(what) if what is not None else None
        if record.log in NACOS_LOGS:
            level = LEVEL.search(record.text, 0, 120)
            if level is not None:
                self.levels[record.log].add(level.group())
            elif log == record.log:
                self.levels[log].add("INFO")
            _extend(self.spans[record.log], record.at_ms)
        elif log is not None:
            _extend(self.spans[log], record.at_ms)
            self.levels[log].add("DEBUG" if what is What.VERIFY else "INFO")

    def merge(self, other: Coverage) -> None:
        """Take over what further files of the same node show."""
        for log, spans in other.spans.items():
            self.spans[log] += spans
        for log, found in other.levels.items():
            self.levels[log] |= found

    def read(self, log: str, level: str = "INFO") -> tuple[Span, ...]:
        """The spans over which the records of a log at that level are there."""
        return tuple(self.spans[log]) if self.levels[log] & {level, "DEBUG", "TRACE"} else ()

    def reads(self, log: str, at_ms: int) -> bool:
        return any(first <= at_ms <= last for first, last in self.read(log))

    def tells_copies(self, at_ms: int) -> bool:
        """Would it be logged if a client that comes or goes now were a copy?"""
        return self.reads(COPIES, at_ms) or self.reads(CALLS, at_ms)

    def since_start(self, at_ms: int) -> bool:
        """Is what the node holds logged from its start on, which was at `at_ms`?"""
        return any(first - _STARTS_WITHIN_MS <= at_ms <= last for first, last in self.read(CLIENTS))

    def covered(self, node: str, began_ms: int) -> Iterator[Covered]:
        """The spans of a header, in milliseconds since `began_ms`."""
        facts = {
            "members": self.read(CLIENTS),
            "loads": self.read(CALLS),
            "sent": self.read(CALLS),
            "received": self.read(CALLS),
            "verifies": self.read(CALLS, "DEBUG"),
            "state": self.read(CLIENTS),
            "owned": (*self.read(COPIES), *self.read(CALLS)),
            "revision": self.read(COPIES),
        }
        for fact, spans in facts.items():
            for first, last in sorted(set(spans)):
                yield Covered(node=node, fact=fact, from_ms=first - began_ms, until_ms=last - began_ms)


def _extend(spans: list[Span], at_ms: int) -> None:
    first, last = spans[0] if spans else (at_ms, at_ms)
    spans[:] = [(min(first, at_ms), max(last, at_ms))]
