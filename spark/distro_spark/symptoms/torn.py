"""B05: a change is read, or two are applied, while one is being made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distro_model.defects import Clause, Symptom
from distro_model.release import Span
from distro_spark.history import SYNCS, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    CLOCK_SLACK_MS,
    Handled,
    cached_per_history,
    change_before,
    clause,
    clause_about,
    count_before,
    handled_requests,
    having,
    own_of,
    sent_messages,
    state_before,
    states_of,
)
from distro_traces.event import Kind

_NEXT_WITHIN_MS = 2000
"""Who plays a client of a real server reads what its node holds when the request has been answered."""


@cached_per_history
def _handled(history: ClientHistory, node: str) -> Sequence[Handled]:
    """As `handled_requests`, where the node's answers to syncs are recorded. Where none is (logs), nothing shows that a
    request was still being handled when the next one came: of each only the moment is known."""
    answers = any(row.kind == Kind.REPLY_SENT and row.operation in SYNCS for row in history.by_node.get(node, []))
    return [each if answers else each._replace(end=each.begin) for each in handled_requests(history, node)]


@cached_per_history
def _handled_as(history: ClientHistory, node: str, message: str | None) -> Handled | None:
    found = (each for each in _handled(history, node) if message is not None and each.request.message == message)
    return next(found, None)


def _own(found: Finding) -> Handled | None:
    """The request that the violation goes by."""
    return _handled_as(found.history, found.node, found.message)


def _meanwhile(found: Finding, operations: tuple[str, ...]) -> list[Handled]:
    """The other requests that the node was handling while it handled that one."""
    own = _own(found)
    if own is None:
        return []
    return [
        each
        for each in _handled(found.history, found.node)
        if each.request.message != found.message and each.request.operation in operations and each.overlaps(own)
    ]


# Two are applied at once


def _loaded_meanwhile(found: Finding) -> list[Handled]:
    """The copies from snapshots that the node took while it handled that request."""
    own, loads = _own(found), found.history.loads.get(found.node, ())
    if own is None:
        return []
    answers = {row.message for row in loads if row.kind == Kind.REPLY_RECEIVED}
    taken = (row for row in states_of(found.history, found.node) if row.message in answers)
    return [Handled(row, row.seq, row.seq) for row in taken if own.begin < row.seq < own.end]


def _others(found: Finding) -> list[Handled]:
    return [*_meanwhile(found, CHANGES), *_loaded_meanwhile(found)]


@clause("while the node handled the sync that the violation goes by, it handled a CHANGE or a snapshot of that client")
def two_at_once(found: Finding) -> bool:
    return bool(_others(found))


@clause_about(_own, "it is not what that sync carried: another content, or the same under a later revision")
def not_what_it_carried(found: Finding, own: Handled) -> bool:
    carried, held = own.request.revision, found.last.revision
    is_under_a_later = carried is not None and held is not None and carried < held
    return own.request.digest is not None and (own.request.digest != found.actual or is_under_a_later)


@clause_about(_own, "the node has held that content since it had handled both")
def came_of_both(found: Finding, own: Handled) -> bool:
    both = [own, *_others(found)]
    until = min(max(each.end for each in both), found.last.seq)
    states = states_of(found.history, found.node)
    count = count_before(states, until + 1)
    later = states[count : count_before(states, found.last.seq + 1)]
    came = bool(later and later[0].kind == Kind.OBSERVED) or (count > 0 and states[count - 1].digest == found.actual)
    return len(both) < 2 or (came and all(row.digest == found.actual for row in later))


# A snapshot is made while one is applied


def _snapshot_reply(found: Finding) -> Row | None:
    came = change_before(found.history, found.node, found.last.seq + 1)
    if came is None or came.message is None:
        return None
    rows = (row for of_node in found.history.loads.values() for row in of_node)
    wanted = (Kind.REPLY_SENT, found.node, came.message)
    return next((row for row in rows if (row.kind, row.peer, row.message) == wanted), None)


def _applied_at_source(found: Finding, given: Row) -> list[Row]:
    handled = (each for each in _handled(found.history, given.node) if each.begin < given.seq < each.end)
    return [each.request for each in handled if each.request.operation in CHANGES]


@clause("the content came with a snapshot")
def came_with_a_snapshot(found: Finding) -> bool:
    return _snapshot_reply(found) is not None


@clause_about(_snapshot_reply, "the node that sent the snapshot was handling a CHANGE to that revision at that time")
def source_was_applying(found: Finding, given: Row) -> bool:
    return found.evidence["revision"] in [row.revision for row in _applied_at_source(found, given)]


@clause_about(_snapshot_reply, "that CHANGE carried another content")
def change_carried_another(found: Finding, given: Row) -> bool:
    applied = [row for row in _applied_at_source(found, given) if row.revision == found.evidence["revision"]]
    return all(row.digest != found.actual for row in applied)


@clause_about(_snapshot_reply, "the node that sent the snapshot was handling a CHANGE with that content at that time")
def source_was_applying_that_content(found: Finding, given: Row) -> bool:
    return found.actual in [row.digest for row in _applied_at_source(found, given)]


@clause_about(_snapshot_reply, "the node that sent the snapshot held that revision before that CHANGE")
def source_held_that_revision(found: Finding, given: Row) -> bool:
    held = state_before(found.history, given.node, given.seq)
    return held is not None and held.revision == found.evidence["revision"]


# A snapshot carries the mixture of two requests that its source applied at once


def _at_source(found: Finding) -> Finding | None:
    """The violation at the node where it arose: the source of the snapshot, or the source of that one, and so on."""
    given = _snapshot_reply(found)
    if given is None:
        return None
    held = state_before(found.history, given.node, given.seq)
    if held is None or held.digest != found.actual:
        return None
    at_source = replace(found, node=given.node, last=held, after=None)
    return at_source if _snapshot_reply(at_source) is None else _at_source(at_source)


@clause_about(_snapshot_reply, "the node that sent the snapshot held that content")
def source_held_it(found: Finding, _: Row) -> bool:
    return _at_source(found) is not None


def _of_source(mixed: Clause[Finding]) -> Clause[Finding]:
    return clause_about(_at_source, f"at the node that sent the snapshot, {mixed.sentence}")(
        lambda _, at_source: mixed.holds(at_source)
    )


# The owner reads while it changes


def _sent(found: Finding) -> Row | None:
    return sent_messages(found.history).get(found.message or "")


def _last_change(history: ClientHistory, sent: Row) -> tuple[Row, Row] | None:
    """What the owner held before and after its last change before it sent that."""
    own = own_of(history, sent.node)
    count = count_before(own, sent.seq)
    return (own[count - 2], own[count - 1]) if count > 1 else None


@clause("the message that the violation goes by left its owner with that content")
def left_with_that_content(found: Finding) -> bool:
    sent = _sent(found)
    return sent is not None and sent.digest == found.actual


@clause_about(_sent, "it has the content of before the owner's last change, under the revision of after")
def content_of_before(found: Finding, sent: Row) -> bool:
    if sent.digest != found.actual:
        return True
    change = _last_change(found.history, sent)
    return change is not None and (change[0].digest, change[1].revision) == (sent.digest, sent.revision)


@clause_about(_sent, "it left in the moment of that change")
def left_in_the_moment(found: Finding, sent: Row) -> bool:
    change = _last_change(found.history, sent)
    return change is None or sent.at_ms - change[1].at_ms <= CLOCK_SLACK_MS


# A message leaves between the two steps of a change


def _early(found: Finding) -> Row | None:
    """The first message with that content and revision that left before the violation."""
    sent = (
        row
        for row in having(found.history, found.actual)
        if row.kind == Kind.REQUEST_SENT and row.revision == found.evidence["revision"]
    )
    by_then = (row for row in sent if row.at_ms <= found.last.at_ms)
    return min(by_then, key=lambda row: row.at_ms, default=None)


def _around(found: Finding, early: Row) -> tuple[Row | None, Row | None]:
    """What the owner had published when it sent that, and what it published next."""
    own = own_of(found.history, early.node)
    count = count_before(own, early.seq)
    return own[count - 1] if count else None, own[count] if count < len(own) else None


@clause("the owner had sent that content under that revision by then")
def had_sent_it(found: Finding) -> bool:
    return _early(found) is not None


@clause_about(_early, "it had published another content under that revision when it sent that")
def published_another_before(found: Finding, early: Row) -> bool:
    before, _ = _around(found, early)
    return before is not None and before.revision == early.revision and before.digest != early.digest


@clause_about(_early, "that content is what it published next, in that moment")
def published_it_next(found: Finding, early: Row) -> bool:
    _, following = _around(found, early)
    if following is None or following.digest != early.digest:
        return False
    return following.at_ms - early.at_ms <= _NEXT_WITHIN_MS


# A call comes while one is applied


@clause("a DELETE of the client was being handled at the same time")
def deleted_meanwhile(found: Finding) -> bool:
    return bool(_meanwhile(found, ("DELETE",)))


@clause("the node holds nothing of the client")
def holds_nothing(found: Finding) -> bool:
    return found.last.held is None


@clause("a CHANGE of the client was being handled at the same time")
def changed_meanwhile(found: Finding) -> bool:
    return bool(_meanwhile(found, CHANGES))


@clause("that CHANGE has the revision that the verify asks for")
def changed_to_that_revision(found: Finding) -> bool:
    changes = _meanwhile(found, CHANGES)
    return not changes or any(each.request.revision == found.evidence["asked_revision"] for each in changes)


MIXED = Symptom(
    bug="B05",
    about=("INV-ACK", "INV-CONV", "INV-REV"),
    sentence="Two CHANGEs of a client, or a CHANGE and a snapshot, are applied at once, service by service: the "
    "content is neither's, or the older one's under the newer revision.",
    clauses=(two_at_once, not_what_it_carried, came_of_both),
)
GIVEN_TORN = Symptom(
    bug="B05",
    about=("INV-REV",),
    sentence="A snapshot is made while a CHANGE is being applied: it has the revision of that, and not its content.",
    clauses=(came_with_a_snapshot, source_was_applying, change_carried_another),
    releases=Span(since="2.1.2"),
)
GIVEN_EARLY = Symptom(
    bug="B05",
    about=("INV-REV",),
    sentence="A snapshot is made while a CHANGE is being applied: it has the content of that, and the revision before.",
    clauses=(came_with_a_snapshot, source_was_applying_that_content, source_held_that_revision),
    releases=Span(since="2.1.2"),
)
GIVEN_MIXED = Symptom(
    bug="B05",
    about=("INV-CONV", "INV-REV"),
    sentence="A snapshot brings the content of two CHANGEs that its source applied at once.",
    clauses=(came_with_a_snapshot, source_held_it, *map(_of_source, MIXED.clauses)),
)
READ_TORN = Symptom(
    bug="B05",
    about=("INV-CONV", "INV-REV"),
    sentence="A CHANGE is made in two steps: the content is read, then the revision of what has become of it.",
    clauses=(left_with_that_content, content_of_before, left_in_the_moment),
    releases=Span(since="2.1.2"),
)
SENT_EARLY = Symptom(
    bug="B05",
    about=("INV-REV",),
    sentence="A change is made in two steps, the content and then the revision; a CHANGE between them has the old "
    "revision.",
    clauses=(had_sent_it, published_another_before, published_it_next),
    releases=Span(since="2.1.2"),
)
REMOVED = Symptom(
    bug="B05",
    about=("INV-ACK",),
    sentence="A DELETE comes between two steps of a CHANGE, whose further ones go into a client that is gone.",
    clauses=(deleted_meanwhile, holds_nothing),
)
CONFIRMED = Symptom(
    bug="B05",
    about=("INV-VERIFY",),
    sentence="A verify comes between two steps of a CHANGE, and finds a client that is not whole yet.",
    clauses=(changed_meanwhile, changed_to_that_revision),
)
SYMPTOMS = (MIXED, GIVEN_TORN, GIVEN_EARLY, GIVEN_MIXED, READ_TORN, SENT_EARLY, REMOVED, CONFIRMED)
