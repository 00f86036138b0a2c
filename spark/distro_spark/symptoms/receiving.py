"""What a node does with what it is sent and asked.

| bug | what has to be seen |
|---|---|
| B01 | before it, somebody's message was applied to the client on the node that holds its connection |
| B01 | or that left the revision as it was there, and a verify confirmed the copy that missed what was sent of it |
| B02 | the node acknowledged the content that it does not have, and confirmed its copy in a verify |
| B02 | or it was not in the owner's list when that was due, and confirmed the copy that it had from somebody else |
| B27 | the copy came with a snapshot after its client's connection had ended, less than a lease ago |
| B33 | the node answered another one's load before it was loaded |
"""

from __future__ import annotations

from itertools import dropwhile

from distro_spark.history import (
    END,
    GONE,
    LEASE,
    LEASE_CHECK_MS,
    LEASE_MS,
    OWN_CONNECTION,
    ClientHistory,
    Row,
    Violation,
    succeeded,
)
from distro_spark.symptoms.look import (
    CHANGES,
    came_with_a_load,
    count_before,
    due_after_ms,
    lacked,
    lives,
    remembered,
    states_of,
)
from distro_traces.event import STATE_KINDS, Kind, Outcome


def native_overwritten(story: ClientHistory, told: Violation) -> bool:
    """B01. A node holds the client's connection, and between two starts applied to it what was sent for a copy."""
    return _first_overwritten_ms(story) <= told.last.at_ms


@remembered
def _first_overwritten_ms(story: ClientHistory) -> int:
    found = [END]
    for node in story.by_node:
        for life in lives(story, node):
            connected = dropwhile(lambda row: row.kind not in OWN_CONNECTION, life.rows)
            found += [row.at_ms for row in connected if row.kind == Kind.REPLICA_APPLIED]
    return min(found)


def confirmed_as_before(story: ClientHistory, told: Violation) -> bool:
    """B01. What was sent for a copy replaced the content at the node that holds the client's connection, and left the
    revision that others have the content of before under: a verify confirms them, and nothing repairs who missed what
    was sent of it."""
    states = states_of(story, told.first.node)
    count = count_before(states, told.first.seq)
    return (
        told.first.kind == Kind.REPLICA_APPLIED
        and count > 0
        and states[count - 1].revision == told.first.revision
        and told.evidence["last_verify"] == Outcome.SUCCESS
        and native_overwritten(story, told)
    )


def confirmed_unread(story: ClientHistory, told: Violation) -> bool:
    """B02. What a client publishes that is still there is missing or old, and a verify confirmed the copy all the same:
    what carried it was acknowledged, or was for nobody who is no member. Who should hold something of it has not left,
    whatever it does in that millisecond; that its owner was another by then, and the old one let it go when nobody
    renewed it, is no leaving."""
    seen = told.evidence
    states = [row for row in states_of(story, str(seen["owner"])) if row.at_ms < told.last.at_ms]
    earlier = [row for row in states if row.detail != LEASE]
    return (
        bool(earlier)
        and (seen["expected"] != "nothing" or earlier[-1].kind not in GONE)
        and seen["last_verify"] == Outcome.SUCCESS
        and (
            (seen["last_operation"] in CHANGES and seen["last_outcome"] == Outcome.SUCCESS)
            or (seen["last_operation"] is None and _was_for_no_member(story, told))
        )
    )


def _was_for_no_member(story: ClientHistory, told: Violation) -> bool:
    """The owner changed the client, and its list lacked the node until that was due."""
    changed, owner = told.first, str(told.evidence["owner"])
    is_own = changed.kind == Kind.CLIENT_CHANGED and changed.node == owner
    return is_own and lacked(story, owner, told.node, changed.at_ms, changed.at_ms + due_after_ms(story)[0])


def came_back(history: ClientHistory, violation: Violation) -> bool:
    """B27. The node that gave the snapshot held the client still and had confirmed no DELETE of it, and the node that
    took it had, or never held the client: no DELETE is sent to it again, and the copy ends with its lease."""
    states = states_of(history, violation.node)
    count = count_before(states, violation.last.seq)
    if violation.evidence["expected"] != "nothing" or not count or states[count - 1].kind != Kind.REPLICA_APPLIED:
        return False
    came = states[count - 1]
    has_left = any(row.kind == Kind.CLIENT_DISCONNECTED and row.at_ms <= came.at_ms for row in history.rows)
    is_leased = violation.last.at_ms - came.at_ms <= LEASE_MS + LEASE_CHECK_MS
    return has_left and came_with_a_load(history, came) and is_leased and _giver_held_it(history, came)


def _giver_held_it(history: ClientHistory, came: Row) -> bool:
    """Whether the node that gave the snapshot had not removed the client by then, nor confirmed a DELETE of it."""
    loads = [row for row in history.loads.get(came.node, ()) if succeeded(row) and row.seq < came.seq]
    given = [row for row in loads if came.message is None or row.message == came.message]
    if not given:
        return False
    giver = given[-1].peer or ""
    earlier = [row for row in history.by_node.get(giver, ()) if row.at_ms <= given[-1].at_ms]
    held = [row for row in earlier if row.kind in STATE_KINDS]
    confirmed = any(
        (row.kind, row.operation, row.outcome) == (Kind.REPLY_SENT, "DELETE", Outcome.SUCCESS) for row in earlier
    )
    return bool(held) and held[-1].kind not in GONE and held[-1].digest is not None and not confirmed


def gave_a_snapshot(_: ClientHistory, told: Violation) -> bool:
    """B33. It is the node's answer to another one's load; that it verifies before it is loaded is no known failure."""
    return told.last.kind == Kind.REPLY_SENT and told.last.operation == "SNAPSHOT"
