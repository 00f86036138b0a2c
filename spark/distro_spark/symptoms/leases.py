"""Copies that end too soon, or too late.

| bug | what has to be seen |
|---|---|
| B03 | whoever played the client says that it fell silent |
| B17 | no verify had renewed the copy that expired, but a CHANGE had less than a lease ago |
| B17 | or that happened less than a round before the checkpoint |
| B31 | the copy was removed half a minute after its renewal, and one check |
"""

from __future__ import annotations

from distro_spark.history import LEASE, LEASE_MS, ClientHistory, Violation
from distro_spark.symptoms.look import CHANGES, CLOCK_SLACK_MS, life_at
from distro_traces.event import Kind, Outcome

_ROUND_MS = 6_500
"""Of verification and the sync that follows a failure."""


def not_renewed_by_sync(_: ClientHistory, told: Violation) -> bool:
    """B17. What the invariant's own signature says."""
    return told.evidence["signature"] == "sync does not renew"


def about_to_come_back(story: ClientHistory, told: Violation) -> bool:
    """B17. As `not_renewed_by_sync`, at a checkpoint before the next round brings the copy back."""
    gone = told.first
    if gone.detail != LEASE or told.last.at_ms - gone.at_ms > _ROUND_MS:
        return False
    lasted = [row for row in story.by_node[gone.node] if 0 < gone.at_ms - row.at_ms < LEASE_MS]
    confirmed = [row.operation for row in lasted if (row.kind, row.outcome) == (Kind.REPLY_SENT, Outcome.SUCCESS)]
    return "VERIFY" not in confirmed and any(operation in CHANGES for operation in confirmed)


def half_a_minute(story: ClientHistory, told: Violation) -> bool:
    """B31. The copy was removed when 30 s and up to one check of 5 s had passed since a verify renewed it, or since it
    was created: in these releases a CHANGE renews nothing."""
    life = life_at(story, told.node, told.last.seq - 1).until(told.last.seq - 1)
    created = [row.at_ms for row in life if row.kind == Kind.REPLICA_APPLIED]
    confirmed = [
        row.at_ms
        for row in story.by_node[told.node]
        if row.seq < told.last.seq
        and row.kind == Kind.REPLY_SENT
        and (row.operation, row.outcome) == ("VERIFY", Outcome.SUCCESS)
    ]
    lasted_ms = told.last.at_ms - max((*created[:1], *confirmed), default=told.first.at_ms)
    return told.evidence["signature"] == "short lease" and 30_000 <= lasted_ms <= 35_000 + CLOCK_SLACK_MS


def fell_silent(_: ClientHistory, told: Violation) -> bool:
    """B03. What the invariant itself goes by: no connection is ever asked for a sign of life."""
    return told.first.kind == Kind.LINK_FAULT
