"""B01, B02, B27, B33: what a node does with what it is sent and asked."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.defects import Symptom
from distro_model.release import Span
from distro_spark.history import ASKS_AGAIN_MS, LEASE, LEASE_CHECK_MS, LEASE_MS, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    brought_by_change,
    cached_per_history,
    change_before,
    changes_of,
    clause,
    clause_about,
    confirms,
    count_before,
    due_after_ms,
    holds_something,
    lacked,
    load_of,
    reaches_a_member,
    states_of,
)
from distro_traces.event import RESET_KINDS, STATE_KINDS, Kind, Outcome


def _confirmed_since(found: Finding, at_ms: int) -> bool:
    """The last verify that the node answered before the violation came after that time, and was confirmed."""
    rows = found.history.by_node.get(found.node, ())
    answers = [row for row in rows if (row.kind, row.operation) == (Kind.REPLY_SENT, "VERIFY")]
    before = answers[: count_before(answers, found.last.seq)]
    return bool(before) and before[-1].at_ms >= at_ms and before[-1].outcome == Outcome.SUCCESS


# B01: something is applied to a client that is connected


def _was_brought(history: ClientHistory, row: Row) -> bool:
    return brought_by_change(history, row) or load_of(history, row) is not None


def _is_overwriting(row: Row) -> bool:
    is_other = row.digest != row.held or (row.revision is not None and row.revision != row.held_revision)
    return row.kind == Kind.REPLICA_APPLIED and row.is_native and is_other


@cached_per_history
def _overwritten(history: ClientHistory, node: str) -> Sequence[Row]:
    """Where a CHANGE or a snapshot replaced what the client's own connection to the node had published."""
    return [row for row in states_of(history, node) if _is_overwriting(row) and _was_brought(history, row)]


@clause("a copy was applied to it")
def a_copy_was_applied(found: Finding) -> bool:
    return found.last.kind == Kind.REPLICA_APPLIED


@clause("a CHANGE or a snapshot brought that")
def it_was_brought(found: Finding) -> bool:
    return found.last.kind != Kind.REPLICA_APPLIED or _was_brought(found.history, found.last)


@clause("a CHANGE or a snapshot had replaced the client at the node that holds its connection")
def was_overwritten(found: Finding) -> bool:
    nodes = found.history.by_node
    return any(row.at_ms <= found.last.at_ms for node in nodes for row in _overwritten(found.history, node))


@clause("that node held both contents under that revision by then, and one only since it was replaced")
def held_one_only_since(found: Finding) -> bool:
    if not was_overwritten.holds(found):
        return True
    return any(_is_between(found, node) for node in found.history.by_node)


def _is_between(found: Finding, node: str) -> bool:
    by_then = [row for row in states_of(found.history, node) if row.at_ms <= found.last.at_ms]
    stamped = [row for row in by_then if row.revision == found.evidence["revision"]]
    first = [next((row.seq for row in stamped if row.digest == each), None) for each in (found.expected, found.actual)]
    if None in first:
        return False
    one, other = sorted(seq for seq in first if seq is not None)
    return any(one < row.seq <= other for row in _overwritten(found.history, node))


@clause("they differ since a CHANGE or a snapshot replaced the client at the node that holds its connection")
def differ_since_it_was_overwritten(found: Finding) -> bool:
    first = found.first
    return first.node == found.evidence["owner"] and first in _overwritten(found.history, first.node)


@clause("that left its revision as it was")
def left_its_revision(found: Finding) -> bool:
    first = found.first
    return not differ_since_it_was_overwritten.holds(found) or first.revision == first.held_revision


@clause("a verify has confirmed the copy since")
def confirmed_since(found: Finding) -> bool:
    return _confirmed_since(found, found.first.at_ms)


# B02: a verify tests existence only


def _acknowledged(found: Finding) -> tuple[Row, bool] | None:
    """The last CHANGE of the owner to the node before the violation, where it left or else where it arrived, and
    whether it was acknowledged: to the owner, or else by the node."""
    history, owner, node = found.history, str(found.evidence["owner"]), found.node
    sent = [row for row in history.by_node.get(owner, ()) if row.peer == node and row.at_ms < found.last.at_ms]
    received = [row for row in history.by_node.get(node, ()) if row.peer == owner and row.seq < found.last.seq]
    requests = (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED)
    for rows in (sent, received):
        changes = [row for row in rows if row.kind in requests and row.operation in CHANGES]
        if changes:
            ends = (row for row in (*sent, *received) if row.message == changes[-1].message and row.outcome is not None)
            return changes[-1], next(ends, changes[-1]).outcome == Outcome.SUCCESS
    return None


@clause("the client has not left its owner")
def has_not_left(found: Finding) -> bool:
    """Whatever it does in the millisecond of the checkpoint. That its owner was another by then, and the old one let it
    go when no verify renewed it, is no leaving."""
    changes = changes_of(found.history, str(found.evidence["owner"]))
    earlier = [row for row in changes if row.at_ms < found.last.at_ms and row.detail != LEASE]
    return bool(earlier) and (found.expected != "nothing" or holds_something(earlier[-1]))


@clause("its owner's last CHANGE to the node was acknowledged and not applied, or was due while that was no member")
def missed_what_it_acknowledged(found: Finding) -> bool:
    last = _acknowledged(found)
    if last is None or last[0].at_ms < found.first.at_ms:
        return _was_for_no_member(found)
    change, is_acknowledged = last
    return is_acknowledged and change.digest not in (None, found.actual)


def _was_for_no_member(found: Finding) -> bool:
    """The owner changed the client, and its list lacked the node until that was due."""
    changed, owner = found.first, str(found.evidence["owner"])
    is_own = changed.kind == Kind.CLIENT_CHANGED and changed.node == owner
    until_ms = changed.at_ms + due_after_ms(found.history)[0]
    return is_own and lacked(found.history, owner, found.node, changed.at_ms, until_ms)


@clause("a verify has confirmed the copy since")
def confirmed_what_it_missed(found: Finding) -> bool:
    last = _acknowledged(found)
    return _confirmed_since(found, found.first.at_ms if last is None else last[0].at_ms)


# B27: a snapshot brings back what has left


def _came(found: Finding) -> Row | None:
    """The row with which the node came to hold what it holds, if that was applied."""
    state = change_before(found.history, found.node, found.last.seq)
    return state if state is not None and state.kind == Kind.REPLICA_APPLIED else None


def _given(found: Finding) -> Row | None:
    came = _came(found)
    return None if came is None else load_of(found.history, came)


@clause("the copy came with a snapshot")
def came_with_a_snapshot(found: Finding) -> bool:
    return found.expected == "nothing" and _given(found) is not None


@clause_about(_came, "its client had left its owner by then")
def had_left_by_then(found: Finding, came: Row) -> bool:
    return any(row.at_ms <= came.at_ms for row in found.history.rows if row.kind == Kind.CLIENT_DISCONNECTED)


@clause_about(_given, "the node that sent the snapshot still held the client, and had confirmed no DELETE of it")
def source_still_held_it(found: Finding, given: Row) -> bool:
    earlier = [row for row in found.history.by_node.get(given.peer or "", ()) if row.at_ms <= given.at_ms]
    held = [row for row in earlier if row.kind in STATE_KINDS]
    return bool(held) and holds_something(held[-1]) and not any(confirms(row, "DELETE") for row in earlier)


@clause_about(_came, "the node has confirmed no DELETE since the copy came")
def confirmed_no_delete_since(found: Finding, came: Row) -> bool:
    rows = found.history.by_node.get(found.node, ())
    return not any(confirms(row, "DELETE") and came.seq < row.seq < found.last.seq for row in rows)


@clause_about(_came, "its lease is not over")
def is_leased(found: Finding, came: Row) -> bool:
    return found.last.at_ms - came.at_ms <= LEASE_MS + LEASE_CHECK_MS


# B33: a snapshot before the own load


def _own_load(found: Finding) -> list[Row]:
    """What the node had asked for in its life, and how that ended, before the violation."""
    marks = [*found.history.resets.get(found.node, ()), *found.history.loads.get(found.node, ())]
    rows = sorted((row for row in marks if row.seq < found.last.seq), key=lambda row: row.seq)
    begins = max((place for place, row in enumerate(rows) if row.kind in RESET_KINDS), default=0)
    return [row for row in rows[begins:] if row.kind in (Kind.REQUEST_SENT, Kind.REPLY_RECEIVED)]


@clause("the node gave a snapshot to a member that had asked it for one")
def was_asked_for_it(found: Finding) -> bool:
    gave = found.last
    loads = found.history.loads.get(found.node, ())
    asked = (row for row in loads if row.kind == Kind.REQUEST_RECEIVED and row.seq < gave.seq)
    is_given = (gave.kind, gave.operation) == (Kind.REPLY_SENT, "SNAPSHOT")
    return not is_given or any((row.peer, row.message) == (gave.peer, gave.message) for row in asked)


@clause(
    "its own load was under way: due after its start, asked for, due again after what failed, or after a time in which "
    "it reached no member"
)
def its_load_was_under_way(found: Finding) -> bool:
    since_ms, due_ms = [found.first, *_own_load(found)][-1].at_ms, found.last.at_ms - ASKS_AGAIN_MS
    is_given = (found.last.kind, found.last.operation) == (Kind.REPLY_SENT, "SNAPSHOT")
    return is_given and (due_ms <= since_ms or not _reached_a_member(found, since_ms, due_ms))


def _reached_a_member(found: Finding, from_ms: int, until_ms: int) -> bool:
    history = found.history
    marks = (
        row for by_node in (history.resets, history.lists, history.faults) for rows in by_node.values() for row in rows
    )
    times = {from_ms, *(row.at_ms for row in marks if from_ms < row.at_ms <= until_ms)}
    return any(reaches_a_member(history, found.node, at_ms) for at_ms in times)


OVERWRITTEN = Symptom(
    bug="B01",
    about=("INV-NATIVE",),
    sentence="A snapshot or CHANGE is applied to a client that is connected here.",
    clauses=(a_copy_was_applied, it_was_brought),
)
REUSED_SINCE_OVERWRITTEN = Symptom(
    bug="B01",
    about=("INV-REV",),
    sentence="A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a "
    "revision.",
    clauses=(was_overwritten, held_one_only_since),
)
CONFIRMED_SINCE_OVERWRITTEN = Symptom(
    bug="B01",
    about=("INV-CONV",),
    sentence="A late snapshot or CHANGE is applied to a client that is connected here, under the revision that it has: "
    "a verify confirms the copy that misses it.",
    clauses=(differ_since_it_was_overwritten, left_its_revision, confirmed_since),
    releases=Span(since="2.1.2"),
)
CONFIRMED_UNREAD = Symptom(
    bug="B02",
    about=("INV-CONV",),
    sentence="A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever.",
    clauses=(has_not_left, missed_what_it_acknowledged, confirmed_what_it_missed),
)
CAME_BACK = Symptom(
    bug="B27",
    about=("INV-CONV",),
    sentence="A snapshot that comes late brings a client back that has left, until its lease ends.",
    clauses=(came_with_a_snapshot, had_left_by_then, source_still_held_it, confirmed_no_delete_since, is_leased),
)
GAVE_A_SNAPSHOT = Symptom(
    bug="B33",
    about=("INV-INIT",),
    sentence="A node whose own load is due, or under way, gives a snapshot to a member that asks for one.",
    clauses=(was_asked_for_it, its_load_was_under_way),
)
SYMPTOMS = (
    OVERWRITTEN,
    REUSED_SINCE_OVERWRITTEN,
    CONFIRMED_SINCE_OVERWRITTEN,
    CONFIRMED_UNREAD,
    CAME_BACK,
    GAVE_A_SNAPSHOT,
)
