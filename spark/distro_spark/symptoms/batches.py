"""B19: what carries a batch raises where the copy has a single instance under that service."""

from __future__ import annotations

from collections.abc import Sequence

from distro_model.release import Span
from distro_spark.history import ASKS_AGAIN_MS, LEASE, NEVER, ClientHistory, Finding, Row, succeeded
from distro_spark.symptoms.queries import (
    CHANGES,
    Handled,
    cached_per_history,
    change_before,
    changes_of,
    count_before,
    handled_requests,
    of_its_client,
)
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.event import BATCH, BATCH_OVER_SINGLE, Kind

_LOAD_AGAIN_MS = 25_000
"""A load that was not complete begins again 30 s later, before 2.2.1 after a minute."""


@cached_per_history
def _changes_answered(history: ClientHistory, node: str) -> Sequence[Handled]:
    handled = handled_requests(history, node)
    return [each for each in handled if each.request.operation in CHANGES and each.end != NEVER]


def _end(found: Finding) -> Row | None:
    """The row with which the copy ended."""
    if found.last.kind == Kind.REPLICA_REMOVED:
        return found.last
    state = change_before(found.history, found.node, found.last.seq)
    return state if state is not None and state.kind == Kind.REPLICA_REMOVED else None


@symptom("B19", "INV-ACK", "INV-CONV")
def left_out(found: Finding) -> Clauses:
    """A batch over a single instance raises, is acknowledged and not applied."""
    changes = changes_of(found.history, found.node)
    answer = found.last.message if found.last.kind == Kind.REPLY_SENT else None  # which INV-ACK is about
    answered = (each for each in reversed(_changes_answered(found.history, found.node)) if each.end <= found.last.seq)
    last = next((each for each in answered if answer in (None, each.request.message)), None)
    yield "the last CHANGE that the node acknowledged has a batch", last is not None and last.request.detail == BATCH
    if last is None:
        return
    yield "it carries another content than the node holds", last.request.digest not in (None, found.actual)
    yield (
        "the node has applied nothing since that CHANGE came",
        count_before(changes, last.begin) == count_before(changes, found.last.seq),
    )
    if answer is None:
        yield from of_its_client(found)


@symptom("B19", "INV-LIVE", "INV-CONV", releases=Span("2.1.2", "2.3.0"))
def left_out_until_lease(found: Finding) -> Clauses:
    """A batch over a single instance raises each time that a failed verify has it sent again; the lease ends."""
    end = _end(found)
    yield "the copy ended with its lease", end is not None and end.detail == LEASE
    if end is None:
        return
    changes = changes_of(found.history, found.node)
    count = count_before(changes, end.seq)
    applied = changes[count - 1].seq if count else 0
    came = [each for each in _changes_answered(found.history, found.node) if applied < each.begin < end.seq]
    has_batch = [each.request.detail == BATCH for each in came]
    yield "since it was applied for the last time CHANGEs with a batch came", any(has_batch)
    yield "no other CHANGE came since", all(has_batch)


@symptom("B19", "INV-CONV")
def never_loaded(found: Finding) -> Clauses:
    """A batch over a single instance raises in a snapshot too: the owner is never loaded and verifies no copy."""
    history, owner, end = found.history, str(found.evidence.get("owner")), _end(found)
    yield "the copy ended with its lease", end is not None and end.detail == LEASE
    if end is None:
        return
    since_ms = max((row.at_ms for row in history.node(owner).resets if row.at_ms <= end.at_ms), default=0)
    rows, loads = (
        [row for row in rows if since_ms <= row.at_ms <= end.at_ms]
        for rows in (history.by_node.get(owner, ()), history.node(owner).loads)
    )
    yield (
        "its owner had verified it with no member since it was started",
        not any((row.kind, row.operation) == (Kind.REQUEST_SENT, "VERIFY") for row in rows),
    )
    given = [row for row in loads if succeeded(row)]
    yield "the owner was given snapshots", bool(given)
    yield (
        "each raised there, at a batch for a service under which it has a single instance of that client",
        all(row.detail == BATCH_OVER_SINGLE for row in given),
    )
    if given:
        asked_ms = [row.at_ms for row in loads if row.kind == Kind.REQUEST_SENT]
        again_ms = [at_ms for at_ms in asked_ms if at_ms - given[0].at_ms >= _LOAD_AGAIN_MS]
        yield (
            "it went on asking for one until the copy ended",
            bool(again_ms) and end.at_ms - again_ms[-1] <= ASKS_AGAIN_MS,
        )
