"""B19: what carries a batch raises where the copy has a single instance under that service."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.defects import Symptom
from distro_model.release import Span
from distro_spark.history import ASKS_AGAIN_MS, LEASE, NEVER, ClientHistory, Finding, Row, succeeded
from distro_spark.symptoms.queries import (
    CHANGES,
    Handled,
    cached_per_history,
    change_before,
    changes_of,
    clause,
    clause_about,
    count_before,
    handled_requests,
)
from distro_traces.event import BATCH, BATCH_OVER_SINGLE, Kind

_LOAD_AGAIN_MS = 25_000
"""A load that was not complete begins again 30 s later, before 2.2.1 after a minute."""


@cached_per_history
def _changes_answered(history: ClientHistory, node: str) -> Sequence[Handled]:
    handled = handled_requests(history, node)
    return [each for each in handled if each.request.operation in CHANGES and each.end != NEVER]


# One is left out


def _last_change(found: Finding) -> Handled | None:
    """The last CHANGE that the node answered before the violation; in INV-ACK the one that it is about."""
    changes = _changes_answered(found.history, found.node)
    answer = found.last.message if found.last.kind == Kind.REPLY_SENT else None
    by_then = (each for each in reversed(changes) if each.end <= found.last.seq)
    return next((each for each in by_then if answer in (None, each.request.message)), None)


@clause("the last CHANGE that the node acknowledged has a batch")
def last_has_a_batch(found: Finding) -> bool:
    change = _last_change(found)
    return change is not None and change.request.detail == BATCH


@clause_about(_last_change, "it carries another content than the node holds")
def carries_another(found: Finding, change: Handled) -> bool:
    return change.request.digest not in (None, found.actual)


@clause_about(_last_change, "the node has applied nothing since that CHANGE came")
def nothing_applied_since(found: Finding, change: Handled) -> bool:
    changes = changes_of(found.history, found.node)
    return count_before(changes, change.begin) == count_before(changes, found.last.seq)


# All are left out, until the lease ends


def _end(found: Finding) -> Row | None:
    """The row with which the copy ended."""
    if found.last.kind == Kind.REPLICA_REMOVED:
        return found.last
    state = change_before(found.history, found.node, found.last.seq)
    return state if state is not None and state.kind == Kind.REPLICA_REMOVED else None


def _changes_since_it_was_applied(found: Finding, end: Row) -> list[Handled]:
    changes = changes_of(found.history, found.node)
    count = count_before(changes, end.seq)
    since = changes[count - 1].seq if count else 0
    return [each for each in _changes_answered(found.history, found.node) if since < each.begin < end.seq]


@clause("the copy ended with its lease")
def ended_with_its_lease(found: Finding) -> bool:
    end = _end(found)
    return end is not None and end.detail == LEASE


@clause_about(_end, "since it was applied for the last time CHANGEs with a batch came")
def batches_came(found: Finding, end: Row) -> bool:
    return any(each.request.detail == BATCH for each in _changes_since_it_was_applied(found, end))


@clause_about(_end, "no other CHANGE came since")
def only_batches_came(found: Finding, end: Row) -> bool:
    return all(each.request.detail == BATCH for each in _changes_since_it_was_applied(found, end))


# A snapshot has one


class _Load:
    """What the copy's owner did in its life until the copy ended."""

    def __init__(self, found: Finding) -> None:
        end, owner = _end(found), str(found.evidence.get("owner"))
        self.end_ms = NEVER if end is None else end.at_ms
        resets = (row.at_ms for row in found.history.resets.get(owner, ()) if row.at_ms <= self.end_ms)
        since_ms = max(resets, default=0)
        self.rows = [row for row in found.history.by_node.get(owner, ()) if since_ms <= row.at_ms <= self.end_ms]
        loads = [row for row in found.history.loads.get(owner, ()) if since_ms <= row.at_ms <= self.end_ms]
        self.given = [row for row in loads if succeeded(row)]
        self.asked_ms = [row.at_ms for row in loads if row.kind == Kind.REQUEST_SENT]


@clause("its owner had verified it with no member since it was started")
def verified_with_none(found: Finding) -> bool:
    return not any((row.kind, row.operation) == (Kind.REQUEST_SENT, "VERIFY") for row in _Load(found).rows)


@clause("the owner was given snapshots")
def was_given_snapshots(found: Finding) -> bool:
    return bool(_Load(found).given)


@clause("each raised there, at a batch for a service under which it has a single instance of that client")
def each_raised(found: Finding) -> bool:
    return all(row.detail == BATCH_OVER_SINGLE for row in _Load(found).given)


@clause("it went on asking for one until the copy ended")
def asked_again(found: Finding) -> bool:
    load = _Load(found)
    if not load.given or _end(found) is None:
        return True
    again_ms = [at_ms for at_ms in load.asked_ms if at_ms - load.given[0].at_ms >= _LOAD_AGAIN_MS]
    return bool(again_ms) and load.end_ms - again_ms[-1] <= ASKS_AGAIN_MS


LEFT_OUT = Symptom(
    bug="B19",
    about=("INV-ACK", "INV-CONV"),
    sentence="A batch over a single instance raises, is acknowledged and not applied.",
    clauses=(last_has_a_batch, carries_another, nothing_applied_since),
)
LEFT_OUT_UNTIL_LEASE = Symptom(
    bug="B19",
    about=("INV-LIVE", "INV-CONV"),
    sentence="A batch over a single instance raises each time that a failed verify has it sent again; the lease ends.",
    clauses=(ended_with_its_lease, batches_came, only_batches_came),
    releases=Span("2.1.2", "2.3.0"),
)
NEVER_LOADED = Symptom(
    bug="B19",
    about=("INV-CONV",),
    sentence="A batch over a single instance raises in a snapshot too: the owner is never loaded and verifies no copy.",
    clauses=(ended_with_its_lease, verified_with_none, was_given_snapshots, each_raised, asked_again),
)
SYMPTOMS = (LEFT_OUT, LEFT_OUT_UNTIL_LEASE, NEVER_LOADED)
