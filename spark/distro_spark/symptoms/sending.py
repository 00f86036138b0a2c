"""What an owner never sends.

| bug | what has to be seen |
|---|---|
| B24 | a CHANGE to that node failed before the queued DELETE was due; the owner sends DELETEs, and none to that node |
| B24 | or one was owed while the link to that node was cut or held: what cannot be sent fails where none sees it |
| D7 | a client of the HTTP API changed at a node that the hash does not name, and that sent nothing about it since |
"""

from __future__ import annotations

from distro_model.rules.owners import place, tag_of
from distro_spark.history import OWN_CONNECTION, ClientHistory, Row, Violation, succeeded
from distro_spark.symptoms.look import CHANGES, CLOCK_SLACK_MS, due_after_ms, lists_of
from distro_traces.event import Kind, Outcome

_CALL_TIMEOUT_MS = 3000


def swallowed_delete(story: ClientHistory, told: Violation) -> bool:
    """B24. The DELETE is due one sync delay and a tick of the engine after the client left, or a retry and a tick after
    it failed; that the owner sends any is seen of whatever client, peer and run of the same target and profile."""
    sync_ms, retry_ms = due_after_ms(story)
    owner = str(told.evidence["owner"])
    rows = story.by_node.get(owner, [])
    left = [row for row in rows if row.kind == Kind.CLIENT_DISCONNECTED]
    if not left or owner not in story.deleters or told.evidence.get("expected", "nothing") != "nothing":
        return False
    since = [row for row in rows if row.peer == told.node and row.seq > left[-1].seq]
    deletes = [row for row in since if row.operation == "DELETE"]
    if deletes and (deletes[-1].kind != Kind.REPLY_RECEIVED or deletes[-1].outcome == Outcome.SUCCESS):
        return False
    queued = deletes[-1] if deletes else left[-1]
    until_ms = queued.at_ms + (retry_ms if deletes else sync_ms) + CLOCK_SLACK_MS
    return _owed_over_a_cut(story, told.node, queued, until_ms) or any(
        row.kind == Kind.REPLY_RECEIVED
        and row.operation in CHANGES
        and row.outcome != Outcome.SUCCESS
        and row.at_ms <= until_ms
        for row in since
        if row.seq > queued.seq
    )


def _owed_over_a_cut(story: ClientHistory, node: str, queued: Row, until_ms: int) -> bool:
    """The node has not confirmed what the client published last, and between the last moment before the DELETE was
    queued at which a call that times out meanwhile can have begun, and when the DELETE was due, the link was cut or
    held."""
    own = [row for row in story.by_node[queued.node] if row.seq < queued.seq]
    changes = [row.seq for row in own if row.kind in OWN_CONNECTION]
    confirmed = [row.seq for row in own if row.peer == node and row.operation in CHANGES and succeeded(row)]
    is_owed = bool(changes) and (not confirmed or confirmed[-1] < changes[-1])
    from_ms = queued.at_ms - _CALL_TIMEOUT_MS
    cuts = story.cuts(queued.node, node)
    return is_owed and any(cut_ms <= until_ms and healed_ms >= from_ms for cut_ms, healed_ms in cuts)


def not_passed_on(history: ClientHistory, violation: Violation) -> bool:
    """D7. A client of the HTTP API was changed at a node that is not its owner, by the hash over the list of members
    that this node had then, and that sends nothing about it afterwards: a request by version 2 is not passed on. An
    owner that sends nothing has another defect."""
    changed = violation.first
    rows = history.by_node.get(changed.node, [])
    acts = any(row.kind == Kind.REQUEST_SENT and row.seq > changed.seq for row in rows)
    owner = hash_owner(history, changed.node, changed.at_ms)
    is_elsewhere = owner is not None and owner != changed.node
    return not history.has_connection and changed.kind in OWN_CONNECTION and is_elsewhere and not acts


def hash_owner(history: ClientHistory, node: str, at_ms: int) -> str | None:
    """Whom the hash of the client names among the members of the list that a node had then; None: it is not
    recorded."""
    lists = [row for row in lists_of(history, node) if row.at_ms <= at_ms]
    members = sorted(str(lists[-1].detail).split(",")) if lists else []
    return members[place(tag_of(history.client), len(members))] if members else None
