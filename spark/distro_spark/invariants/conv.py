"""INV-CONV: at rest every member has the same view of every service.

A CHECKPOINT row on each live node says: faults are healed, time enough has passed, here all should agree. What a node
holds there is its latest stretch (`stretches.py`). The truth is what the owner holds, nothing once the client
disconnected from it. When the owner is not there any more (stopped, or started anew and without its connections), the
truth is that there is nothing; but nobody tells the others, so each may keep its copy until its own lease ends, which
a snapshot that brings the copy along begins anew.

Since when: both timelines are laid side by side. The last *agreement* is the latest stretch of the owner whose view
this node shared while or after the owner took it. If that is the owner's present view, the node has left it since,
and the row with which it left is the first event; otherwise the first event is the owner's next row, the first
content that the node never reached. Times are compared across nodes only here, to tell a view from the same one later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from distro_spark.compiling import compiled, uncounted
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import Facts, Flags, Integers, Past, Rows, clients, views
from distro_spark.story import END, LEASE_CHECK_MS, LEASE_MS, SYNCS, Finding, Row, Story, Told
from distro_spark.stretches import Stretch, Timelines
from distro_spark.violations import SIGNATURE
from distro_traces.event import Kind, Outcome

SWALLOWED = "DELETE swallowed"
"""Signature: a CHANGE to this node failed after the client had left its owner, and then no DELETE was sent to it."""


@compiled
def disagreement(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    """Is there a checkpoint at which the nodes that are up hold different contents, or only some of them any?

    What a node holds between two rows is seen by its checkpoints between them: it enters at the ordinal of the first
    and leaves after that of the last. Going through the ordinals in order, the number of holders and the sums of the
    hashes that they hold, and of their squares, say whether all hold the same.
    """
    found = 0
    nothing = np.empty(0, np.int64)
    for start, end in clients(rows):
        size = _spans(rows, facts, decides, start, end, nothing, nothing)
        if size == 0:
            continue
        ordinals, contents = np.empty(size, np.int64), np.empty(size, np.int64)
        _spans(rows, facts, decides, start, end, ordinals, contents)
        if _differ(facts, facts.run[rows.node[start]], ordinals, contents):
            first[found], last[found] = -1, start
            found += 1
    return found


@compiled
def _differ(facts: Facts, run: int, ordinals: Integers, contents: Integers) -> bool:
    base, checkpoints = facts.live_from[run], facts.live_from[run + 1] - facts.live_from[run]
    order = np.argsort(ordinals)
    holders, total, squares = 0, 0, 0
    i = 0
    while i < len(order):
        ordinal = ordinals[order[i]] >> 1
        while i < len(order) and ordinals[order[i]] >> 1 == ordinal:
            content = contents[order[i]]
            step = 1 if ordinals[order[i]] & 1 == 0 else -1
            holders += step
            total += step * content
            squares += step * content * content
            i += 1
        until = min(ordinals[order[i]] >> 1 if i < len(order) else checkpoints, checkpoints)
        if holders == 0 or ordinal >= until:
            continue
        same_nodes = facts.changes[base + ordinal] == facts.changes[base + until - 1]
        if holders != facts.live[base + ordinal] or not same_nodes or holders * squares != total * total:
            return True
    return False


@compiled
def _spans(
    rows: Rows, facts: Facts, decides: Flags, start: int, end: int, ordinals: Integers, contents: Integers
) -> int:
    """Twice the ordinal at which a content enters, and twice the one at which it leaves plus one; returns how many.

    Counts only while there is no room. One stretch is several spans where its node misses a checkpoint in between.
    """
    size = 0
    i = start
    while i < end:
        node = rows.node[i]
        stop = i
        while stop < end and rows.node[stop] == node:
            stop += 1
        checks = facts.check_seq[facts.check_from[node] : facts.check_from[node + 1]]
        if decides[node] and len(checks) > 0:
            content, since = 0, 0
            changes = views(rows, facts, i, stop)
            for j in range(len(changes)):
                if content != 0:
                    size = _span(facts, node, checks, since, changes[j, 0], content, size, ordinals, contents)
                since, content = changes[j, 0], changes[j, 2]
            if content != 0:
                size = _span(facts, node, checks, since, END, content, size, ordinals, contents)
        i = stop
    return size


@uncounted
def _span(
    facts: Facts,
    node: int,
    checks: Integers,
    since: int,
    until: int,
    content: int,
    size: int,
    ordinals: Integers,
    contents: Integers,
) -> int:
    one, end = np.searchsorted(checks, since), np.searchsorted(checks, until)
    base = facts.check_from[node]
    while one < end:
        next_one = min(end, facts.gap_after[base + one] - base)
        if size + 2 <= len(ordinals):
            ordinals[size] = 2 * facts.check_ordinal[base + one]
            ordinals[size + 1] = 2 * (facts.check_ordinal[base + next_one - 1] + 1) + 1
            contents[size] = contents[size + 1] = content
        size += 2
        one = next_one
    return size


@dataclass(frozen=True, slots=True)
class _Divergence:
    """What a node held at a checkpoint, and what the owner did."""

    node: str
    checkpoint: Row
    stretch: Stretch
    truth: Stretch | None  # of the owner, if it is there
    first: Row


def tell(story: Story, _: list[Finding]) -> Iterator[Told]:
    timelines = Timelines(story)
    parted: defaultdict[tuple[str, Row], list[_Divergence]] = defaultdict(list)
    for each in _divergences(story, timelines):
        parted[each.node, each.first].append(each)
    for of_one in parted.values():
        yield _told(story, sorted(of_one, key=lambda each: each.checkpoint.seq))


def _divergences(story: Story, timelines: Timelines) -> Iterator[_Divergence]:
    if story.blind and story.owner in (None, *story.blind):
        return  # they differ, and nobody saw what the owner holds
    numbers: defaultdict[str, dict[str, Row]] = defaultdict(dict)
    for node, checkpoints in story.checkpoints.items():
        for checkpoint in () if node in story.blind else checkpoints:
            numbers[checkpoint.detail or ""][node] = checkpoint
    for at_once in numbers.values():
        held = {node: timelines.at(node, checkpoint.seq) for node, checkpoint in at_once.items()}
        views = {stretch.view for stretch in held.values()}
        if len(views) == 1:
            continue
        there = at_once.get(story.owner or "")
        truth = None if there is None else timelines.truth_at(there.seq)
        for node, stretch in held.items():
            if truth is None and story.owner is not None and _is_leased(story, at_once[node]):
                continue
            if stretch.view != (None if truth is None else truth.view):
                first = timelines.parted_since(node, stretch, truth, at_once[node])
                yield _Divergence(node, at_once[node], stretch, truth, first)


def _is_leased(story: Story, checkpoint: Row) -> bool:
    """Had the node's copy been brought or confirmed so lately that its lease need not have ended?"""
    rows = story.by_node.get(checkpoint.node, [])
    renewed = [row.at_ms for row in rows if row.seq < checkpoint.seq and _renews(row)]
    return bool(renewed) and checkpoint.at_ms - renewed[-1] <= LEASE_MS + LEASE_CHECK_MS


def _renews(row: Row) -> bool:
    confirms = row.kind == Kind.REPLY_SENT and row.operation == "VERIFY" and row.outcome == Outcome.SUCCESS
    return confirms or row.kind == Kind.REPLICA_APPLIED


def _told(story: Story, divergences: list[_Divergence]) -> Told:
    """A divergence may last for many checkpoints; told is what it was at the last of them."""
    one = divergences[-1]
    node, held, truth = one.node, one.stretch, one.truth
    numbers = ", ".join(dict.fromkeys(each.checkpoint.detail or "" for each in divergences))
    calls = [row for row in story.by_node.get(node, []) if row.seq < one.checkpoint.seq]
    request = _latest(row for row in calls if row.kind == Kind.REQUEST_RECEIVED and row.operation in SYNCS)
    replies = [row for row in calls if row.kind == Kind.REPLY_SENT and row.operation is not None]
    reply = _latest(row for row in replies if row.operation in SYNCS)
    verify = _latest(row for row in replies if row.operation not in SYNCS)
    outcome = reply.outcome if request and reply and reply.message == request.message else None
    expected = (truth.view if truth else None) or "nothing"
    holds = held.view or "nothing"
    if held.view is not None and held.revision is not None:
        holds += f" (revision {held.revision})"
    if truth is None:
        others = "no live node owns it and others hold nothing"
    elif node == story.owner:
        others = "its connection there has ended"
    else:
        others = f"its owner {story.owner} holds {expected}"
    after = ""
    if request:
        words = ", ".join(word for word in (request.operation, outcome) if word)
        after = f"; the last content message that reached it is {request.message} ({words})"
    lost = _lost(story, one) if request else None
    if lost:
        after += f"; {lost.message} ({lost.operation}) of {story.owner} never reached it"
    return Told(
        node=node,
        first=one.first,
        last=one.checkpoint,
        after=request.message if request else None,
        evidence={
            "owner": story.owner,
            "checkpoints": numbers,
            "expected": expected,
            "expected_revision": truth.revision if truth else None,
            "actual": held.view or "nothing",
            "actual_revision": held.revision if held.view is not None else None,
            "last_message": request.message if request else None,
            "last_operation": request.operation if request else None,
            "last_outcome": outcome,
            "last_verify": verify.outcome if verify else None,
            "lost_message": lost.message if lost else None,
            SIGNATURE: swallowed(story, node) if truth is None or truth.view is None else None,
        },
        message=f"{node} holds {holds} of {story.client} at checkpoint {numbers} while {others}; "
        f"they differ since {one.first}{after}",
        expected=f"{node} holds {expected} of {story.client} at checkpoint {numbers}",
    )


def _lost(story: Story, one: _Divergence) -> Row | None:
    """The last sync that the owner sent there before the checkpoint, if it did not arrive."""
    sent = [row for row in story.by_node.get(story.owner or "", []) if row.kind == Kind.REQUEST_SENT]
    syncs = (row for row in sent if row.peer == one.node and row.operation in SYNCS)
    last = _latest(row for row in syncs if row.at_ms <= one.checkpoint.at_ms)
    arrived = {row.message for row in story.by_node.get(one.node, []) if row.kind == Kind.REQUEST_RECEIVED}
    return None if last is None or last.message in arrived else last


def _latest(rows: Iterator[Row]) -> Row | None:
    return max(rows, key=lambda row: row.seq, default=None)


def swallowed(story: Story, node: str) -> str | None:
    """Name the one cause that the owner's messages show by themselves."""
    rows = story.by_node.get(story.owner or "", [])
    left = _latest(row for row in rows if row.kind == Kind.CLIENT_DISCONNECTED)
    if left is None:
        return None
    calls = [row for row in rows if row.peer == node]
    deleted = any(row.kind == Kind.REQUEST_SENT and row.operation == "DELETE" for row in calls)
    failed_too_late = any(
        row.kind == Kind.REPLY_RECEIVED
        and row.operation == "CHANGE"
        and row.outcome != Outcome.SUCCESS
        and row.seq > left.seq
        for row in calls
    )
    return SWALLOWED if failed_too_late and not deleted else None


INVARIANT = Invariant(
    "INV-CONV",
    "At rest every member's view of every service is the same set of instances.",
    ("run", "client"),
    disagreement,
    tell,
    needs=Needs(state=True, owned=True, lossless=True),
    needs_checkpoint=True,
)
