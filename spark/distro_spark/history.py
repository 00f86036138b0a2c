"""The rows of one client on all nodes, for whoever has to tell a known defect from a new one.

Made only of clients with a violation, of a release that has known defects. `Violation` is what an invariant found; what
travels between processes is in `violations.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from distro_traces.event import STATE_KINDS, Kind, Outcome

GONE = (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED)
OWN_CONNECTION = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED)
RESETS = (Kind.NODE_STARTED, Kind.NODE_STOPPED)
SYNCS = ("ADD", "CHANGE", "DELETE")
CALLS = (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED, Kind.REPLY_SENT, Kind.REPLY_RECEIVED)

END = 2**62
"""Later than every sequence number and every time."""

LEASE = "lease"
"""What the row of a copy says that went since nobody renewed it."""

REPEATED_WITHIN_MS = 7_000
"""What failed: 5 s up to 2.1.2, 3 s since (docs/protocol #sync-retry), a tick of the engine, and what a thread may be
late."""

LEASE_MS = 180_000
"""Of such a copy."""

LEASE_CHECK_MS = 6_000
"""The cleaner goes round every 5 s, and a busy machine is late."""

_ENDS = {"healed": "cut", "released": "held"}
"""Faults by which reports fail."""


class Row(NamedTuple):
    """A row of the trace; of a client, or of a node (its starts, stops and checkpoints)."""

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

    def __str__(self) -> str:
        """`client_changed of a at 1200 ms (seq 7, message m3)`."""
        message = "" if self.message is None else f", message {self.message}"
        return f"{self.kind} of {self.node} at {self.at_ms} ms (seq {self.seq}{message})"


@dataclass(frozen=True)
class ClientHistory:
    """`rows` sorted by node and sequence number; likewise, by node: `resets`, `checkpoints`, `faults` of links with
    changes of member lists, and calls for a snapshot, `loads`.

    `deleters`: the nodes that sent any DELETE, in this run or in one of the same target and profile; `blind`: those of
    which INV-CONV is not judged.
    """

    run: str
    profile: str
    client: str
    rows: Sequence[Row]
    resets: Mapping[str, Sequence[Row]]
    checkpoints: Mapping[str, Sequence[Row]]
    deleters: frozenset[str] = frozenset()
    faults: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    loads: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    blind: frozenset[str] = frozenset()

    @property
    def has_connection(self) -> bool:
        """Whether it is a client of a connection; else one of the HTTP API."""
        return "#" not in self.client

    @cached_property
    def memory(self) -> dict[tuple[object, ...], Any]:
        """What `symptoms.look.remembered` keeps."""
        return {}

    @cached_property
    def by_node(self) -> dict[str, list[Row]]:
        return {node: list(rows) for node, rows in groupby(self.rows, key=lambda row: row.node)}

    def at(self, node: str, seq: int) -> Row:
        rows = self.by_node[node]
        return rows[bisect_left(rows, seq, key=lambda row: row.seq)]

    def cuts(self, node: str, peer: str) -> list[tuple[int, int]]:
        """When the link from the one to the other was cut or held, from and until, in ms; it may be both at a time."""
        found: list[tuple[int, int]] = []
        lasting: dict[str, int] = {}  # what began -> its place in `found`
        for row in self.faults.get(node, ()):
            what = row.detail or ""
            if row.peer == peer and what in ("cut", "held") and what not in lasting:
                lasting[what] = len(found)
                found.append((row.at_ms, END))
            elif row.peer == peer and (begun := lasting.pop(_ENDS.get(what, ""), None)) is not None:
                found[begun] = (found[begun][0], row.at_ms)
        return found

    @cached_property
    def claims(self) -> list[list[Row]]:
        """For each node that ever acted as the owner its claims; the owner's first.

        A claim is that it holds the client as its own, or that it sends what only an owner sends. A node with the
        client's own connection comes before one without, then the one that claimed first.
        """
        by_node = {node: [row for row in rows if is_claim(row)] for node, rows in self.by_node.items()}
        found = [claims for claims in by_node.values() if claims]
        return sorted(
            found,
            key=lambda claims: (
                not any(row.kind in OWN_CONNECTION for row in claims),
                claims[0].at_ms,
                claims[0].node,
            ),
        )

    @property
    def owner(self) -> str | None:
        return self.claims[0][0].node if self.claims else None


def is_claim(row: Row) -> bool:
    if row.kind in STATE_KINDS:
        return bool(row.owned)
    return row.kind == Kind.REQUEST_SENT and row.operation in (*SYNCS, "VERIFY")


def succeeded(row: Row) -> bool:
    return (row.kind, row.outcome) == (Kind.REPLY_RECEIVED, Outcome.SUCCESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation, without what is the same for all of its client. `after`: the message after which it happened.

    `expected`: what should have happened instead, in a sentence.
    """

    node: str
    first: Row
    last: Row
    message: str
    expected: str
    after: str | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
