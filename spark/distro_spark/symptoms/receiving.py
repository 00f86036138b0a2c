"""B01, B02, B27, B33: what a node does with what it is sent and asked."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.release import Span
from distro_spark.history import ASKS_AGAIN_MS, LEASE, LEASE_CHECK_MS, LEASE_MS, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    brought_by_change,
    cached_per_history,
    change_before,
    changes_of,
    confirms,
    count_before,
    due_after_ms,
    holds_something,
    load_of,
    of_its_client,
    reaches_a_member,
    states_of,
)
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import RESET_KINDS, STATE_KINDS, Kind, Outcome


def _confirmed_since(found: Finding, at_ms: int) -> bool:
    """The last verify that the node answered before the violation came after that time, and was confirmed."""
    rows = found.history.by_node.get(found.node, ())
    answers = [row for row in rows if (row.kind, row.operation) == (Kind.REPLY_SENT, "VERIFY")]
    before = answers[: count_before(answers, found.last.seq)]
    return bool(before) and before[-1].at_ms >= at_ms and before[-1].outcome == Outcome.SUCCESS


# B01: something is applied to a client that is connected


def _was_brought(history: ClientHistory, row: Row) -> bool:
    """By a CHANGE or a snapshot."""
    return brought_by_change(history, row) or load_of(history, row) is not None


def _is_overwriting(row: Row) -> bool:
    is_other = row.digest != row.held or (row.revision is not None and row.revision != row.held_revision)
    return row.kind == Kind.REPLICA_APPLIED and row.is_native and is_other


@cached_per_history
def _overwritten(history: ClientHistory, node: str) -> Sequence[Row]:
    """Where a CHANGE or a snapshot replaced what the client's own connection to the node had published."""
    return [row for row in states_of(history, node) if _is_overwriting(row) and _was_brought(history, row)]


@symptom("B01", "INV-NATIVE")
def overwritten(found: Finding) -> Clauses:
    """A snapshot or CHANGE is applied to a client that is connected here."""
    is_applied = found.last.kind == Kind.REPLICA_APPLIED
    yield "a copy was applied to it", is_applied
    if is_applied:
        yield "a CHANGE or a snapshot brought that", _was_brought(found.history, found.last)


@symptom("B01", "INV-REV")
def reused_since_overwritten(found: Finding) -> Clauses:
    """A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a revision."""
    rows = (row for node in found.history.by_node for row in _overwritten(found.history, node))
    is_replaced = any(row.at_ms <= found.last.at_ms for row in rows)
    yield "a CHANGE or a snapshot had replaced the client at the node that holds its connection", is_replaced
    if is_replaced:
        yield (
            "that node held both contents under that revision by then, and one only since it was replaced",
            any(_is_between(found, node) for node in found.history.by_node),
        )


def _is_between(found: Finding, node: str) -> bool:
    by_then = [row for row in states_of(found.history, node) if row.at_ms <= found.last.at_ms]
    stamped = [row for row in by_then if row.revision == found.evidence["revision"]]
    first = [next((row.seq for row in stamped if row.digest == each), None) for each in (found.expected, found.actual)]
    if None in first:
        return False
    one, other = sorted(seq for seq in first if seq is not None)
    return any(one < row.seq <= other for row in _overwritten(found.history, node))


@symptom("B01", "INV-CONV", releases=Span(since="2.1.2"))
def confirmed_since_overwritten(found: Finding) -> Clauses:
    """A late snapshot or CHANGE is applied to a client that is connected here, under the revision that it has: a verify
    confirms the copy that misses it."""
    first = found.first
    differs = first.node == found.evidence["owner"] and first in _overwritten(found.history, first.node)
    yield "they differ since a CHANGE or a snapshot replaced the client at the node that holds its connection", differs
    if differs:
        yield "that left its revision as it was", first.revision == first.held_revision
    yield "a verify has confirmed the copy since", _confirmed_since(found, first.at_ms)
    yield from of_its_client(found)


# B02: a verify tests existence only


def _acknowledged(found: Finding, owner: str) -> tuple[Row, bool] | None:
    """The last CHANGE of the owner to the node before the violation, where it left or else where it arrived, and
    whether it was acknowledged: to the owner, or else by the node."""
    history, node = found.history, found.node
    sent = [row for row in history.by_node.get(owner, ()) if row.peer == node and row.at_ms < found.last.at_ms]
    received = [row for row in history.by_node.get(node, ()) if row.peer == owner and row.seq < found.last.seq]
    requests = (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED)
    for rows in (sent, received):
        changes = [row for row in rows if row.kind in requests and row.operation in CHANGES]
        if changes:
            ends = (row for row in (*sent, *received) if row.message == changes[-1].message and row.outcome is not None)
            return changes[-1], next(ends, changes[-1]).outcome == Outcome.SUCCESS
    return None


def _missed(found: Finding, owner: str, last: tuple[Row, bool] | None) -> bool:
    if last is not None and last[0].at_ms >= found.first.at_ms:
        change, is_acknowledged = last
        return is_acknowledged and change.digest not in (None, found.actual)
    # The owner changed the client, and its list lacked the node until that was due.
    changed = found.first
    is_own = changed.kind == Kind.CLIENT_CHANGED and changed.node == owner
    until_ms = changed.at_ms + due_after_ms(found.history)[0]
    return is_own and found.history.node(owner).lacked(found.node, changed.at_ms, until_ms)


@symptom("B02", "INV-CONV")
def confirmed_unread(found: Finding) -> Clauses:
    """A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever."""
    owner = str(found.evidence["owner"])
    last = _acknowledged(found, owner)
    # Whatever it does in the millisecond of the checkpoint. That its owner was another by then, and the old one let it
    # go when no verify renewed it, is no leaving.
    changes = changes_of(found.history, owner)
    earlier = [row for row in changes if row.at_ms < found.last.at_ms and row.detail != LEASE]
    is_there = bool(earlier) and (found.expected != "nothing" or holds_something(earlier[-1]))
    yield "the client has not left its owner", is_there
    yield (
        "its owner's last CHANGE to the node was acknowledged and not applied, or was due while that was no member",
        _missed(found, owner, last),
    )
    since_ms = found.first.at_ms if last is None else last[0].at_ms
    yield "a verify has confirmed the copy since", _confirmed_since(found, since_ms)
    yield from of_its_client(found)


@symptom("B02", "INV-CONV")
def confirmed_since_loaded(found: Finding) -> Clauses:
    """A snapshot brings the stale copy of another node; a verify, which tests existence only, confirms it."""
    came = found.first
    is_own = came.node == found.node and came.kind == Kind.REPLICA_APPLIED
    given = load_of(found.history, came) if is_own else None
    is_stale = came.digest == found.actual or (found.actual == "nothing" and came.digest == NOTHING_PUBLISHED)
    yield "they differ since a snapshot brought that content", given is not None and is_stale
    if given is not None:
        held = [row for row in states_of(found.history, given.peer or "") if row.at_ms <= given.at_ms]
        yield "the node that sent the snapshot held that content", bool(held) and held[-1].digest == came.digest
    yield "a verify has confirmed the copy since", _confirmed_since(found, came.at_ms)


# B27: a snapshot brings back what has left


@symptom("B27", "INV-CONV")
def came_back(found: Finding) -> Clauses:
    """A snapshot that comes late brings a client back that has left, until its lease ends."""
    history = found.history
    came = change_before(history, found.node, found.last.seq)
    given = None if came is None or came.kind != Kind.REPLICA_APPLIED else load_of(history, came)
    yield "the copy came with a snapshot", found.expected == "nothing" and given is not None
    if came is None or came.kind != Kind.REPLICA_APPLIED:
        return
    left = (row for row in history.rows if row.kind == Kind.CLIENT_DISCONNECTED)
    yield "its client had left its owner by then", any(row.at_ms <= came.at_ms for row in left)
    if given is not None:
        earlier = [row for row in history.by_node.get(given.peer or "", ()) if row.at_ms <= given.at_ms]
        held = [row for row in earlier if row.kind in STATE_KINDS]
        yield (
            "the node that sent the snapshot still held the client, and had confirmed no DELETE of it",
            bool(held) and holds_something(held[-1]) and not any(confirms(row, "DELETE") for row in earlier),
        )
    deletes = (row for row in history.by_node.get(found.node, ()) if confirms(row, "DELETE"))
    yield (
        "the node has confirmed no DELETE since the copy came",
        not any(came.seq < row.seq < found.last.seq for row in deletes),
    )
    yield from of_its_client(found)
    yield "its lease is not over", found.last.at_ms - came.at_ms <= LEASE_MS + LEASE_CHECK_MS


# B33: a snapshot before the own load


def _own_load(found: Finding) -> list[Row]:
    """What the node had asked for in its life, and how that ended, before the violation."""
    rows = [row for row in found.history.node(found.node).rows if row.seq < found.last.seq]
    begins = max((place for place, row in enumerate(rows) if row.kind in RESET_KINDS), default=0)
    return [row for row in rows[begins:] if row.kind in (Kind.REQUEST_SENT, Kind.REPLY_RECEIVED)]


def _reached_a_member(found: Finding, from_ms: int, until_ms: int) -> bool:
    history = found.history
    marks = (row for node in history.nodes.values() for row in node.rows)
    times = {from_ms, *(row.at_ms for row in marks if from_ms < row.at_ms <= until_ms)}
    return any(reaches_a_member(history, found.node, at_ms) for at_ms in times)


@symptom("B33", "INV-INIT")
def gave_a_snapshot(found: Finding) -> Clauses:
    """A node whose own load is due, or under way, gives a snapshot to a member that asks for one."""
    gave = found.last
    is_given = (gave.kind, gave.operation) == (Kind.REPLY_SENT, "SNAPSHOT")
    loads = found.history.node(found.node).loads
    asked = (row for row in loads if row.kind == Kind.REQUEST_RECEIVED and row.seq < gave.seq)
    was_asked = any((row.peer, row.message) == (gave.peer, gave.message) for row in asked)
    since_ms, due_ms = [found.first, *_own_load(found)][-1].at_ms, gave.at_ms - ASKS_AGAIN_MS
    is_under_way = is_given and (due_ms <= since_ms or not _reached_a_member(found, since_ms, due_ms))
    yield "the node gave a snapshot to a member that had asked it for one", not is_given or was_asked
    yield (
        "its own load was under way: due after its start, asked for, due again after what failed, or after a time in "
        "which it reached no member",
        is_under_way,
    )
