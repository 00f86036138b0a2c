"""B10: a copy keeps its revision when its content changes."""

from __future__ import annotations

from distro_spark.history import OWN_CONNECTION, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    cached_per_history,
    carried_revisions,
    having,
    held_by_sender,
    holds_something,
    life_at,
    load_of,
    sent_messages,
)
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.event import BATCH, STATE_KINDS, Kind


def _came(history: ClientHistory, stamped: Row) -> Row:
    """With which row that content came; what was only read then came before."""
    rows = life_at(history, stamped.node, stamped.seq).until(stamped.seq) if stamped.kind == Kind.OBSERVED else ()
    applied = (row for row in rows if row.kind == Kind.REPLICA_APPLIED and row.digest == stamped.digest)
    return next(applied, stamped)


def _is_of_creation_or_batch(history: ClientHistory, stamped: Row, stamp: object) -> bool:
    """The copy was created with this stamp, or has it since a batch came."""
    there, brought_by = life_at(history, stamped.node, stamped.seq).stamp_at(stamped.seq)
    return there == stamp and (brought_by is None or _came_with_a_batch(history, brought_by))


@cached_per_history
def _came_with_a_batch(history: ClientHistory, taken: Row) -> bool:
    """A copy takes over the revision of what has a batch in it (docs/protocol #receive-revision): of the CHANGE that
    brought it, whatever content the copy has then (two may have been applied at once, B05); where the row names none
    (embedded nodes) or it came with a snapshot, of what its client published or a CHANGE carried with that content."""
    named = sent_messages(history).get(taken.message or "")
    by_then = [row for row in having(history, taken.digest) if row.at_ms <= taken.at_ms]
    return any(row.detail == BATCH and row.revision == taken.revision for row in ([named] if named else by_then))


def _had_it_later(found: Finding, came: Row) -> bool:
    history, sender = found.history, held_by_sender(found.history, came)
    # An owner in logs says no revision; one that holds nothing any more has none either.
    says_none = sender is not None and bool(sender.owned) and sender.revision is None and holds_something(sender)
    if sender is not None and says_none and carried_revisions(history, came):
        return sender.digest == found.actual
    return any(
        row.revision is not None and _is_later(found, row.revision) and row.at_ms <= came.at_ms
        for row in having(history, found.actual)
        if row.owned or (row.kind == Kind.REQUEST_SENT and row.is_native)
    )


def _is_later(found: Finding, revision: int) -> bool:
    """Than that of the violation. That of a client of the HTTP API is a hash, and has no order."""
    than = int(str(found.evidence["revision"]))
    return revision > than if found.history.has_connection else revision != than


@symptom("B10", "INV-REV")
def creation_stamp(found: Finding) -> Clauses:
    """A replica takes over the content of a later sync, but keeps the revision that it was created with."""
    history = found.history
    stamped = found.last if found.last.kind in STATE_KINDS else held_by_sender(history, found.last)
    yield (
        "the copy has that revision since it was created, or since a batch came",
        stamped is not None
        and not stamped.owned
        and stamped.digest == found.actual
        and _is_of_creation_or_batch(history, stamped, found.evidence["revision"]),
    )
    if stamped is None:
        return
    came = _came(history, stamped)
    yield (
        "the message that brought the content does not have that revision or an earlier one",
        all(_is_later(found, revision) for revision in carried_revisions(history, came)),
    )
    yield "its owner had that content under a later revision by then", _had_it_later(found, came)


def _loaded(found: Finding) -> Row | None:
    """The row with which the content came by a snapshot to the node, or to the one that gave it to it, and so on."""
    rows = life_at(found.history, found.node, found.last.seq).until(found.last.seq)
    loaded = next((row for row in reversed(rows) if row.kind != Kind.OBSERVED), None)
    if loaded is None or loaded.digest != found.actual:
        return None
    while (answer := load_of(found.history, loaded)) is not None and loaded.held is None:
        given = _given_from(found.history, answer, loaded)
        if given is None:
            break
        loaded = given
    return loaded if answer is not None else None


@cached_per_history
def _given_from(history: ClientHistory, answer: Row, loaded: Row) -> Row | None:
    """The copy at the node that sent the snapshot, if that copy came with a snapshot, too."""
    loads = history.node(answer.peer).loads
    replied = (row.seq for row in loads if (row.kind, row.message) == (Kind.REPLY_SENT, answer.message))
    until = next(replied, None)
    copies = [
        row
        for row in history.by_node.get(answer.peer or "", ())
        if row.kind == Kind.REPLICA_APPLIED
        and (row.digest, row.revision) == (loaded.digest, loaded.revision)
        and (row.at_ms <= answer.at_ms if until is None else row.seq < until)
        and load_of(history, row) is not None
    ]
    return copies[-1] if copies else None


@symptom("B10", "INV-CONV", "INV-REV")
def snapshot_under_stamp(found: Finding) -> Clauses:
    """A late snapshot replaces the content of a newer copy, which keeps the revision that it was created with."""
    loaded = _loaded(found)
    yield "the content came with a snapshot", loaded is not None
    if loaded is None:
        return
    yield "that replaced a copy which was there", loaded.held is not None
    yield (
        "which has its revision since it was created, or since a batch came",
        _is_of_creation_or_batch(found.history, loaded, loaded.revision),
    )
    owned = (row for row in having(found.history, loaded.digest) if row.kind in OWN_CONNECTION)
    revisions = [row.revision for row in owned if row.revision is not None]
    yield (
        "its owner had the content of the snapshot under an earlier revision",
        loaded.revision is not None and min(revisions, default=loaded.revision) < loaded.revision,
    )
