"""The result of a check, as plain values: everything that a report needs, readable without Spark.

Lists are bounded, since a broken cluster violates once per client: omitted entries are counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

Verdict = Literal["conforms", "violates", "inconclusive"]
Judgement = Literal["conforms", "violates", "known", "not-judged", "not-applicable"]
"""Of one invariant. Known: only what is known of the release. Not judged: a run has no checkpoint, or no event, or not
enough of any node was observed."""


@dataclass(frozen=True, slots=True)
class EventReference:
    """A row of the trace; (run, node, seq) finds it."""

    node: str
    seq: int
    at_ms: int
    kind: str
    message: str | None

    def __str__(self) -> str:
        return f"{self.kind} of {self.node} at {self.at_ms} ms (seq {self.seq})"


@dataclass(frozen=True, slots=True)
class Violation:
    """`known`: the number of the known failure that this is an instance of; then it does not count against the run."""

    invariant: str
    run: str
    profile: str
    client: str
    node: str
    first_event: EventReference
    last_event: EventReference
    evidence: dict[str, str]
    message: str
    known: str | None
    expected: str = ""  # what should have happened
    after: str | None = None  # the message that preceded it, where it is known


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """`clients`: in how many clients something was found. `undecided`: the nodes of which not enough was observed."""

    name: str
    text: str
    verdict: Judgement
    violations: int  # without the known and the unexplained ones
    known: int
    seconds: float
    clients: int = 0
    undecided: int = 0
    unexplained: int = 0  # violations too many to be compared with the known failures


@dataclass(frozen=True, slots=True)
class InvalidRows:
    """A reason for quarantine, the number of its rows, and the place of the first one (no line in Parquet)."""

    reason: str
    rows: int
    file: str
    line: int | None

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file} line {self.line}"


@dataclass(frozen=True, slots=True)
class CutFile:
    """A recording that ends in mid-line, since its writer died. All rows before the cut were read."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Convergence:
    """Over all changes: how many were followed by every other member, in how many milliseconds, and how many never."""

    count: int
    median_ms: int | None
    p99_ms: int | None
    max_ms: int | None
    unconverged: int


@dataclass(frozen=True, slots=True)
class ChangeTime:
    """One change on its owner and the last member to follow; `ms` is None when it never did."""

    run: str
    client: str
    event: EventReference
    node: str
    ms: int | None


@dataclass(frozen=True, slots=True)
class ClaimedInterval:
    """A time in which `claimers` members claimed a client, not one; of several two are named."""

    run: str
    client: str
    from_ms: int
    until_ms: int
    claimers: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Responsibility:
    """For how long none, one and several members claimed a client, added up over all clients; the longest times in
    which it was not one come first. `undecided`: clients of which not enough was observed. `verdict` and `violations`:
    of INV-OWNER, which judges the same claims."""

    clients: int
    undecided: int
    none_ms: int
    one_ms: int
    several_ms: int
    intervals: tuple[ClaimedInterval, ...]
    intervals_left_out: int
    verdict: Judgement = "not-judged"
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """The first row of a client (None: of the rows about no client) that no transition of the model is.

    `guards`: each transition that it could have been, and its false guard.
    """

    run: str
    client: str | None
    event: EventReference
    guards: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Replay:
    """All rows against the model: how many clients were rejected, and how many rows could not be judged."""

    rejected: int
    undecided: int
    rejections: tuple[Rejected, ...]
    rejections_left_out: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`reasons` says why the verdict is inconclusive, or why it would be were there no violation."""

    verdict: Verdict
    reasons: tuple[str, ...]
    runs: int
    runs_with_checkpoint: int
    events: int
    quarantined: int
    quarantine: tuple[InvalidRows, ...]
    cuts: tuple[CutFile, ...]
    missing: int  # rows missing by gaps in the sequence numbers, beyond the quarantined ones
    invariants: tuple[InvariantResult, ...]
    violations: tuple[Violation, ...]  # known ones too
    violations_left_out: int
    doubled: int  # rows whose node and sequence number another one has too
    convergence: Convergence | None  # when asked for
    changes: tuple[ChangeTime, ...]  # the slowest first
    changes_left_out: int
    seconds: float
    replay: Replay | None = None  # when asked for
    responsibility: Responsibility | None = None  # when asked for
    began: Mapping[str, str] = field(default_factory=dict)  # of runs named above that know it: when `at_ms` was 0

    def without_times(self) -> Self:
        """The fields that are the same in every check of these traces, by whichever engine."""
        return replace(self, seconds=0.0, invariants=tuple(replace(each, seconds=0.0) for each in self.invariants))

    def to_json(self) -> dict[str, Any]:
        """The document of `distrocheck check --json` (docs/schemas)."""
        return {"schema": "distrocheck/check/1", **asdict(self)}


REFERENCE = ("node", "seq", "at_ms", "kind", "message")
"""The columns of an `EventReference`."""


def violation(row: Mapping[str, Any]) -> Violation:
    """A row of `violations.VIOLATION_COLUMNS`."""
    same = ("invariant", "run", "profile", "client", "node", "message", "known", "expected", "after")
    return Violation(
        **{name: row[name] for name in same},
        first_event=event_reference(row, "first_"),
        last_event=event_reference(row, "last_"),
        evidence=json.loads(row["evidence"]),
    )


def event_reference(row: Mapping[str, Any], prefix: str = "") -> EventReference:
    return EventReference(*(row[f"{prefix}{name}"] for name in REFERENCE))
