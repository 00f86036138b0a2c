"""A revision that does not stand for what it is said of.

| bug | what has to be seen |
|---|---|
| B06 | the client is one of the HTTP API, and its owner itself published both contents under one revision |
| B06 | or its owner, which does not say its revisions (logs), dropped what expired and sent the rest under that one |
| B10 | the copy has the stamp of its creation or of its last batch; by then its owner had published the content later |
| B10 | or it came with a later revision, from an owner that had this content and does not say its revisions (logs) |
| B10 | or it has that stamp over the older content of a snapshot that came late |
| B18 | the client has a connection, its owner itself published both contents under one revision, maybe a batch |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from distro_spark.story import GONE, OWN_CONNECTION, Row, Story, Told
from distro_spark.symptoms.look import CHANGES, counts_not_all, lives
from distro_traces.content import digest
from distro_traces.event import BATCH, EXPIRED, STATE_KINDS, Kind

_EMPTY = digest(())


def creation_stamp(story: Story, told: Told) -> bool:
    """B10. The node's copy has the revision that it was created with, or that came with a batch, and the content is
    that of a later one: its owner had published it so by then, or held it when it sent it with a later revision.
    Or it was sent by a member that has no more of the client than such a copy."""
    if told.last.kind in STATE_KINDS:
        return _kept_its_stamp(story, told, told.last)
    stamped = [
        row
        for row in story.rows
        if row.kind in STATE_KINDS and not row.owned and row.at_ms <= told.last.at_ms and _is_what_was_sent(told, row)
    ]
    sender = _sender_of(story, told.last)
    return sender in stamped and any(_kept_its_stamp(story, told, row) for row in stamped)


def _is_what_was_sent(told: Told, row: Row) -> bool:
    return (str(row.revision), row.digest) == (str(told.evidence["revision"]), told.evidence["actual"])


def _carried(story: Story, about: Row) -> set[int]:
    """The revisions that the message of this row is said to carry, where it leaves or where it arrives."""
    requests = (row for row in story.rows if row.kind in (Kind.REQUEST_SENT, Kind.REQUEST_RECEIVED))
    return {
        row.revision
        for row in requests
        if row.revision is not None and row.message is not None and row.message == about.message
    }


def _sender_of(story: Story, message: Row) -> Row | None:
    """What the sender of this message held of the client when it sent it."""
    for sent in story.rows:
        if sent.kind == Kind.REQUEST_SENT and sent.message is not None and sent.message == message.message:
            states = [row for row in story.by_node[sent.node] if row.kind in STATE_KINDS and row.seq < sent.seq]
            return states[-1] if states else None
    return None


def _kept_its_stamp(story: Story, told: Told, offence: Row) -> bool:
    stamp = int(str(told.evidence["revision"]))
    *_, life = lives(story, offence.node, offence.seq)
    if not _is_of_creation_or_batch(story, life, stamp):
        return False
    if offence.kind == Kind.OBSERVED:  # what was only read then came before
        came = [row for row in life if row.kind == Kind.REPLICA_APPLIED and row.digest == offence.digest]
        offence = came[0] if came else offence
    carried = _carried(story, offence)
    if not all(_is_later(story, revision, stamp) for revision in carried):
        return False
    sender = _sender_of(story, offence)
    if carried and sender is not None and sender.owned and sender.revision is None:
        return sender.digest == told.evidence["actual"]
    return any(
        row.digest == told.evidence["actual"]
        and row.revision is not None
        and _is_later(story, row.revision, stamp)
        and row.at_ms <= offence.at_ms
        for row in story.rows
        if row.owned or row.kind == Kind.REQUEST_SENT
    )


def _is_later(story: Story, revision: int, than: int) -> bool:
    """That of a client of the HTTP API is a hash, and tells no order."""
    return revision > than if story.has_connection else revision != than


def _is_of_creation_or_batch(story: Story, life: Iterable[Row], stamp: int | None) -> bool:
    """The copy was created with this stamp, or has it since a batch came."""
    stamped = [row for row in life if row.revision is not None]
    before = [place for place, row in enumerate(stamped) if row.revision != stamp]
    return bool(stamped) and (not before or _came_with_a_batch(story, stamped, before[-1] + 1))


def _came_with_a_batch(story: Story, stamped: list[Row], place: int) -> bool:
    """A copy takes over the revision of what has a batch in it (docs/protocol #receive-revision): of a client whose
    owner published something without counting it, and that was sent under this revision."""
    if place == len(stamped):
        return False
    taken = stamped[place]
    own = [row for row in story.rows if row.kind in OWN_CONNECTION and row.at_ms <= taken.at_ms]
    return counts_not_all(own) and any(
        row.kind == Kind.REQUEST_SENT and (row.revision, row.digest) == (taken.revision, taken.digest)
        for row in story.rows
    )


def stamp_over_a_snapshot(story: Story, told: Told) -> bool:
    """B10. Content of an earlier revision came by a message that is none about this client alone, a snapshot; the copy
    was newer already, and its stamp is the one that it was created with, or that came with a batch."""
    actual = told.evidence["actual"]
    *_, life = lives(story, told.node, told.last.seq)
    calls = {row.message for row in story.rows if row.operation is not None}
    loaded = [row for row in life[1:] if row.digest == actual and row.message not in (None, *calls)]
    stamp = loaded[-1].revision if loaded else None
    if stamp is None or not _is_of_creation_or_batch(story, life, stamp):
        return False
    return any(
        row.kind in OWN_CONNECTION and row.digest == actual and row.revision is not None and row.revision < stamp
        for row in story.rows
    )


def health_not_counted(story: Story, told: Told) -> bool:
    """B06. Neither health nor expiry moves the revision of a client without a connection on, and it is a sum: its owner
    published both contents under one, at that time or before."""
    both = {told.evidence["expected"], told.evidence["actual"]}
    until = [row for row in story.rows if row.at_ms <= told.last.at_ms]
    return not story.has_connection and both <= _published(until).get(told.evidence["revision"], {}).keys()


def expired_at_its_owner(story: Story, told: Told) -> bool:
    """B06, where owners do not say their revisions. What the copy has came under this very revision, and its owner held
    it then; the last that happened there is that something expired, and nothing else did since it held the other."""
    sender = _sender_of(story, told.last)
    if story.has_connection or sender is None or sender.revision is not None or not _is_by_beats(sender, EXPIRED):
        return False
    if sender.digest != told.evidence["actual"] or _carried(story, told.last) != {told.evidence["revision"]}:
        return False
    own = [row for row in story.by_node[sender.node] if row.kind in OWN_CONNECTION and row.seq < sender.seq]
    for row in reversed(own):
        if row.digest == told.evidence["expected"]:
            return True
        if not _is_by_beats(row, EXPIRED, "healthy"):
            return False
    return False


def _is_by_beats(row: Row, *how: str) -> bool:
    """It says that its beats came or stayed out, and not its client, changed it."""
    return row.kind == Kind.CLIENT_CHANGED and (row.detail or "").endswith(how)


def not_counted(story: Story, told: Told) -> bool:
    """B18. A batch does not move the revision on: the client's own connection published two contents under one, and no
    message shows that the later one holds none. Of a copy that differs it has to be these two."""
    wanted = {told.evidence["expected"], told.evidence["actual"]} if "checkpoints" in told.evidence else set()
    if "nothing" in wanted and _holds_empty(story, told.node):
        wanted = wanted - {"nothing"} | {_EMPTY}
    return story.has_connection and any(
        wanted <= contents.keys()
        and told.evidence.get("revision", revision) == revision
        and _may_be_batches(story, contents)
        for node in story.by_node.values()
        for revision, contents in _published(node).items()
    )


def _may_be_batches(story: Story, contents: Iterable[str | None]) -> bool:
    """One of the contents after the first may hold a batch: a message says so, or no message has it."""
    carriers = [row for row in story.rows if row.operation in CHANGES]
    carried, batches = {row.digest for row in carriers}, {row.digest for row in carriers if row.detail == BATCH}
    return any(content in batches or content not in carried for content in [*contents][1:])


def _holds_empty(story: Story, node: str) -> bool:
    """The client is there, and publishes nothing."""
    states = [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    return bool(states) and states[-1].kind not in GONE and states[-1].digest == _EMPTY


def _published(rows: Iterable[Row]) -> dict[object, dict[str | None, None]]:
    """By revision, what owners themselves held of the client and had from nobody, the first before the next."""
    published: defaultdict[object, dict[str | None, None]] = defaultdict(dict)
    for row in rows:
        if row.kind in OWN_CONNECTION:
            published[row.revision][row.digest] = None
    return published
