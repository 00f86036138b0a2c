"""A violation that an invariant found, and the rows of its client on all nodes: what the symptoms of defects look at.

Made only of clients with a violation, of a release that has known defects. What travels between processes is in
`violations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from distro_traces.event import Kind, Outcome

OWN_CONNECTION = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED)
SYNCS = ("ADD", "CHANGE", "DELETE")
CALLS = (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED, Kind.REPLY_SENT, Kind.REPLY_RECEIVED)

NEVER = 2**62
"""Later than every sequence number and every time."""

LEASE = "lease"
"""What the row of a copy says that was removed because nothing renewed it."""

REPEATED_WITHIN_MS = 7_000
"""A sync that failed is repeated after 5 s up to 2.1.2, 3 s since (docs/protocol #sync-retry), a tick of the engine,
and what a thread may be late."""

ASKS_AGAIN_MS = 62_000
"""A load that failed is repeated after 30 s, up to 2.0 after a minute; a request may take 30 s; with some margin."""

LEASE_MS = 180_000
"""Of a copy that nothing renews."""

LEASE_CHECK_PERIOD_MS = 5_000
LEASE_CHECK_MS = LEASE_CHECK_PERIOD_MS + 1_000
"""After this time a check has ended a lease: a busy machine is late."""


class Row(NamedTuple):
    """A row of the trace; of a client, or of a node (its starts, stops and checkpoints).

    The last three are those of `timeline`: what the node held of the client before, and whether by the client's own
    connection.
    """

    node: str
    seq: int
    at_ms: int
    kind: str
    peer: str | None = None
    message: str | None = None
    operation: str | None = None
    owned: bool | None = None
    revision: int | None = None
    digest: str | None = None
    outcome: str | None = None
    detail: str | None = None
    held: str | None = None
    held_revision: int | None = None
    is_native: bool = False

    def __str__(self) -> str:
        """`client_changed of a at 1200 ms (seq 7, message m3)`."""
        message = "" if self.message is None else f", message {self.message}"
        return f"{self.kind} of {self.node} at {self.at_ms} ms (seq {self.seq}{message})"


FIELDS = Row._fields[:-3]
"""Those that the trace itself has."""


@dataclass(frozen=True)
class ClientHistory:
    """`rows` sorted by node and sequence number; likewise, by node: `resets`, `lists` (changes of member lists), calls
    for a snapshot, `loads`, and `faults` of its links. `deleters`: the nodes that sent any DELETE, in this run or in
    one of the same target and profile.
    """

    run: str
    profile: str
    client: str
    rows: Sequence[Row] = ()
    resets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    lists: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    loads: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    faults: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    deleters: frozenset[str] = frozenset()

    @property
    def has_connection(self) -> bool:
        """Whether it is a client of a connection; else one of the HTTP API."""
        return "#" not in self.client

    @cached_property
    def cache(self) -> dict[tuple[object, ...], Any]:
        """What `symptoms.queries.cached_per_history` keeps."""
        return {}

    @cached_property
    def by_node(self) -> dict[str, list[Row]]:
        return {node: list(rows) for node, rows in groupby(self.rows, key=lambda row: row.node)}


def succeeded(row: Row) -> bool:
    return (row.kind, row.outcome) == (Kind.REPLY_RECEIVED, Outcome.SUCCESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A violation with all rows of its client: what a symptom of a known defect looks at. `says`, `expects`: the
    violation, and what should have happened instead, in a sentence each; `after`: the message that preceded it."""

    history: ClientHistory
    node: str
    first: Row
    last: Row
    says: str
    expects: str
    after: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)

    @property
    def expected(self) -> object:
        return self.evidence.get("expected")

    @property
    def actual(self) -> object:
        return self.evidence.get("actual")

    @property
    def message(self) -> str | None:
        """The one after which it happened: of the last row, else the last that reached the node."""
        return self.last.message or self.after
