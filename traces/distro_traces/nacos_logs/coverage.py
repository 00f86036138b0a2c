"""The coverage of one node's logs: which logs were read, at which level, over which time.

A missing record proves that a fact did not happen only if the log that would have the record was read at the level of
the record and covers the time. A log counts as read at a level from the first to the last record of that level or a
lower one, and from the start of the node on if the first record follows within a minute: a node that has just started
has nothing to log about other members. Where all logs are in one stream, only records that this log alone has count.
The time of records that were rotated away before, not copied after, or are missing between two rotated files (`holes`)
is not covered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from distro_traces.nacos_logs.facts import LEVEL, LOG_OF, What
from distro_traces.nacos_logs.files import NACOS_LOGS
from distro_traces.nacos_logs.holes import Hole
from distro_traces.nacos_logs.records import Quiet, Record
from distro_traces.observed import Covered

Span = tuple[int, int]
CALLS, COPIES, CLIENTS = "protocol-distro", "naming-distro", "naming-server"
_STARTS_WITHIN_MS = 60_000
"""A log whose first record is later than this after a start does not cover the start."""

_WORDS = {"INFO": (b"INFO", b"DEBUG", b"TRACE"), "DEBUG": (b"DEBUG", b"TRACE")}
"""The levels of facts, each with the levels that show that a log contains it."""


@dataclass(slots=True)
class Coverage:
    """The coverage of one file or one node, filled record by record, in any order. Times are since 1970."""

    spans: defaultdict[tuple[str, str], list[Span]] = field(default_factory=lambda: defaultdict(list))  # log, level
    levels: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by log

    def add(self, record: Record, what: What | None) -> None:
        """Add a record and the fact that it reports."""
        log = LOG_OF.get(what) if what is not None else None
        if record.log in NACOS_LOGS:
            found = LEVEL.search(record.text, 0, 120)
            level = "INFO" if found is None and log == record.log else found and found.group()
            self.levels[record.log].update({level} if level else ())
            self._extend(record.log, level, record.at_ms, record.at_ms)
        elif log is not None:
            level = "DEBUG" if what is What.VERIFY else "INFO"
            self.levels[log].add(level)
            self._extend(log, level, record.at_ms, record.at_ms)

    def pass_over(self, quiet: Quiet) -> None:
        """Add records without a fact of replication."""
        if quiet.log not in NACOS_LOGS:
            return
        for level, words in _WORDS.items():
            span = quiet.at_level(words)
            if span is not None:
                self.levels[quiet.log].add(level)
                self._extend(quiet.log, level, *span)

    def read(self, log: str, level: str = "INFO") -> tuple[Span, ...]:
        """The spans that the records of a log at that level cover."""
        return tuple(self.spans.get((log, level), ()))

    def reads(self, log: str, at_ms: int) -> bool:
        return any(first <= at_ms <= last for first, last in self.read(log))

    def shows_copies(self, at_ms: int) -> bool:
        """Would the logs at this time show that a client that comes or goes is a copy?"""
        return self.reads(COPIES, at_ms) or self.reads(CALLS, at_ms)

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

    def begin_at(self, starts: Sequence[int], gaps: Sequence[Hole]) -> None:
        """Extend each span to the start of the node shortly before it, unless records between the two are missing."""
        for spans in self.spans.values():
            for at, (first, last) in enumerate(spans):
                since = max(first - _STARTS_WITHIN_MS, spans[at - 1][1] if at else 0)
                missing = max((gap.until_ms for gap in gaps if gap.from_ms < first), default=0)
                before = [each for each in starts if max(since, missing) <= each < first]
                spans[at] = (min([first, *before]), last)

    def shift(self, ms: int) -> None:
        """Make all times later."""
        for spans in self.spans.values():
            spans[:] = [(first + ms, last + ms) for first, last in spans]

    def _extend(self, log: str, level: str | None, first_ms: int, last_ms: int) -> None:
        for each, words in _WORDS.items():
            if level is not None and level.encode() in words:
                spans = self.spans[log, each]
                first, last = spans[0] if spans else (first_ms, last_ms)
                spans[:] = [(min(first, first_ms), max(last, last_ms))]


def joined(files: Sequence[Coverage], gaps: Sequence[Hole]) -> Coverage:
    """The joint coverage of the files of one log of a node: a span ends where a file is missing."""
    whole = Coverage()
    for each in files:
        for log, found in each.levels.items():
            whole.levels[log] |= found
        for key, spans in each.spans.items():
            whole.spans[key] += spans
    missing = [(gap.from_ms, gap.until_ms) for gap in gaps]
    for (log, level), spans in whole.spans.items():
        coarser = [span for each in files if not each.read(log, level) for span in each.read(log)]
        spans[:] = _apart(sorted(spans), [*missing, *coarser])
    return whole


def _apart(spans: Sequence[Span], gaps: Sequence[Span]) -> Iterator[Span]:
    first, last = spans[0]
    for next_first, next_last in spans[1:]:
        if any(last <= gap_first and gap_last <= next_first for gap_first, gap_last in gaps):
            yield first, last
            first, last = next_first, next_last
        last = max(last, next_last)
    yield first, last
