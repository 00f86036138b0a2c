"""B24, D7: what an owner never sends."""

from __future__ import annotations

from distro_model.defects import Symptom
from distro_spark.cluster import hash_owner_in
from distro_spark.faults import MENDS
from distro_spark.history import OWN_CONNECTION, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    CLOCK_SLACK_MS,
    clause,
    due_after_ms,
    is_of_http,
    link_is_broken,
    lists_of,
)
from distro_traces.event import Kind, Outcome

# B24


def _owner(found: Finding) -> str:
    return str(found.evidence["owner"])


def _left(found: Finding) -> Row | None:
    """The row with which the client left its owner."""
    rows = reversed(found.history.by_node.get(_owner(found), ()))
    return next((row for row in rows if row.kind == Kind.CLIENT_DISCONNECTED and row.at_ms <= found.last.at_ms), None)


def _calls_since(found: Finding, operations: tuple[str, ...]) -> list[Row]:
    """Those of the owner to the node since the client left."""
    left = _left(found)
    rows = found.history.by_node.get(_owner(found), ()) if left else ()
    seq = left.seq if left else 0
    return [row for row in rows if row.peer == found.node and row.seq > seq and row.operation in operations]


def _failed(row: Row) -> bool:
    return row.kind == Kind.REPLY_RECEIVED and row.outcome != Outcome.SUCCESS


@clause("the client has left its owner, which holds nothing of it")
def has_left_its_owner(found: Finding) -> bool:
    return _left(found) is not None and found.evidence.get("expected", "nothing") == "nothing"


@clause("the owner sends DELETEs")
def sends_deletes(found: Finding) -> bool:
    return _owner(found) in found.history.deleters


@clause("it has sent the node no DELETE since, or the last one failed")
def no_delete_is_under_way(found: Finding) -> bool:
    deletes = _calls_since(found, ("DELETE",))
    return not deletes or _failed(deletes[-1])


def _is_broken(found: Finding, from_ms: int, until_ms: int) -> bool:
    """The link from the owner to the node, all that time. What is due then may fail without a request, as the owner
    believes the node to be down, and is due again later."""
    owner = _owner(found)
    faults = (row for row in found.history.faults.get(owner, ()) if row.peer == found.node and row.detail in MENDS)
    is_mended = any(from_ms < row.at_ms <= until_ms for row in faults)
    return link_is_broken(found.history, owner, found.node, from_ms) and not is_mended


@clause("a CHANGE to the node failed since the DELETE was queued, and before it was due or the link was mended")
def a_change_failed(found: Finding) -> bool:
    left, deletes = _left(found), _calls_since(found, ("DELETE",))
    if left is None or (deletes and not _failed(deletes[-1])):
        return True
    queued = deletes[-1] if deletes else left
    due_ms = queued.at_ms + due_after_ms(found.history)[bool(deletes)] + CLOCK_SLACK_MS
    failed = [row for row in _calls_since(found, CHANGES) if _failed(row) and row.seq > queued.seq]
    return any(row.at_ms <= due_ms or _is_broken(found, due_ms, row.at_ms) for row in failed)


# D7


@clause("it changed at a node, by a request to that")
def changed_there(found: Finding) -> bool:
    return found.first.kind in OWN_CONNECTION


@clause("the hash over the members in the list of that node names another one")
def is_of_another(found: Finding) -> bool:
    changed = found.first
    return hash_owner(found.history, changed.node, changed.at_ms) not in (None, changed.node)


@clause("that node has sent nothing about it since")
def sends_nothing(found: Finding) -> bool:
    changed = found.first
    rows = found.history.by_node.get(changed.node, ())
    return not any(row.kind == Kind.REQUEST_SENT and row.seq > changed.seq for row in rows)


def hash_owner(history: ClientHistory, node: str, at_ms: int) -> str | None:
    """Whom the hash of the client names among the members of the list that a node had then; None: it is not
    recorded."""
    lists = [row for row in lists_of(history, node) if row.at_ms <= at_ms]
    return hash_owner_in(str(lists[-1].detail), history.client) if lists else None


SWALLOWED = Symptom(
    bug="B24",
    about=("INV-CONV", "INV-DELETE"),
    sentence="The retry of a CHANGE that fails after the client left replaces the queued DELETE; no DELETE is sent.",
    clauses=(has_left_its_owner, sends_deletes, no_delete_is_under_way, a_change_failed),
)
NOT_PASSED_ON = Symptom(
    bug="D7",
    about=("INV-CONV",),
    sentence="A request by version 2 of the HTTP API stays at the receiving node.",
    clauses=(is_of_http, changed_there, is_of_another, sends_nothing),
)
SYMPTOMS = (SWALLOWED, NOT_PASSED_ON)
