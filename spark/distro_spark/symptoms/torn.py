"""B05: a change is read, or two are applied, while one is being made.

| seen at | what has to be seen |
|---|---|
| the node | while it handled the call in question, another one about the client was being handled there too |
| the sender | a message made in the moment of a change has the content of before under the revision of after |
| the sender | or the content of after under the revision of before, sent before the owner was done with the change |
| the giver | the content came with a snapshot, whose giver was handling a CHANGE about the client then |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from distro_spark.history import SYNCS, ClientHistory, Row, Violation
from distro_spark.symptoms.look import (
    CHANGES,
    CLOCK_SLACK_MS,
    count_before,
    handled_requests,
    having,
    own_of,
    remembered,
    sent_messages,
)
from distro_traces.event import Kind

_ANSWERED_WITHIN_MS = 2000
"""Who plays a client of a real server reads what its node holds when the request has been answered."""


def applied_among_others(story: ClientHistory, told: Violation) -> bool:
    """B05. Another sync of the client was being applied at the same time as the one that the violation goes by, and
    what came of it is not what that one carried: the two were put together service by service."""
    message = told.last.message or told.after
    arrived = _arrived(story, told.node).get(message)
    is_mixed = arrived is not None and arrived.digest not in (None, told.evidence["actual"])
    return is_mixed and any(row.operation in SYNCS for row in _meanwhile(story, told.node, message))


@remembered
def _arrived(story: ClientHistory, node: str) -> Mapping[str | None, Row]:
    """The first request with each message."""
    return {row.message: row for row, _, _ in reversed(handled_requests(story, node))}


def given_while_applied(story: ClientHistory, told: Violation) -> bool:
    """B05, at the giver of a snapshot: it was made while a CHANGE about the client was being applied there, and has the
    revision of that already."""
    given = [
        row
        for rows in story.loads.values()
        for row in rows
        if (row.kind, row.peer, row.message) == (Kind.REPLY_SENT, told.node, told.last.message)
    ]
    return any(
        row.operation in CHANGES and str(row.revision) == str(told.evidence["revision"]) and begin < each.seq < end
        for each in given
        for row, begin, end in _handled(story, each.node)
    )


def read_while_it_changed(story: ClientHistory, told: Violation) -> bool:
    """B05, at the sender. A message that the owner made in the moment of a change has the content of before, under the
    revision of after; it is the one that the violation goes by."""
    message = told.last.message or told.after
    sent = sent_messages(story).get(message or "")
    if sent is None or sent.digest != told.evidence["actual"]:
        return False
    own = own_of(story, sent.node)
    count = count_before(own, sent.seq)
    return (
        count > 1
        and (own[count - 2].digest, own[count - 1].revision) == (sent.digest, sent.revision)
        and sent.at_ms - own[count - 1].at_ms <= CLOCK_SLACK_MS
    )


def sent_before_it_was_counted(story: ClientHistory, told: Violation) -> bool:
    """B05, at the sender. A message that the owner made in the midst of a change: of the content of after, which it is
    known to hold a moment later, under the revision of before. The violation is about that content and revision."""
    for sent in having(story, told.evidence["actual"]):
        if sent.kind != Kind.REQUEST_SENT or str(sent.revision) != str(told.evidence["revision"]):
            continue
        own = own_of(story, sent.node)
        count = count_before(own, sent.seq)
        if not 0 < count < len(own):
            continue
        last, following = own[count - 1], own[count]
        if (last.revision, following.digest) == (sent.revision, sent.digest):
            return last.digest != sent.digest and following.at_ms - sent.at_ms <= _ANSWERED_WITHIN_MS
    return False


def removed_while_applied(story: ClientHistory, told: Violation) -> bool:
    """B05. A DELETE came between two steps of the CHANGE, whose further ones went into a client that was gone."""
    return told.first.operation in CHANGES and any(
        row.operation == "DELETE" for row in _meanwhile(story, told.node, told.after)
    )


def verified_while_applied(story: ClientHistory, told: Violation) -> bool:
    """B05. A CHANGE with the revision that the verify asked for was being applied: its revision stood before its end,
    or the verify read a copy that was just being made."""
    return any(
        row.operation in CHANGES and row.revision == told.evidence["asked_revision"]
        for row in _meanwhile(story, told.node, told.after)
    )


def _meanwhile(story: ClientHistory, node: str, message: str | None) -> list[Row]:
    """The other requests about the client that the node was handling while it handled this one."""
    handled = _handled(story, node)
    own = next(((begin, end) for row, begin, end in handled if row.message == message), None)
    if message is None or own is None:
        return []
    return [row for row, begin, end in handled if row.message != message and begin < own[1] and own[0] < end]


@remembered
def _handled(story: ClientHistory, node: str) -> Sequence[tuple[Row, int, int]]:
    """As `handled_requests`, where the node's answers to syncs are recorded. Where none is (logs), nothing tells that a
    request was still being handled when the next one came: of each only the moment is known."""
    answers = any(row.kind == Kind.REPLY_SENT and row.operation in SYNCS for row in story.by_node.get(node, []))
    return [(row, begin, end if answers else begin) for row, begin, end in handled_requests(story, node)]
