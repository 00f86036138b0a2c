"""B10: a copy keeps its revision when its content changes."""

from __future__ import annotations

from distro_model.defects import Symptom
from distro_spark.history import OWN_CONNECTION, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    Life,
    cached_per_history,
    carried_revisions,
    clause,
    clause_about,
    having,
    held_by_sender,
    holds_something,
    life_at,
    load_of,
    sent_messages,
)
from distro_traces.event import BATCH, STATE_KINDS, Kind

# It takes over the content of a later sync


def _stamped(found: Finding) -> Row | None:
    """The row that says what the copy holds: the last one, or what the sender of the last message held."""
    if found.last.kind in STATE_KINDS:
        return found.last
    return held_by_sender(found.history, found.last)


def _came(history: ClientHistory, stamped: Row) -> Row:
    """With which row that content came; what was only read then came before."""
    rows = life_at(history, stamped.node, stamped.seq).until(stamped.seq) if stamped.kind == Kind.OBSERVED else ()
    applied = (row for row in rows if row.kind == Kind.REPLICA_APPLIED and row.digest == stamped.digest)
    return next(applied, stamped)


@clause("the copy has that revision since it was created, or since a batch came")
def has_the_stamp_of_creation(found: Finding) -> bool:
    stamped = _stamped(found)
    if stamped is None or stamped.owned or stamped.digest != found.actual:
        return False
    return _is_of_creation_or_batch(found.history, stamped, found.evidence["revision"])


@clause_about(_stamped, "the message that brought the content does not have that revision or an earlier one")
def brought_by_a_later_one(found: Finding, stamped: Row) -> bool:
    carried = carried_revisions(found.history, _came(found.history, stamped))
    return all(_is_later(found, revision) for revision in carried)


@clause_about(_stamped, "its owner had that content under a later revision by then")
def owner_had_it_later(found: Finding, stamped: Row) -> bool:
    history, came = found.history, _came(found.history, stamped)
    sender = held_by_sender(history, came)
    if sender is not None and _says_no_revision(sender) and carried_revisions(history, came):
        return sender.digest == found.actual
    return any(
        row.revision is not None and _is_later(found, row.revision) and row.at_ms <= came.at_ms
        for row in having(history, found.actual)
        if row.owned or (row.kind == Kind.REQUEST_SENT and row.is_native)
    )


def _says_no_revision(owner: Row) -> bool:
    """As owners in logs; one that holds nothing any more has none either."""
    return bool(owner.owned) and owner.revision is None and holds_something(owner)


def _is_later(found: Finding, revision: int) -> bool:
    """Than that of the violation. That of a client of the HTTP API is a hash, and has no order."""
    than = int(str(found.evidence["revision"]))
    return revision > than if found.history.has_connection else revision != than


def _is_of_creation_or_batch(history: ClientHistory, stamped: Row, stamp: object) -> bool:
    """The copy was created with this stamp, or has it since a batch came."""
    life: Life = life_at(history, stamped.node, stamped.seq)
    there, brought_by = life.stamp_at(stamped.seq)
    return there == stamp and (brought_by is None or _came_with_a_batch(history, brought_by))


@cached_per_history
def _came_with_a_batch(history: ClientHistory, taken: Row) -> bool:
    """A copy takes over the revision of what has a batch in it (docs/protocol #receive-revision): of the CHANGE that
    brought it, whatever content the copy has then (two may have been applied at once, B05); where the row names none
    (embedded nodes) or it came with a snapshot, of what its client published or a CHANGE carried with that content."""
    named = sent_messages(history).get(taken.message or "")
    by_then = [row for row in having(history, taken.digest) if row.at_ms <= taken.at_ms]
    return any(row.detail == BATCH and row.revision == taken.revision for row in ([named] if named else by_then))


# A late snapshot replaces its content


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
    replied = (
        row
        for row in history.loads.get(answer.peer or "", ())
        if (row.kind, row.message) == (Kind.REPLY_SENT, answer.message)
    )
    until = next((row.seq for row in replied), None)
    copies = [
        row
        for row in history.by_node.get(answer.peer or "", ())
        if row.kind == Kind.REPLICA_APPLIED
        and (row.digest, row.revision) == (loaded.digest, loaded.revision)
        and (row.at_ms <= answer.at_ms if until is None else row.seq < until)
        and load_of(history, row) is not None
    ]
    return copies[-1] if copies else None


@clause("the content came with a snapshot")
def came_with_a_snapshot(found: Finding) -> bool:
    return _loaded(found) is not None


@clause_about(_loaded, "that replaced a copy which was there")
def replaced_a_copy(_: Finding, loaded: Row) -> bool:
    return loaded.held is not None


@clause_about(_loaded, "which has its revision since it was created, or since a batch came")
def keeps_its_stamp(found: Finding, loaded: Row) -> bool:
    return _is_of_creation_or_batch(found.history, loaded, loaded.revision)


@clause_about(_loaded, "its owner had the content of the snapshot under an earlier revision")
def is_of_an_earlier_revision(found: Finding, loaded: Row) -> bool:
    owned = (row for row in having(found.history, loaded.digest) if row.kind in OWN_CONNECTION)
    revisions = [row.revision for row in owned if row.revision is not None]
    return loaded.revision is not None and min(revisions, default=loaded.revision) < loaded.revision


CREATION_STAMP = Symptom(
    bug="B10",
    about=("INV-REV",),
    sentence="A replica takes over the content of a later sync, but keeps the revision that it was created with.",
    clauses=(has_the_stamp_of_creation, brought_by_a_later_one, owner_had_it_later),
)
SNAPSHOT_UNDER_STAMP = Symptom(
    bug="B10",
    about=("INV-CONV", "INV-REV"),
    sentence="A late snapshot replaces the content of a newer copy, which keeps the revision that it was created with.",
    clauses=(came_with_a_snapshot, replaced_a_copy, keeps_its_stamp, is_of_an_earlier_revision),
)
SYMPTOMS = (CREATION_STAMP, SNAPSHOT_UNDER_STAMP)
