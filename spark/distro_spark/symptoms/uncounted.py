"""B06, B18: the owner changes a client, and leaves its revision as it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from distro_model.defects import Symptom
from distro_spark.history import ClientHistory, Finding, Row
from distro_spark.symptoms.queries import (
    CHANGES,
    cached_per_history,
    carried_revisions,
    changes_of,
    clause,
    count_before,
    held_by_sender,
    holds_something,
    is_of_http,
    own_of,
)
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import BATCH, EXPIRED, HEALTHY, STATE_KINDS, Kind

# B06: what beats change


def _expired(found: Finding) -> Row | None:
    """What the owner, which does not say its revisions (logs), held when it sent what was applied last."""
    sender = held_by_sender(found.history, found.last)
    return sender if sender is not None and sender.owned and sender.revision is None else None


@clause("what it applied came from its owner under that revision, as the owner held it")
def came_from_its_owner(found: Finding) -> bool:
    expired = _expired(found)
    carried = carried_revisions(found.history, found.last)
    return expired is not None and expired.digest == found.actual and carried == {found.evidence["revision"]}


@clause("the last that happened at its owner is that an instance expired")
def has_expired(found: Finding) -> bool:
    expired = _expired(found)
    return expired is None or _is_by_beats(expired, EXPIRED)


@clause("beats alone changed it there since it had the other content")
def beats_alone_changed_it(found: Finding) -> bool:
    expired = _expired(found)
    if expired is None:
        return True
    own = own_of(found.history, expired.node)
    for row in reversed(own[: count_before(own, expired.seq)]):
        if row.digest == found.expected:
            return True
        if not _is_by_beats(row, EXPIRED, HEALTHY):
            return False
    return False


def _is_by_beats(row: Row, *how: str) -> bool:
    """It says that its beats came or stayed out, and not its client, changed it."""
    return row.kind == Kind.CLIENT_CHANGED and (row.detail or "").endswith(how)


@clause("by then beats alone had made one of the two contents at a node, of what that held under this revision")
def beats_made_one_of_them(found: Finding) -> bool:
    """The content, or what beats made of it later. Content from which they made it is judged at its own row."""
    return any(
        found.actual in chain[1:] or (found.actual in chain and found.expected in chain[1:])
        for chain in _chains_by_beats(found)
    )


def _chains_by_beats(found: Finding) -> Sequence[list[object]]:
    """The contents that each node held under that revision by then: any, and those that beats made of it there."""
    chains = list[list[object]]()
    for node in found.history.by_node:
        chain: list[object] | None = None
        for row in changes_of(found.history, node):
            if row.at_ms > found.last.at_ms:
                break
            if row.revision != found.evidence["revision"]:
                chain = None
            elif chain is not None and _is_by_beats(row, EXPIRED, HEALTHY):
                chain.append(row.digest)
            else:
                chain = [row.digest]
                chains.append(chain)
    return chains


# B18: a batch is not counted


@clause("the client has a connection")
def has_a_connection(found: Finding) -> bool:
    return found.history.has_connection


@clause("its owner published both contents under one revision by then")
def published_both(found: Finding) -> bool:
    return bool(_between(found))


@clause("a batch came between the two")
def a_batch_came_between(found: Finding) -> bool:
    between, batches = _between(found), _contents_with_batches(found.history)
    return not between or any(row.detail == BATCH or row.digest in batches for row in between)


def _between(found: Finding) -> Sequence[Row]:
    """What the owner published after the one of the two contents, up to the other one, where all that has one revision:
    in INV-REV that of the violation."""
    both = _both(found)
    for node in found.history.by_node:
        for revision, published in _published(found.history, node).items():
            rows = [row for row in published if row.at_ms <= found.last.at_ms]
            places = [min((i for i, row in enumerate(rows) if row.digest == each), default=None) for each in both]
            if found.evidence.get("revision", revision) == revision and None not in places:
                one, other = sorted(place for place in places if place is not None)
                return rows[one + 1 : other + 1]
    return ()


def _both(found: Finding) -> Sequence[object]:
    """The two contents. To hold nothing is for a client that is there to publish nothing."""
    owner = str(found.evidence.get("owner", found.node))
    held = {"expected": _is_empty(found, owner), "actual": _is_empty(found, found.node)}
    contents = {"expected": found.expected, "actual": found.actual}
    return [NOTHING_PUBLISHED if each == "nothing" and held[name] else each for name, each in contents.items()]


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
    carriers: Iterable[Row] = (row for row in history.rows if row.operation in CHANGES)
    return frozenset(row.digest for row in carriers if row.detail == BATCH)


UNCOUNTED_BEATS = Symptom(
    bug="B06",
    about=("INV-REV",),
    sentence="The revision of a client of the HTTP API stays when its beats, or their absence, change what it has.",
    clauses=(is_of_http, beats_made_one_of_them),
)
EXPIRED_AT_OWNER = Symptom(
    bug="B06",
    about=("INV-REV",),
    sentence="What expires at the owner of a client of the HTTP API is sent under the revision of before.",
    clauses=(is_of_http, came_from_its_owner, has_expired, beats_alone_changed_it),
)
UNCOUNTED_BATCH = Symptom(
    bug="B18",
    about=("INV-CONV", "INV-REV"),
    sentence="A batch leaves the revision as it was: one revision stands for two contents, and a verify confirms the "
    "copy that missed the batch.",
    clauses=(has_a_connection, published_both, a_batch_came_between),
)
SYMPTOMS = (UNCOUNTED_BEATS, EXPIRED_AT_OWNER, UNCOUNTED_BATCH)
