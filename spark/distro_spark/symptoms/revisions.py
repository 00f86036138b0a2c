"""A revision that does not stand for what it is said of.

| bug | what has to be seen |
|---|---|
| B06 | the client is one of the HTTP API, and its owner itself published both contents under one revision |
| B06 | or its owner, which does not say its revisions (logs), dropped what expired and sent the rest under that one |
| B10 | the copy has the stamp of its creation or of its last batch; by then its owner had published the content later |
| B10 | or it came with a later revision, from an owner that had this content and does not say its revisions (logs) |
| B10 | or it has that stamp over the older content of a snapshot that came late, there or where it is from |
| B18 | the client has a connection, its owner itself published both contents under one revision, maybe a batch |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from distro_spark.history import GONE, OWN_CONNECTION, ClientHistory, Row, Violation
from distro_spark.symptoms.look import (
    CHANGES,
    Life,
    came_with_a_load,
    count_before,
    counts_not_all,
    having,
    life_at,
    own_of,
    remembered,
    sent_messages,
    states_of,
)
from distro_traces.content import digest
from distro_traces.event import BATCH, EXPIRED, STATE_KINDS, Kind

_EMPTY = digest(())


def creation_stamp(story: ClientHistory, told: Violation) -> bool:
    """B10. The node's copy has the revision that it was created with, or that came with a batch, and the content is
    that of a later one: its owner had published it so by then, or held it when it sent it with a later revision.
    Or it was sent by a member that has no more of the client than such a copy."""
    if told.last.kind in STATE_KINDS:
        return _kept_its_stamp(story, told, told.last)
    stamped = [
        row
        for row in having(story, told.evidence["actual"])
        if row.kind in STATE_KINDS
        and not row.owned
        and row.at_ms <= told.last.at_ms
        and str(row.revision) == str(told.evidence["revision"])
    ]
    sender = _sender_of(story, told.last)
    return sender in stamped and any(_kept_its_stamp(story, told, row) for row in stamped)


def _carried(story: ClientHistory, about: Row) -> set[int]:
    """The revisions that the message of this row is said to carry, where it leaves or where it arrives."""
    return _carried_by_message(story).get(about.message or "", set())


@remembered
def _carried_by_message(story: ClientHistory) -> Mapping[str, set[int]]:
    carried: defaultdict[str, set[int]] = defaultdict(set)
    for row in story.rows:
        is_request = row.kind in (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED)
        if is_request and row.message is not None and row.revision is not None:
            carried[row.message].add(row.revision)
    return carried


def _sender_of(story: ClientHistory, message: Row) -> Row | None:
    """What the sender of this message held of the client when it sent it."""
    sent = sent_messages(story).get(message.message or "")
    if sent is None:
        return None
    states = states_of(story, sent.node)
    count = count_before(states, sent.seq)
    return states[count - 1] if count else None


def _kept_its_stamp(story: ClientHistory, told: Violation, offence: Row) -> bool:
    stamp = int(str(told.evidence["revision"]))
    life = life_at(story, offence.node, offence.seq)
    if not _is_of_creation_or_batch(story, life, offence.seq, stamp):
        return False
    if offence.kind == Kind.OBSERVED:  # what was only read then came before
        rows = life.until(offence.seq)
        came = [row for row in rows if row.kind == Kind.REPLICA_APPLIED and row.digest == offence.digest]
        offence = came[0] if came else offence
    carried = _carried(story, offence)
    if not all(_is_later(story, revision, stamp) for revision in carried):
        return False
    sender = _sender_of(story, offence)
    if carried and sender is not None and sender.owned and sender.revision is None:
        return sender.digest == told.evidence["actual"]
    return any(
        row.revision is not None and _is_later(story, row.revision, stamp) and row.at_ms <= offence.at_ms
        for row in having(story, told.evidence["actual"])
        if row.owned or row.kind == Kind.REQUEST_SENT
    )


def _is_later(story: ClientHistory, revision: int, than: int) -> bool:
    """That of a client of the HTTP API is a hash, and tells no order."""
    return revision > than if story.has_connection else revision != than


def _is_of_creation_or_batch(story: ClientHistory, life: Life, seq: int, stamp: int) -> bool:
    """The copy was created with this stamp, or has it since a batch came."""
    there, brought_by = life.stamp_at(seq)
    return there == stamp and (brought_by is None or _came_with_a_batch(story, brought_by))


@remembered
def _came_with_a_batch(story: ClientHistory, taken: Row) -> bool:
    """A copy takes over the revision of what has a batch in it (docs/protocol #receive-revision): of a message that is
    recorded as one, whatever content the copy has then (two CHANGEs may have been applied at once, B05), or of a client
    whose owner published something without counting it, and that was sent under this revision."""
    sent = sent_messages(story).get(taken.message or "")
    if sent is not None and sent.detail == BATCH and sent.revision == taken.revision:
        return True
    own = [row for node in story.by_node for row in own_of(story, node) if row.at_ms <= taken.at_ms]
    return counts_not_all(own) and any(
        row.kind == Kind.REQUEST_SENT and row.revision == taken.revision for row in having(story, taken.digest)
    )


def stamp_over_a_snapshot(story: ClientHistory, told: Violation) -> bool:
    """B10. Content of an earlier revision came with a snapshot; the copy was newer already, and its stamp is the one
    that it was created with, or that came with a batch. Or the copy came with a snapshot, and who could give it had one
    like that."""
    actual = told.evidence["actual"]
    rows = life_at(story, told.node, told.last.seq).until(told.last.seq)
    loaded = next((row for row in reversed(rows) if row.digest == actual and came_with_a_load(story, row)), None)
    if loaded is None:
        return False
    givers = (
        row
        for row in having(story, actual)
        if row.kind == Kind.REPLICA_APPLIED
        and row.node != told.node
        and row.revision == loaded.revision
        and row.at_ms <= loaded.at_ms
        and came_with_a_load(story, row)
    )
    return any(_is_over_a_newer_one(story, row) for row in (loaded, *givers))


def _is_over_a_newer_one(story: ClientHistory, loaded: Row) -> bool:
    """The copy was there, with the stamp of its creation or of a batch, and its owner had this content before."""
    life, stamp = life_at(story, loaded.node, loaded.seq), loaded.revision
    return (
        stamp is not None
        and any(row.kind in STATE_KINDS for row in life.until(loaded.seq - 1))
        and _is_of_creation_or_batch(story, life, loaded.seq, stamp)
        and any(
            row.kind in OWN_CONNECTION and row.revision is not None and row.revision < stamp
            for row in having(story, loaded.digest)
        )
    )


def health_not_counted(story: ClientHistory, told: Violation) -> bool:
    """B06. Neither health nor expiry moves the revision of a client without a connection on, and it is a sum: its owner
    published both contents under one, at that time or before."""
    published = {
        content
        for content in (told.evidence["expected"], told.evidence["actual"])
        for row in having(story, content)
        if row.kind in OWN_CONNECTION and row.revision == told.evidence["revision"] and row.at_ms <= told.last.at_ms
    }
    return not story.has_connection and published == {told.evidence["expected"], told.evidence["actual"]}


def expired_at_its_owner(story: ClientHistory, told: Violation) -> bool:
    """B06, where owners do not say their revisions. What the copy has came under this very revision, and its owner held
    it then; the last that happened there is that something expired, and nothing else did since it held the other."""
    sender = _sender_of(story, told.last)
    if story.has_connection or sender is None or sender.revision is not None or not _is_by_beats(sender, EXPIRED):
        return False
    if sender.digest != told.evidence["actual"] or _carried(story, told.last) != {told.evidence["revision"]}:
        return False
    own = own_of(story, sender.node)
    for row in reversed(own[: count_before(own, sender.seq)]):
        if row.digest == told.evidence["expected"]:
            return True
        if not _is_by_beats(row, EXPIRED, "healthy"):
            return False
    return False


def _is_by_beats(row: Row, *how: str) -> bool:
    """It says that its beats came or stayed out, and not its client, changed it."""
    return row.kind == Kind.CLIENT_CHANGED and (row.detail or "").endswith(how)


def not_counted(story: ClientHistory, told: Violation) -> bool:
    """B18. A batch does not move the revision on: the client's own connection published two contents under one, and no
    message shows that the later one holds none. Of a copy that differs it has to be these two."""
    wanted = {told.evidence["expected"], told.evidence["actual"]} if "checkpoints" in told.evidence else set()
    if "nothing" in wanted and _holds_empty(story, told.node):
        wanted = wanted - {"nothing"} | {_EMPTY}
    published = [_published(story, node) for node in story.by_node]
    if "revision" in told.evidence:
        revision = told.evidence["revision"]
        of_revisions = [contents[revision] for contents in published if revision in contents]
    else:
        of_revisions = [each for contents in published for each in contents.values()]
    return story.has_connection and any(
        wanted <= contents.keys() and _may_be_batches(story, contents) for contents in of_revisions
    )


def _may_be_batches(story: ClientHistory, contents: Iterable[str | None]) -> bool:
    """One of the contents after the first may hold a batch: a message says so, or no message has it."""
    carried, batches = _carried_contents(story)
    return any(content in batches or content not in carried for content in [*contents][1:])


@remembered
def _carried_contents(story: ClientHistory) -> tuple[frozenset[str | None], frozenset[str | None]]:
    """Those of all changes that a message has, and of those that hold a batch."""
    carriers = [row for row in story.rows if row.operation in CHANGES]
    return frozenset(row.digest for row in carriers), frozenset(row.digest for row in carriers if row.detail == BATCH)


def _holds_empty(story: ClientHistory, node: str) -> bool:
    """The client is there, and publishes nothing."""
    states = states_of(story, node)
    return bool(states) and states[-1].kind not in GONE and states[-1].digest == _EMPTY


@remembered
def _published(story: ClientHistory, node: str) -> Mapping[object, Mapping[str | None, None]]:
    """By revision, what the node itself held of the client and had from nobody, the first before the next."""
    published: defaultdict[object, dict[str | None, None]] = defaultdict(dict)
    for row in own_of(story, node):
        published[row.revision][row.digest] = None
    return published
