"""B05: a change is read, or two are applied, while one is being made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distro_model.release import Span
from distro_spark.history import SYNCS, ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    CLOCK_SLACK_MS,
    Handled,
    cached_per_history,
    change_before,
    count_before,
    handled_requests,
    having,
    own_of,
    sent_messages,
    state_before,
    states_of,
)
from distro_spark.symptoms.symptom import Clauses, Symptom, symptom
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import Kind

_NEXT_WITHIN_MS = 2000
"""Who plays a client of a real server reads what its node holds when the request has been answered."""

_WITH_REVISIONS = Span(since="2.1.2")


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


def _loaded_meanwhile(found: Finding, own: Handled) -> list[Handled]:
    """The copies from snapshots that the node took while it handled that request."""
    loads = found.history.node(found.node).loads
    answers = {row.message for row in loads if row.kind == Kind.REPLY_RECEIVED}
    taken = (row for row in states_of(found.history, found.node) if row.message in answers)
    return [Handled(row, row.seq, row.seq) for row in taken if own.begin < row.seq < own.end]


@symptom("B05", "INV-ACK", "INV-CONV", "INV-REV")
def mixed(found: Finding) -> Clauses:
    """Two CHANGEs of a client, or a CHANGE and a snapshot, are applied at once, service by service: the content is
    neither's, or the older one's under the newer revision."""
    own = _own(found)
    others = [] if own is None else [*_meanwhile(found, CHANGES), *_loaded_meanwhile(found, own)]
    yield (
        "while the node handled the sync that the violation goes by, it handled a CHANGE or a snapshot of that client",
        bool(others),
    )
    if own is None:
        return
    carried, held = own.request.revision, found.last.revision
    is_under_a_later = carried is not None and held is not None and carried < held
    yield (
        "it is not what that sync carried: another content, or the same under a later revision",
        own.request.digest is not None and (own.request.digest != found.actual or is_under_a_later),
    )
    if others:
        yield "the node has held that content since it had handled both", _came_of(found, [own, *others])


def _came_of(found: Finding, both: Sequence[Handled]) -> bool:
    until = min(max(each.end for each in both), found.last.seq)
    states = states_of(found.history, found.node)
    count = count_before(states, until + 1)
    later = states[count : count_before(states, found.last.seq + 1)]
    came = bool(later and later[0].kind == Kind.OBSERVED) or (count > 0 and states[count - 1].digest == found.actual)
    return came and all(row.digest == found.actual for row in later)


def _snapshot_reply(found: Finding) -> Row | None:
    """With which a node sent the snapshot that brought the content."""
    came = change_before(found.history, found.node, found.last.seq + 1)
    if came is None or came.message is None:
        return None
    rows = (row for node in found.history.nodes.values() for row in node.loads)
    wanted = (Kind.REPLY_SENT, found.node, came.message)
    return next((row for row in rows if (row.kind, row.peer, row.message) == wanted), None)


def _applied_at_source(found: Finding, given: Row) -> list[Row]:
    handled = (each for each in _handled(found.history, given.node) if each.begin < given.seq < each.end)
    return [each.request for each in handled if each.request.operation in CHANGES]


def _is_content(found: Finding, digest: str | None) -> bool:
    """To hold a client that publishes nothing is to hold nothing, for INV-CONV."""
    return digest == found.actual or (digest == NOTHING_PUBLISHED and found.actual in (None, "nothing"))


@symptom("B05", "INV-CONV", "INV-REV", releases=_WITH_REVISIONS)
def given_torn(found: Finding) -> Clauses:
    """A snapshot is made while a CHANGE is being applied: it has the revision of that, and not its content."""
    given = _snapshot_reply(found)
    yield "the content came with a snapshot", given is not None
    if given is None:
        return
    came = change_before(found.history, found.node, found.last.seq + 1)
    revision = found.evidence.get("revision", came.revision if came is not None else None)
    contents = [row.digest for row in _applied_at_source(found, given) if row.revision == revision]
    yield "the node that sent the snapshot was handling a CHANGE to that revision at that time", bool(contents)
    yield "that CHANGE carried another content", not any(_is_content(found, each) for each in contents)


@symptom("B05", "INV-REV", releases=_WITH_REVISIONS)
def given_early(found: Finding) -> Clauses:
    """A snapshot is made while a CHANGE is being applied: it has the content of that, or of a change that it
    includes, and the revision before."""
    given = _snapshot_reply(found)
    yield "the content came with a snapshot", given is not None
    if given is None:
        return
    held = state_before(found.history, given.node, given.seq)
    is_applying = any(_includes(found, row, held) for row in _applied_at_source(found, given))
    had_revision = held is not None and held.revision == found.evidence["revision"]
    yield (
        "the node that sent the snapshot was handling a CHANGE with that content, or that includes it, at that time",
        is_applying,
    )
    yield "the node that sent the snapshot held that revision before that CHANGE", had_revision


def _includes(found: Finding, change: Row, held: Row | None) -> bool:
    """Whether the content is that of the CHANGE, or one that its client published after what the node holds and before
    that: services are applied one after the other."""
    if found.actual == change.digest:
        return True
    since = held.revision if held is not None else None
    if since is None or change.revision is None:
        return False
    published = (row for row in having(found.history, found.actual) if row.kind == Kind.CLIENT_CHANGED)
    return any(since < row.revision < change.revision for row in published if row.revision is not None)


def _at_source(found: Finding, given: Row) -> Finding | None:
    """The violation at the node where it arose: the source of the snapshot, or the source of that one, and so on while
    these hold the content."""
    held = state_before(found.history, given.node, given.seq)
    if held is None or not _is_content(found, held.digest) or found.last.revision not in (None, held.revision):
        return None
    at_source = replace(found, node=given.node, last=held, after=None)
    before = _snapshot_reply(at_source)
    return at_source if before is None else _at_source(at_source, before) or at_source


def _passed_on(found: Finding, there: Symptom) -> Clauses:
    """The content that a snapshot brings has that symptom at its source."""
    given = _snapshot_reply(found)
    yield "the content came with a snapshot", given is not None
    if given is None:
        return
    at_source = _at_source(found, given)
    yield "the node that sent the snapshot held that content, under that revision", at_source is not None
    for each, holds in there.look(at_source) if at_source is not None else ():
        yield f"at the node that sent the snapshot, {each}", holds


@symptom("B05", "INV-CONV", "INV-REV")
def given_mixed(found: Finding) -> Clauses:
    """A snapshot brings the content of two CHANGEs that its source applied at once."""
    yield from _passed_on(found, mixed)


@symptom("B05", "INV-CONV", "INV-REV", releases=_WITH_REVISIONS)
def read_torn(found: Finding) -> Clauses:
    """A CHANGE is made in two steps: the content is read, then the revision of what has become of it."""
    sent = sent_messages(found.history).get(found.message or "")
    is_that = sent is not None and sent.digest == found.actual
    yield "the message that the violation goes by left its owner with that content", is_that
    if sent is None or not is_that:
        return
    own = own_of(found.history, sent.node)
    count = count_before(own, sent.seq)
    before, change = own[count - 2 : count] if count > 1 else (None, None)
    yield (
        "it has the content of before the owner's last change, under the revision of after",
        before is not None and change is not None and (before.digest, change.revision) == (sent.digest, sent.revision),
    )
    if change is not None:
        yield "it left in the moment of that change", sent.at_ms - change.at_ms <= CLOCK_SLACK_MS


@symptom("B05", "INV-CONV", "INV-REV", releases=_WITH_REVISIONS)
def given_read_torn(found: Finding) -> Clauses:
    """A snapshot brings the content of a CHANGE that was made in two steps."""
    yield from _passed_on(found, read_torn)


@symptom("B05", "INV-CONV", "INV-REV", releases=_WITH_REVISIONS)
def torn_passed_on(found: Finding) -> Clauses:
    """A snapshot brings a copy that a torn snapshot had brought to its source."""
    yield from _passed_on(found, given_torn)


@symptom("B05", "INV-REV", releases=_WITH_REVISIONS)
def sent_early(found: Finding) -> Clauses:
    """A change is made in two steps, the content and then the revision; a CHANGE between them has the old revision."""
    with_both = [row for row in having(found.history, found.actual) if row.revision == found.evidence["revision"]]
    sent = [row for row in with_both if row.kind == Kind.REQUEST_SENT and row.at_ms <= found.last.at_ms]
    yield "the owner had sent that content under that revision by then", bool(sent)
    if not sent:
        return
    early = min(sent, key=lambda row: row.at_ms)
    own = own_of(found.history, early.node)
    count = count_before(own, early.seq)
    before, following = own[max(count - 1, 0) : count], own[count : count + 1]
    yield (
        "it had published another content under that revision when it sent that",
        any(row.revision == early.revision and row.digest != early.digest for row in before),
    )
    yield (
        "that content is what it published next, in that moment",
        any(row.digest == early.digest and row.at_ms - early.at_ms <= _NEXT_WITHIN_MS for row in following),
    )


@symptom("B05", "INV-ACK")
def removed(found: Finding) -> Clauses:
    """A DELETE comes between two steps of a CHANGE, whose further ones go into a client that is gone."""
    yield "a DELETE of the client was being handled at the same time", bool(_meanwhile(found, ("DELETE",)))
    yield "the node holds nothing of the client", found.last.held is None


@symptom("B05", "INV-VERIFY")
def confirmed(found: Finding) -> Clauses:
    """A verify comes between two steps of a CHANGE, and finds a client that is not whole yet."""
    revisions = [each.request.revision for each in _meanwhile(found, CHANGES)]
    yield "a CHANGE of the client was being handled at the same time", bool(revisions)
    if revisions:
        yield "that CHANGE has the revision that the verify asks for", found.evidence["asked_revision"] in revisions
