"""B24, D7: what an owner never sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from distro_spark.cluster import hash_owner_in, retry_delay_ms, sync_delay_ms
from distro_spark.history import MENDS, OWN_CONNECTION, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    CLOCK_SLACK_MS,
    TICK_MS,
    due_after_ms,
    of_its_client,
)
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.event import Kind, Outcome

_REPORTED_MS = 5_000
"""Each member is reported to within this time (docs/protocol #member-reported)."""

_FAILURES_MAX = 5
"""So many failures without a request are followed, each of which may come a tick later."""


def _failed(row: Row) -> bool:
    return row.kind == Kind.REPLY_RECEIVED and row.outcome != Outcome.SUCCESS


def _is_broken(found: Finding, owner: str, from_ms: int, until_ms: int) -> bool:
    """The link from the owner to the node, all that time. What is due then may fail without a request, as the owner
    believes the node to be down, and is due again later."""
    is_mended = any(from_ms < row.at_ms <= until_ms for row in _mends(found, owner))
    return found.history.node(owner).is_cut_off(found.node, from_ms) and not is_mended


def _mends(found: Finding, owner: str) -> Iterator[Row]:
    """Of the link from the owner to the node."""
    faults = found.history.node(owner).faults
    return (row for row in faults if row.peer == found.node and row.detail in MENDS)


def _was_due(found: Finding, owner: str, rows: Sequence[Row], left: Row) -> bool:
    """Whether a CHANGE to the node was due when the client left. If the owner believes the node to be down, it fails
    without a request, and no row shows it. When it was due follows from the last CHANGE that failed with a row, or the
    first change since the node applied one, and from the changes after that (docs/protocol #sync-merge)."""
    sync_ms, retry_ms = sync_delay_ms(found.history.profile), retry_delay_ms(found.history.profile)
    before = [row for row in rows if row.seq < left.seq]
    calls = [row for row in before if row.peer == found.node and row.operation in CHANGES]
    called_seq = calls[-1].seq if calls else 0
    there = (row.at_ms for row in found.history.by_node.get(found.node, ()) if row.kind == Kind.REPLICA_APPLIED)
    applied_ms = max((at_ms for at_ms in there if at_ms <= left.at_ms), default=0)
    changed = (row for row in before if row.kind == Kind.CLIENT_CHANGED)
    changes = [row for row in changed if row.seq > called_seq and row.at_ms > applied_ms]
    if calls and _failed(calls[-1]):
        possible = {_Queued(calls[-1].at_ms, calls[-1].at_ms + retry_ms)}
    elif changes:
        possible = {_Queued(changes[0].at_ms, changes[0].at_ms + sync_ms)}
    else:
        return False
    for row in changes:
        possible = {
            each._replace(due_ms=max(row.at_ms, each.since_ms + sync_ms))
            for one in possible
            for each in one.until(row.at_ms, retry_ms)
        }
    return any(
        each.due_ms <= left.at_ms + TICK_MS
        and all(_may_be_down(found, owner, at_ms) for at_ms in (*each.failed_ms, left.at_ms))
        for one in possible
        for each in one.until(left.at_ms, retry_ms)
    )


class _Queued(NamedTuple):
    """A CHANGE that is queued since then, and due then; and when it failed before, without a request."""

    since_ms: int
    due_ms: int
    failed_ms: tuple[int, ...] = ()

    def until(self, at_ms: int, retry_ms: int) -> Iterator[_Queued]:
        """What it may be at that time: the engine executes it within a tick, which delays all that follows. After too
        many failures the time is uncertain, and there is nothing."""
        if at_ms - self.due_ms <= TICK_MS * (len(self.failed_ms) + 1):
            yield self
        if self.due_ms < at_ms and len(self.failed_ms) < _FAILURES_MAX:
            failed_ms = (*self.failed_ms, self.due_ms)
            yield from _Queued(self.due_ms, self.due_ms + retry_ms, failed_ms).until(at_ms, retry_ms)


def _may_be_down(found: Finding, owner: str, at_ms: int) -> bool:
    """The owner may believe the node to be down: the link is broken, or no report has come over it since it was."""
    is_just_mended = any(0 <= at_ms - row.at_ms <= _REPORTED_MS for row in _mends(found, owner))
    return is_just_mended or found.history.node(owner).is_cut_off(found.node, at_ms)


@symptom("B24", "INV-CONV", "INV-DELETE")
def swallowed(found: Finding) -> Clauses:
    """The retry of a CHANGE that fails when the client has left, or as it leaves, replaces the queued DELETE; no DELETE
    is sent."""
    owner = str(found.evidence["owner"])
    rows = found.history.by_node.get(owner, ())
    ends = (row for row in reversed(rows) if row.kind == Kind.CLIENT_DISCONNECTED and row.at_ms <= found.last.at_ms)
    left = next(ends, None)
    yield (
        "the client has left its owner, which holds nothing of it",
        left is not None and found.evidence.get("expected", "nothing") == "nothing",
    )
    yield "the owner sends DELETEs", owner in found.history.deleters
    yield from of_its_client(found)
    if left is None:
        return
    calls = [row for row in rows if row.peer == found.node and row.seq > left.seq]
    deletes = [row for row in calls if row.operation == "DELETE"]
    is_open = not deletes or _failed(deletes[-1])
    yield "it has sent the node no DELETE since, or the last one failed", is_open
    if not is_open:
        return
    queued = deletes[-1] if deletes else left
    due_ms = queued.at_ms + due_after_ms(found.history)[bool(deletes)] + CLOCK_SLACK_MS
    failed = [row for row in calls if row.operation in CHANGES and _failed(row) and row.seq > queued.seq]
    yield (
        "a CHANGE to the node failed since the DELETE was queued, and before it was due or the link was mended, "
        "or was due when the client left and failed without a request",
        any(row.at_ms <= due_ms or _is_broken(found, owner, due_ms, row.at_ms) for row in failed)
        or (queued is left and _was_due(found, owner, rows, left)),
    )


@symptom("D7", "INV-CONV")
def not_passed_on(found: Finding) -> Clauses:
    """A request by version 2 of the HTTP API stays at the receiving node."""
    history, changed = found.history, found.first
    listed = history.node(changed.node).listed(changed.at_ms)
    owner = hash_owner_in(listed, history.client) if listed else None
    sent = (row for row in history.by_node.get(changed.node, ()) if row.kind == Kind.REQUEST_SENT)
    yield "it is a client of the HTTP API", not history.has_connection
    yield "it changed at a node, by a request to that", changed.kind in OWN_CONNECTION
    yield "the hash over the members in the list of that node names another one", owner not in (None, changed.node)
    yield "that node has sent nothing about it since", not any(row.seq > changed.seq for row in sent)
    yield from of_its_client(found)
