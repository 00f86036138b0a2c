"""Rows of a trace: of a node, apart from clients, and of a client with a violation, on all nodes.

Those of nodes are few, and known to each task (`cluster`). Those of clients are made only for violations, of a release
that has known defects: they are what its symptoms look at.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from distro_traces.event import RESET_KINDS, Kind, Outcome

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


AT_MS = attrgetter("at_ms")
BREAKS = ("cut", "black hole", "held", "paused")
MENDS = {"healed": ("cut", "black hole"), "released": ("held",), "resumed": ("paused",)}
LINK_FAULTS = (*BREAKS, *MENDS)
"""Faults that change whether a link, or the node itself, works; the others affect single calls."""


class Fault(NamedTuple):
    """From `at_ms` on the link to the peer is broken or not; `left`: the peer has left the node's list; `back`: it is
    listed again."""

    at_ms: int
    is_broken: bool
    left: bool = False
    back: bool = False


@dataclass(frozen=True)
class Node:
    """`rows`: those about no client (`cluster.IS_MARK`), in order; so are all parts of them."""

    rows: Sequence[Row] = ()

    @cached_property
    def resets(self) -> Sequence[Row]:
        """Starts and stops."""
        return [row for row in self.rows if row.kind in RESET_KINDS]

    @cached_property
    def lists(self) -> Sequence[Row]:
        """Where it has a list of members."""
        return [row for row in self.rows if row.kind in (Kind.NODE_STARTED, Kind.MEMBERS_CHANGED) and row.detail]

    @cached_property
    def loads(self) -> Sequence[Row]:
        """Calls for a snapshot."""
        return [row for row in self.rows if row.kind in CALLS]

    @cached_property
    def faults(self) -> Sequence[Row]:
        return [row for row in self.rows if row.kind == Kind.LINK_FAULT]

    def is_up(self, at_ms: int) -> bool:
        """A node of which no start was recorded is up until its first stop."""
        before = [row.kind for row in self.resets if row.at_ms <= at_ms]
        return (
            before[-1] == Kind.NODE_STARTED if before else not self.resets or self.resets[0].kind != Kind.NODE_STARTED
        )

    def listed(self, at_ms: int) -> Sequence[str]:
        """Its last list until then; empty where none was recorded."""
        count = bisect_right(self.lists, at_ms, key=AT_MS)
        return str(self.lists[count - 1].detail).split(",") if count else []

    def lacked(self, peer: str, from_ms: int, until_ms: int) -> bool:
        """Whether its list lacked the peer at some time between these."""
        first = max(bisect_left(self.lists, from_ms, key=AT_MS) - 1, 0)
        then = self.lists[first : bisect_right(self.lists, until_ms, key=AT_MS)]
        return any(peer not in str(row.detail).split(",") for row in then)

    def is_cut_off(self, peer: str, at_ms: int) -> bool:
        """Whether the last fault of its link to the peer until then keeps requests from that."""
        before = [row for row in self.faults if row.peer == peer and row.at_ms <= at_ms]
        return bool(before) and before[-1].detail in BREAKS


def faults_of(g: int, marks: Sequence[Row], members: Mapping[str, int]) -> Iterator[tuple[int, Fault]]:
    """Faults of links, of the node itself, and members that have left its list or are back. A link with one healed
    fault may still have another."""
    gone: set[str] = set()
    broken: defaultdict[int, set[str]] = defaultdict(set)
    for row in marks:
        if row.kind == Kind.LINK_FAULT:
            peer, fault = members.get(row.peer, -1) if row.peer else g, row.detail or ""
            broken[peer] = broken[peer] | {fault} if fault in BREAKS else broken[peer].difference(MENDS[fault])
            yield peer, Fault(row.at_ms, bool(broken[peer]))
        elif row.kind == Kind.MEMBERS_CHANGED:
            listed = set((row.detail or "").split(","))
            for name, peer in members.items():
                if (name not in listed) != (name in gone):
                    left = name not in listed
                    broken[peer] = broken[peer] | {"left"} if left else broken[peer] - {"left"}
                    yield peer, Fault(row.at_ms, bool(broken[peer]), left, not left)
            gone = set(members) - listed


@dataclass(frozen=True)
class ClientHistory:
    """`rows` sorted by node and sequence number; `nodes`: of the run, by name; `deleters`: the nodes that sent any
    DELETE, in this run or in one of the same target and profile.
    """

    run: str
    profile: str
    client: str
    rows: Sequence[Row] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    deleters: frozenset[str] = frozenset()

    def node(self, name: str | None) -> Node:
        return self.nodes.get(name or "", Node())

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
