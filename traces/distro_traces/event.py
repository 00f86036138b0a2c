"""The definition of an event, from which the JSON, the Parquet columns and the Spark schema derive.

A trace answers *which node diverged, from when, after which message*, so a row has its place (`node`), its order there
(`seq`), its message (`message`, shared by the four rows of one call) and the state of the node afterwards (`client`,
`owned`, `revision`, `digest`). Order is causal: `seq` within a node, message ids across nodes; `at_ms` is only
information. The content is recorded as a digest (`content.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

SCHEMA_NAME = "distrocheck-trace"
SCHEMA_VERSION = 2


class Kind(StrEnum):
    """The kind of event. The comments list the fields of the row besides run, node, seq, at_ms and kind."""

    RUN_STARTED = "run_started"  # detail: profile of the target; one row, on the first node
    NODE_STARTED = "node_started"  # detail: the member list, comma separated
    NODE_STOPPED = "node_stopped"  # detail: reason; all that the node held in memory is gone
    MEMBERS_CHANGED = "members_changed"  # detail: the members that the node lists as UP, comma separated
    LINK_FAULT = "link_fault"  # peer; detail: cut, healed, held, released, drop, swallow (link node -> peer)
    # or client; detail: silent, answers (the connection of a client to the node); or neither; detail: paused, resumed

    CLIENT_CONNECTED = "client_connected"  # client, owned=true, revision, digest (of nothing published)
    CLIENT_CHANGED = (
        "client_changed"  # client, owned=true, revision, digest: the content after a change by its own connection
    )
    # (and detail: batch, when some of that is published as a batch; healthy, unhealthy or expired, when beats did it)
    CLIENT_DISCONNECTED = "client_disconnected"  # client, owned=true; the owner no longer has it
    REPLICA_APPLIED = "replica_applied"  # client, owned, revision, digest, message: the node now holds this
    REPLICA_REMOVED = "replica_removed"  # client, message or detail (lease): the node no longer has it
    OBSERVED = "observed"  # client, owned when known, revision, digest: what a probe read,
    # or a node said when it refused a verify; digest null: not there

    REQUEST_SENT = "request_sent"  # peer, message, operation, client, revision, digest when it carries content
    # (and detail: batch, when some of that is published as a batch)
    REQUEST_RECEIVED = "request_received"  # the same, at the receiver
    REPLY_SENT = "reply_sent"  # peer, message, operation, client, outcome
    REPLY_RECEIVED = "reply_received"  # the same, at the caller
    # (and detail: batch over single, when the handling of a snapshot raised there because of one)

    CHECKPOINT = "checkpoint"  # detail: its number; one row on each live node: faults are healed, all should agree


STATE_KINDS = frozenset(
    {
        Kind.CLIENT_CONNECTED,
        Kind.CLIENT_CHANGED,
        Kind.CLIENT_DISCONNECTED,
        Kind.REPLICA_APPLIED,
        Kind.REPLICA_REMOVED,
        Kind.OBSERVED,
    }
)
"""After such a row the node holds `digest` for `client`, or nothing when `digest` is null."""

GONE_KINDS = (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED)
"""After such a row the node does not hold `client`."""

HELD_KINDS = tuple(kind for kind in Kind if kind in STATE_KINDS and kind not in GONE_KINDS)

RESET_KINDS = (Kind.NODE_STARTED, Kind.NODE_STOPPED)
"""After such a row the node holds nothing."""


EXPIRED, HEALTHY, UNHEALTHY = "expired", "healthy", "unhealthy"
"""With what `detail` ends where an owner itself dropped an instance, since its beats stayed out, or judged its health
by them."""

BATCH = "batch"
"""What `detail` says of a request or a change in whose content a service has a batch; of a change at a server that
reports nothing itself, of one by a batch. Older recordings do not."""

BATCH_OVER_SINGLE = "batch over single"
"""What `detail` says of the answer with a snapshot whose handling raised at a batch for a service under which the node
has a single instance of that client (B19). Simulations record it."""


class Outcome(StrEnum):
    """How a call ended, as its sender reads it (docs/protocol #sync-result)."""

    SUCCESS = "success"  # resultCode 200
    FAIL = "fail"  # a typed response with another resultCode
    ERROR = "error"  # ErrorResponse, or a body that cannot be read
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row. `node` and `peer` are member addresses or the short names of a scenario, the same within a run."""

    run: str
    node: str
    seq: int  # from 1, without gaps, per (run, node)
    at_ms: int  # virtual or wall clock, since the start of the run
    kind: Kind
    peer: str | None = None
    message: str | None = None
    operation: str | None = None  # CHANGE, DELETE, VERIFY, SNAPSHOT, QUERY
    client: str | None = None
    owned: bool | None = None  # native there (true) or a synced copy (false)
    revision: int | None = None
    digest: str | None = None
    outcome: Outcome | None = None
    detail: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row without its empty fields, in the order of the definition."""
        return {name: value for name in COLUMNS if (value := getattr(self, name)) is not None}


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Event))
REQUIRED_COLUMNS: tuple[str, ...] = ("run", "node", "seq", "at_ms", "kind")
INTEGER_COLUMNS = frozenset({"seq", "at_ms", "revision"})
BOOLEAN_COLUMNS = frozenset({"owned"})
