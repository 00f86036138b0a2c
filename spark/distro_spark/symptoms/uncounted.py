"""B06, B18: the owner changes a client, and leaves its revision as it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from distro_spark.history import ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    cached_per_history,
    carried_revisions,
    changes_of,
    count_before,
    held_by_sender,
    holds_something,
    own_of,
)
from distro_spark.symptoms.symptom import Clauses, symptom
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import BATCH, EXPIRED, HEALTHY, STATE_KINDS, Kind


def _is_by_beats(row: Row, *how: str) -> bool:
    """It says that its beats came or stayed out, and not its client, changed it."""
    return row.kind == Kind.CLIENT_CHANGED and (row.detail or "").endswith(how)


def _chains_by_beats(found: Finding) -> Iterator[list[object]]:
    """The contents that each node held under that revision by then: any, and those that beats made of it there."""
    for node in found.history.by_node:
        chain = list[object]()
        for row in changes_of(found.history, node):
            if row.at_ms > found.last.at_ms:
                break
            is_same = row.revision == found.evidence["revision"]
            if chain and not (is_same and _is_by_beats(row, EXPIRED, HEALTHY)):
                yield chain
                chain = []
            if is_same:
                chain = [*chain, row.digest]
        yield chain


@symptom("B06", "INV-REV")
def uncounted_beats(found: Finding) -> Clauses:
    """The revision of a client of the HTTP API stays when its beats, or their absence, change what it has."""
    # The content, or what beats made of it later. Content from which they made it is judged at its own row.
    made = any(
        found.actual in chain[1:] or (found.actual in chain and found.expected in chain[1:])
        for chain in _chains_by_beats(found)
    )
    yield "it is a client of the HTTP API", not found.history.has_connection
    yield "by then beats alone had made one of the two contents at a node, of what that held under this revision", made


@symptom("B06", "INV-REV")
def expired_at_owner(found: Finding) -> Clauses:
    """What expires at the owner of a client of the HTTP API is sent under the revision of before."""
    sender = held_by_sender(found.history, found.last)
    # What the owner, which does not say its revisions (logs), held when it sent what was applied last.
    expired = sender if sender is not None and sender.owned and sender.revision is None else None
    carried = carried_revisions(found.history, found.last)
    yield "it is a client of the HTTP API", not found.history.has_connection
    yield (
        "what it applied came from its owner under that revision, as the owner held it",
        expired is not None and expired.digest == found.actual and carried == {found.evidence["revision"]},
    )
    if expired is None:
        return
    yield "the last that happened at its owner is that an instance expired", _is_by_beats(expired, EXPIRED)
    yield "beats alone changed it there since it had the other content", _beats_alone_changed_it(found, expired)


def _beats_alone_changed_it(found: Finding, expired: Row) -> bool:
    own = own_of(found.history, expired.node)
    for row in reversed(own[: count_before(own, expired.seq)]):
        if row.digest == found.expected:
            return True
        if not _is_by_beats(row, EXPIRED, HEALTHY):
            return False
    return False


def _between(found: Finding) -> Sequence[Row]:
    """What the owner published after the one of the two contents, up to the other one, where all that has one revision:
    in INV-REV that of the violation."""
    both = list(_both(found))
    for node in found.history.by_node:
        for revision, published in _published(found.history, node).items():
            rows = [row for row in published if row.at_ms <= found.last.at_ms]
            places = [min((i for i, row in enumerate(rows) if row.digest == each), default=None) for each in both]
            if found.evidence.get("revision", revision) == revision and None not in places:
                one, other = sorted(place for place in places if place is not None)
                return rows[one + 1 : other + 1]
    return ()


def _both(found: Finding) -> Iterator[object]:
    """The two contents. To hold nothing is for a client that is there to publish nothing."""
    owner = str(found.evidence.get("owner", found.node))
    for content, node in ((found.expected, owner), (found.actual, found.node)):
        yield NOTHING_PUBLISHED if content == "nothing" and _is_empty(found, node) else content


def _is_empty(found: Finding, node: str) -> bool:
    """The client is there, and publishes nothing."""
    rows = [row for row in found.history.by_node.get(node, ()) if row.at_ms <= found.last.at_ms]
    state = next((row for row in reversed(rows) if row.kind in STATE_KINDS), None)
    return state is not None and holds_something(state) and state.digest == NOTHING_PUBLISHED


@cached_per_history
def _published(history: ClientHistory, node: str) -> Mapping[object, Sequence[Row]]:
    """By revision, what the client itself published at the node, in order."""
    published: defaultdict[object, list[Row]] = defaultdict(list)
    for row in own_of(history, node):
        published[row.revision].append(row)
    return published


@cached_per_history
def _contents_with_batches(history: ClientHistory) -> frozenset[str | None]:
    """Those of messages that say so."""
    return frozenset(row.digest for row in history.rows if row.operation in CHANGES and row.detail == BATCH)


@symptom("B18", "INV-CONV", "INV-REV")
def uncounted_batch(found: Finding) -> Clauses:
    """A batch leaves the revision as it was: one revision stands for two contents, and a verify confirms the copy that
    missed the batch."""
    between, batches = _between(found), _contents_with_batches(found.history)
    yield "the client has a connection", found.history.has_connection
    yield "its owner published both contents under one revision by then", bool(between)
    if between:
        is_batch = any(row.detail == BATCH or row.digest in batches for row in between)
        yield "a batch came between the two", is_batch
