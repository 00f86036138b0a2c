"""What a known bug looks like in the rows of a client: by what was stamped, sent, answered and when.

Each is a look at the violation (`Told`) and the client's whole history (`Story`). `known` says which of them excuses
what, in which releases.

| bug | what has to be seen |
|---|---|
| B10 | the copy has the stamp of its creation or of its last batch; by then its owner had published the content later |
| B10 | or it has that stamp over the older content of a snapshot that came late |
| B24 | a CHANGE to that node failed before the queued DELETE was due; the owner sends DELETEs, and none to that node |
| B24 | or one was owed while the link to that node was cut or held: what cannot be sent fails where none sees it |
| B02 | the node acknowledged the content that it does not have, and confirmed its copy in a verify |
| B17 | no verify had renewed the copy that expired, but a CHANGE had less than a lease ago |
| B17 | or that happened less than a round before the checkpoint |
| D7 | a client of the HTTP API changed at a node that has said nothing of it to anybody since |
| B31 | the copy was removed half a minute after its renewal, and one check |
| B33 | the node answered another one's load before it was loaded |
| B03 | whoever played the client says that it fell silent |
| B01 | before it, somebody's message was applied to the client on the node that holds its connection |
| B05 | or a message made in the moment of a change has the content of before under the revision of after |
| B05 | or the content of after under the revision of before, sent before the owner was done with the change |
| B06 | the client is one of the HTTP API, and its owner itself published both contents under one revision |
| B18 | the client has a connection, and its owner itself published both contents under one revision |
| B19 | the node acknowledged and left out a CHANGE that carries a batch |
| B19 | or what came after one that its owner had not counted, where the recording does not say what carries a batch |
| B19 | the copy's lease ended; its owner had verified nobody and asked for a snapshot again after it was given one |
| B05 | the content came with a snapshot, whose giver was handling a CHANGE about the client then |
| B05 | while the node handled the call in question, another one about the client was being handled there too |
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from distro_spark.story import END, GONE, LEASE, LEASE_MS, OWN_CONNECTION, RESETS, SYNCS, Row, Story, Told
from distro_traces.content import digest
from distro_traces.event import BATCH, STATE_KINDS, Kind, Outcome

_CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""

_ANSWERED_WITHIN_MS = 2000
"""Who plays a client of a real server reads what its node holds when the request has been answered."""

_CALL_TIMEOUT_MS = 3000

_ROUND_MS = 6_500
"""Of verification and the sync that follows a failure."""

_LOAD_AGAIN_MS = 25_000
"""A load that was not complete begins again 30 s later, before 2.2.1 after a minute."""

_EMPTY = digest(())
_CHANGES = ("ADD", "CHANGE")


def creation_stamp(story: Story, told: Told) -> bool:
    """B10. The node's copy has the revision that it was created with, or that came with a batch, and the content is
    that of a later one: it came with a message that carries a later revision, or its owner had published it by then.
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


def _sender_of(story: Story, message: Row) -> Row | None:
    """What the sender of this message held of the client when it sent it."""
    for sent in story.rows:
        if sent.kind == Kind.REQUEST_SENT and sent.message == message.message:
            states = [row for row in story.by_node[sent.node] if row.kind in STATE_KINDS and row.seq < sent.seq]
            return states[-1] if states else None
    return None


def _kept_its_stamp(story: Story, told: Told, offence: Row) -> bool:
    stamp = int(str(told.evidence["revision"]))
    *_, life = _lives(story, offence.node, offence.seq)
    if not _is_of_creation_or_batch(story, life, stamp):
        return False
    sent = [row for row in story.rows if row.kind == Kind.REQUEST_SENT]
    carried = [row.revision for row in sent if row.message is not None and row.message == offence.message]
    if any(revision is not None and not _is_later(story, revision, stamp) for revision in carried):
        return False
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
    return _counts_not_all(own) and any(
        row.kind == Kind.REQUEST_SENT and (row.revision, row.digest) == (taken.revision, taken.digest)
        for row in story.rows
    )


def _counts_not_all(own: list[Row]) -> bool:
    """Among these rows of owners one published something and left its revision as it was."""
    return any((one.node, one.revision) == (two.node, two.revision) for one, two in pairwise(own))


def stamp_over_a_snapshot(story: Story, told: Told) -> bool:
    """B10. Content of an earlier revision came by a message that is none about this client alone, a snapshot; the copy
    was newer already, and its stamp is the one that it was created with, or that came with a batch."""
    actual = told.evidence["actual"]
    *_, life = _lives(story, told.node, told.last.seq)
    calls = {row.message for row in story.rows if row.operation is not None}
    loaded = [row for row in life[1:] if row.digest == actual and row.message not in (None, *calls)]
    stamp = loaded[-1].revision if loaded else None
    if stamp is None or not _is_of_creation_or_batch(story, life, stamp):
        return False
    return any(
        row.kind in OWN_CONNECTION and row.digest == actual and row.revision is not None and row.revision < stamp
        for row in story.rows
    )


def swallowed_delete(story: Story, told: Told) -> bool:
    """B24. The DELETE is due one sync delay and a tick of the engine after the client left, or a retry and a tick after
    it failed; that the owner sends any is seen of whatever client and peer in the run."""
    is_slow = re.match(r"nacos-2\.[01]\.", story.profile)
    sync_ms, retry_ms = (2100, 5100) if is_slow else (1100, 3100)
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
    until_ms = queued.at_ms + (retry_ms if deletes else sync_ms) + _CLOCK_SLACK_MS
    return _owed_over_a_cut(story, told.node, queued, until_ms) or any(
        row.kind == Kind.REPLY_RECEIVED
        and row.operation in _CHANGES
        and row.outcome != Outcome.SUCCESS
        and row.at_ms <= until_ms
        for row in since
        if row.seq > queued.seq
    )


def _owed_over_a_cut(story: Story, node: str, queued: Row, until_ms: int) -> bool:
    """The node has not confirmed what the client published last, and between the last moment before the DELETE was
    queued at which a call that times out meanwhile can have begun, and when the DELETE was due, the link was cut or
    held."""
    own = [row for row in story.by_node[queued.node] if row.seq < queued.seq]
    changes = [row.seq for row in own if row.kind in OWN_CONNECTION]
    confirmed = [row.seq for row in own if row.peer == node and row.operation in _CHANGES and _succeeded(row)]
    is_owed = bool(changes) and (not confirmed or confirmed[-1] < changes[-1])
    from_ms = queued.at_ms - _CALL_TIMEOUT_MS
    cuts = story.cuts(queued.node, node)
    return is_owed and any(cut_ms <= until_ms and healed_ms >= from_ms for cut_ms, healed_ms in cuts)


def _succeeded(row: Row) -> bool:
    return (row.kind, row.outcome) == (Kind.REPLY_RECEIVED, Outcome.SUCCESS)


def not_renewed_by_sync(_: Story, told: Told) -> bool:
    """B17. What the invariant's own signature says."""
    return told.evidence["signature"] == "sync does not renew"


def about_to_come_back(story: Story, told: Told) -> bool:
    """B17. As `not_renewed_by_sync`, at a checkpoint before the next round brings the copy back."""
    gone = told.first
    if gone.detail != LEASE or told.last.at_ms - gone.at_ms > _ROUND_MS:
        return False
    lasted = [row for row in story.by_node[gone.node] if 0 < gone.at_ms - row.at_ms < LEASE_MS]
    confirmed = [row.operation for row in lasted if (row.kind, row.outcome) == (Kind.REPLY_SENT, Outcome.SUCCESS)]
    return "VERIFY" not in confirmed and any(operation in _CHANGES for operation in confirmed)


def not_passed_on(story: Story, told: Told) -> bool:
    """D7. A client of the HTTP API was changed at a node that has said nothing of it to anybody: a request by version 2
    is not passed on. (That an owner is silent, INV-DELAY finds.)"""
    changed = told.first
    rows = story.by_node.get(changed.node, [])
    acts = any(row.kind == Kind.REQUEST_SENT and row.seq > changed.seq for row in rows)
    return not story.has_connection and changed.kind in OWN_CONNECTION and not acts


def half_a_minute(story: Story, told: Told) -> bool:
    """B31. The copy was removed when 30 s and up to one check of 5 s had passed since a verify renewed it, or since it
    was created: in these releases a CHANGE renews nothing."""
    (*_, life) = _lives(story, told.node, told.last.seq - 1)
    created = [row.at_ms for row in life if row.kind == Kind.REPLICA_APPLIED]
    confirmed = [
        row.at_ms
        for row in story.by_node[told.node]
        if row.seq < told.last.seq
        and row.kind == Kind.REPLY_SENT
        and (row.operation, row.outcome) == ("VERIFY", Outcome.SUCCESS)
    ]
    lasted_ms = told.last.at_ms - max((*created[:1], *confirmed), default=told.first.at_ms)
    return told.evidence["signature"] == "short lease" and 30_000 <= lasted_ms <= 35_000 + _CLOCK_SLACK_MS


def gave_a_snapshot(_: Story, told: Told) -> bool:
    """B33. It is the node's answer to another one's load; that it verifies before it is loaded is no known failure."""
    return told.last.kind == Kind.REPLY_SENT and told.last.operation == "SNAPSHOT"


def confirmed_unread(story: Story, told: Told) -> bool:
    """B02. What a client publishes that is still there is missing or old although what carried it was acknowledged, and
    a verify confirmed the copy. Who should hold something of it has not left, whatever it does in that millisecond."""
    seen = told.evidence
    own = [row for row in story.by_node.get(str(seen["owner"]), []) if row.kind in STATE_KINDS]
    before = [row for row in own if row.at_ms < told.last.at_ms]
    return (
        bool(before)
        and (seen["expected"] != "nothing" or before[-1].kind not in GONE)
        and seen["last_operation"] in _CHANGES
        and seen["last_outcome"] == Outcome.SUCCESS
        and seen["last_verify"] == Outcome.SUCCESS
    )


def native_overwritten(story: Story, told: Told) -> bool:
    """B01. A node holds the client's connection, and between two starts applied to it what was sent for a copy."""
    for node in story.by_node:
        for life in _lives(story, node, None):
            connected = False
            for row in life:
                connected = connected or row.kind in OWN_CONNECTION
                if connected and row.kind == Kind.REPLICA_APPLIED and row.at_ms <= told.last.at_ms:
                    return True
    return False


def _lives(story: Story, node: str, until: int | None) -> Iterator[list[Row]]:
    """The rows about what a node holds, anew from each row on with which it holds nothing of before."""
    states = [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    rows = sorted([*states, *story.resets.get(node, ())], key=lambda row: row.seq)
    life: list[Row] = []
    for row in rows:
        if until is not None and row.seq > until:
            break
        if row.kind in (*RESETS, *GONE) or row.digest is None:
            yield life
            life = []
        life.append(row)
    yield life


def fell_silent(_: Story, told: Told) -> bool:
    """B03. What the invariant itself goes by: no connection is ever asked for a sign of life."""
    return told.first.kind == Kind.LINK_FAULT


def health_not_counted(story: Story, told: Told) -> bool:
    """B06. Neither health nor expiry moves the revision of a client without a connection on, and it is a sum: its owner
    published both contents under one, at that time or before."""
    both = {told.evidence["expected"], told.evidence["actual"]}
    until = [row for row in story.rows if row.at_ms <= told.last.at_ms]
    return not story.has_connection and both <= _published(until).get(told.evidence["revision"], set())


def not_counted(story: Story, told: Told) -> bool:
    """B18. A batch does not move the revision on: the client's own connection published two contents under one. Of a
    copy that differs it has to be these two."""
    wanted = {told.evidence["expected"], told.evidence["actual"]} if "checkpoints" in told.evidence else set()
    if "nothing" in wanted and _holds_empty(story, told.node):
        wanted = wanted - {"nothing"} | {_EMPTY}
    return story.has_connection and any(
        len(contents) > 1 and wanted <= contents and told.evidence.get("revision", revision) == revision
        for node in story.by_node.values()
        for revision, contents in _published(node).items()
    )


def _holds_empty(story: Story, node: str) -> bool:
    """The client is there, and publishes nothing."""
    states = [row for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    return bool(states) and states[-1].kind not in GONE and states[-1].digest == _EMPTY


def _published(rows: Iterable[Row]) -> dict[object, set[str | None]]:
    """By revision, what owners themselves held of the client and had from nobody."""
    published: defaultdict[object, set[str | None]] = defaultdict(set)
    for row in rows:
        if row.kind in OWN_CONNECTION:
            published[row.revision].add(row.digest)
    return published


def batch_not_put_over(story: Story, told: Told) -> bool:
    """B19. The node acknowledged a CHANGE that has a batch, did nothing with it, and holds what it held then."""
    states = [row for row in story.by_node.get(told.node, []) if row.kind in STATE_KINDS]
    held_since = max((row.seq for row in states if row.at_ms <= told.last.at_ms), default=0)
    return any(
        request.detail == BATCH and request.digest != told.evidence["actual"] and request.seq > held_since
        for request in _left_out(story, told.node)
        if request.at_ms <= told.last.at_ms
    )


def batch_never_put_over(story: Story, told: Told) -> bool:
    """B19. Verified in vain: since the copy was renewed for the last time, every CHANGE that should have mended it was
    acknowledged and left out, and each has a batch."""
    if told.evidence["signature"] != "verified in vain":
        return False
    lasted = range(told.first.seq, told.last.seq)
    changes = [row for row, _, _ in _handled(story, told.node) if row.operation in _CHANGES and row.seq in lasted]
    left_out = {row.seq for row in _left_out(story, told.node)}
    return bool(changes) and all(row.detail == BATCH and row.seq in left_out for row in changes)


def _left_out(story: Story, node: str) -> Iterator[Row]:
    """The CHANGEs that the node answered, and no row says that it holds anything else by then."""
    states = [row.seq for row in story.by_node.get(node, []) if row.kind in STATE_KINDS]
    for request, begin, end in _handled(story, node):
        is_answered = request.operation in _CHANGES and request.digest is not None and end != END
        if is_answered and not any(begin < seq < end for seq in states):
            yield request


def owner_never_loaded(story: Story, told: Told) -> bool:
    """B19. The copy's lease ended. Its owner, since it was started, has verified nobody: it was given a snapshot and
    asked for one again, since what stands in it raises there."""
    owner = str(told.evidence["owner"])
    ended = [row for row in story.by_node.get(told.node, []) if row.detail == LEASE and row.at_ms <= told.last.at_ms]
    if not ended:
        return False
    since_ms = max((row.at_ms for row in story.resets.get(owner, ()) if row.at_ms <= ended[-1].at_ms), default=0)
    life = [row for row in story.by_node.get(owner, []) if since_ms <= row.at_ms <= ended[-1].at_ms]
    loads = [row for row in story.loads.get(owner, ()) if since_ms <= row.at_ms <= ended[-1].at_ms]
    given = next((row.at_ms for row in loads if _succeeded(row)), END)
    asks_again = any(row.kind == Kind.REQUEST_SENT and row.at_ms - given >= _LOAD_AGAIN_MS for row in loads)
    return asks_again and not any((row.kind, row.operation) == (Kind.REQUEST_SENT, "VERIFY") for row in life)


def uncounted_not_put_over(story: Story, told: Told) -> bool:
    """B19, where no row says what carries a batch. The node acknowledged a CHANGE, did nothing with it, and holds what
    it held. Since its owner published that, it published something without counting it."""
    held = told.evidence["actual"]
    for request in _left_out(story, told.node):
        if request.digest == held or request.at_ms > told.last.at_ms:
            continue
        own = [row for row in story.by_node.get(request.peer or "", []) if row.kind in OWN_CONNECTION]
        own = [row for row in own if row.at_ms <= request.at_ms]
        last = max((place for place, row in enumerate(own) if row.digest == held), default=len(own))
        if _counts_not_all(own[last:]):
            return True
    return False


def applied_among_others(story: Story, told: Told) -> bool:
    """B05. Another sync of the client was being applied at the same time as the one that the violation goes by, and
    what came of it is not what that one carried: the two were put together service by service."""
    message = told.last.message or told.after
    arrived = next((row for row, _, _ in _handled(story, told.node) if row.message == message), None)
    is_mixed = arrived is not None and arrived.digest != told.evidence["actual"]
    return is_mixed and any(row.operation in SYNCS for row in _meanwhile(story, told.node, message))


def given_while_applied(story: Story, told: Told) -> bool:
    """B05, at the giver of a snapshot: it was made while a CHANGE about the client was being applied there, and has the
    revision of that already."""
    given = [
        row
        for rows in story.loads.values()
        for row in rows
        if (row.kind, row.peer, row.message) == (Kind.REPLY_SENT, told.node, told.last.message)
    ]
    return any(
        row.operation in _CHANGES and str(row.revision) == str(told.evidence["revision"]) and begin < each.seq < end
        for each in given
        for row, begin, end in _handled(story, each.node)
    )


def read_while_it_changed(story: Story, told: Told) -> bool:
    """B05, at the sender. A message that the owner made in the moment of a change has the content of before, under the
    revision of after; it is the one that the violation goes by."""
    message = told.last.message or told.after
    sent = next((row for row in story.rows if row.kind == Kind.REQUEST_SENT and row.message == message), None)
    if sent is None or message is None or sent.digest != told.evidence["actual"]:
        return False
    own = [row for row in story.by_node[sent.node] if row.kind in OWN_CONNECTION and row.seq < sent.seq]
    before, change = own[-2:] if len(own) > 1 else (None, None)
    return (
        before is not None
        and change is not None
        and (before.digest, change.revision) == (sent.digest, sent.revision)
        and sent.at_ms - change.at_ms <= _CLOCK_SLACK_MS
    )


def sent_before_it_was_counted(story: Story, told: Told) -> bool:
    """B05, at the sender. A message that the owner made in the midst of a change: of the content of after, which it is
    known to hold a moment later, under the revision of before. The violation is about that content and revision."""
    about = (told.evidence["actual"], str(told.evidence["revision"]))
    for sent in story.rows:
        if sent.kind != Kind.REQUEST_SENT or (sent.digest, str(sent.revision)) != about:
            continue
        own = [row for row in story.by_node[sent.node] if row.kind in OWN_CONNECTION]
        before = [row for row in own if row.seq < sent.seq]
        after = [row for row in own if row.seq > sent.seq]
        if before and after and (before[-1].revision, after[0].digest) == (sent.revision, sent.digest):
            return before[-1].digest != sent.digest and after[0].at_ms - sent.at_ms <= _ANSWERED_WITHIN_MS
    return False


def removed_while_applied(story: Story, told: Told) -> bool:
    """B05. A DELETE came between two steps of the CHANGE, whose further ones went into a client that was gone."""
    return told.first.operation in _CHANGES and any(
        row.operation == "DELETE" for row in _meanwhile(story, told.node, told.after)
    )


def verified_while_applied(story: Story, told: Told) -> bool:
    """B05. A CHANGE with the revision that the verify asked for was being applied: its revision stood before its end,
    or the verify read a copy that was just being made."""
    return any(
        row.operation in _CHANGES and row.revision == told.evidence["asked_revision"]
        for row in _meanwhile(story, told.node, told.after)
    )


def _meanwhile(story: Story, node: str, message: str | None) -> list[Row]:
    """The other requests about the client that the node was handling while it handled this one."""
    handled = _handled(story, node)
    own = next(((begin, end) for row, begin, end in handled if row.message == message), None)
    if message is None or own is None:
        return []
    return [row for row, begin, end in handled if row.message != message and begin < own[1] and own[0] < end]


def _handled(story: Story, node: str) -> list[tuple[Row, int, int]]:
    """The requests about the client that arrived at a node, with when (`seq`), and when they were answered, or the node
    stopped or started."""
    rows = story.by_node.get(node, [])
    answered = {row.message: row.seq for row in rows if row.kind == Kind.REPLY_SENT}
    resets = [row.seq for row in story.resets.get(node, ())]
    return [
        (row, row.seq, min((seq for seq in (answered.get(row.message, END), *resets) if seq > row.seq), default=END))
        for row in rows
        if row.kind == Kind.REQUEST_RECEIVED
    ]
