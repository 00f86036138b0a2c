"""INV-ROUND and INV-DELAY: what is due is done, whoever else is in trouble.

An owner verifies each of its clients with every member in every round of 5 s, and sends a change to every member when
the sync delay is over, whatever retry is queued. Judged only against members about which there is no excuse: no
start or stop of theirs and no fault of the link to them within the time in which a member report goes round, neither
stopped nor cut off all that time, and no call to them that found nobody; what was dropped or refused is none. Some
margin is given for a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import HASHED
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    CHANGE,
    CHANGED,
    ENDED,
    SENT,
    STOPPED,
    SUCCESS,
    UNREACHABLE,
    VERIFY,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    called,
    faults_of,
    first_from,
    held_until_ms,
    is_new_life,
    members,
    replicas,
)
from distro_spark.story import END, Finding, Story, Told

ROUNDS_MS = 3 * 5_000 + 2_000
MARGIN_MS = 1_000
EXCUSED_MS = 45_000
"""After its start, or the end of a fault, a member may be taken for unreachable so long."""


@compiled
def skipped(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    """A member that no round has reached while the client was connected and the node loaded."""
    found = 0
    for start, end in replicas(rows, decides):
        node = rows.node[start]
        peers = members(facts, node)
        since = np.full(len(peers), -1, np.int64)  # the row from which on a round is waited for
        connected, due_ms = -1, 0  # before that no verify is late
        for i in range(start, end):
            if rows.flags[i] & HASHED:
                break
            if not past.native[i]:
                connected = -1
            if connected >= 0 and rows.at_ms[i] > due_ms:
                late = missed(rows, facts, peers, since, node, rows.at_ms[i])
                if late >= 0:
                    first[found], last[found] = since[late], i
                    found += 1
                    connected = -1
                    break
                due_ms = next_due_ms(rows, peers, since, node)
            if rows.kind[i] == CHANGED and connected < 0:
                connected = i
                since[:] = i
                due_ms = rows.at_ms[i] + ROUNDS_MS
            peer = called(rows, peers, i)
            if peer < 0:
                continue
            if rows.kind[i] == SENT and rows.operation[i] == VERIFY:
                since[peer] = i
                due_ms = min(due_ms, rows.at_ms[i] + ROUNDS_MS)
            elif rows.kind[i] == ENDED and rows.outcome[i] == UNREACHABLE:
                since[peer] = -1
        if connected >= 0 and past.native[end - 1]:
            until_ms = held_until_ms(rows, facts, past, end - 1, end)
            late = missed(rows, facts, peers, since, node, until_ms)
            if late >= 0:
                first[found], last[found] = since[late], end - 1
                found += 1
    return found


@uncounted
def next_due_ms(rows: Rows, peers: Integers, since: Integers, node: int) -> int:
    """When one of these is late."""
    due_ms = END
    for j in range(len(peers)):
        if peers[j] != node and since[j] >= 0:
            due_ms = min(due_ms, rows.at_ms[since[j]] + ROUNDS_MS)
    return due_ms


@uncounted
def missed(rows: Rows, facts: Facts, peers: Integers, since: Integers, node: int, now_ms: int) -> int:
    for j in range(len(peers)):
        if peers[j] == node or since[j] < 0:
            continue
        since_ms = rows.at_ms[since[j]]
        if now_ms - since_ms <= ROUNDS_MS or now_ms - surely_loaded_ms(facts, node, now_ms) <= ROUNDS_MS:
            continue
        if not is_excused(facts, node, peers[j], since_ms, now_ms):
            return j
    return -1


@uncounted
def surely_loaded_ms(facts: Facts, node: int, now_ms: int) -> int:
    """From when on the node was loaded, in the life that it lives now."""
    begin, end = facts.reset_from[node], facts.reset_from[node + 1]
    at = first_from(facts.reset_at_ms, begin, end, now_ms + 1)
    return int(facts.surely_ms[at - 1]) if at > begin else 0


@uncounted
def is_excused(facts: Facts, node: int, peer: int, since_ms: int, until_ms: int) -> bool:
    """Is the peer one that need not be up for the node, at some time in between?"""
    from_ms = since_ms - EXCUSED_MS
    if facts.check_from[peer + 1] == facts.check_from[peer] or facts.last_at_ms[peer] < until_ms:
        return True
    for g in (peer, node):
        begin, end = facts.reset_from[g], facts.reset_from[g + 1]
        at = first_from(facts.reset_at_ms, begin, end, from_ms)
        if at > begin and facts.reset_kind[at - 1] == STOPPED:
            return True
        if at < end and facts.reset_at_ms[at] <= until_ms:
            return True
    for g, other in ((node, peer), (peer, node), (node, node), (peer, peer)):
        begin, end = faults_of(facts, g, other)
        at = first_from(facts.fault_at_ms, begin, end, from_ms)
        if (at < end and facts.fault_at_ms[at] <= until_ms) or (at > begin and facts.fault_breaks[at - 1]):
            return True
    return False


@compiled
def delayed(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    """A change that was sent to a member, but late."""
    found = 0
    for start, end in replicas(rows, decides):
        node = rows.node[start]
        peers = members(facts, node)
        since = np.full(len(peers), -1, np.int64)  # the first change that the peer has not been sent
        for i in range(start, end):
            if rows.flags[i] & HASHED:
                break
            if is_new_life(past, start, i):
                since[:] = -1
            if rows.kind[i] == CHANGED and past.content[i] != rows.digest[i]:
                since[since < 0] = i
            peer = called(rows, peers, i)
            if peer < 0:
                continue
            if rows.kind[i] == ENDED and rows.outcome[i] != SUCCESS:
                # Its retry replaces what waits, with the delay of a retry; only a fresh change may not wait so long.
                since[peer] = -1
            elif rows.kind[i] == SENT and rows.operation[i] == CHANGE:
                change = since[peer]
                since[peer] = -1
                due_ms = facts.sync_delay_ms[facts.run[node]] + MARGIN_MS
                if change < 0 or rows.at_ms[i] - rows.at_ms[change] <= due_ms:
                    continue
                if not is_excused(facts, node, rows.peer[i], rows.at_ms[change], rows.at_ms[i]):
                    first[found], last[found] = change, i
                    found += 1
                    break
    return found


def tell_skipped(story: Story, found: list[Finding]) -> Iterator[Told]:
    for since, last in found:
        assert since is not None, "the finder names it"
        rows = [row for row in story.by_node[last.node] if since.seq <= row.seq <= last.seq]
        verified = {row.peer or "" for row in rows if row.kind == "request_sent" and row.operation == "VERIFY"}
        whom = since.peer if since.kind == "request_sent" else "some member"
        yield Told(
            node=last.node,
            first=since,
            last=last,
            after=since.message,
            evidence={"peer": since.peer, "verified_with": ", ".join(sorted(verified - {since.peer}))},
            message=f"{last.node} did not verify {story.client} with {whom} for more than {ROUNDS_MS // 1000} s after "
            f"{since}, and nothing kept it from that",
            expected=f"{last.node} verifies {story.client} with every member that is up every 5 s",
        )


def tell_delayed(story: Story, found: list[Finding]) -> Iterator[Told]:
    for change, sent in found:
        assert change is not None, "the finder names it"
        rows = [row for row in story.by_node[sent.node] if change.seq - 20 <= row.seq < sent.seq]
        failed = [row for row in rows if row.kind == "reply_received" and row.outcome != "success"]
        yield Told(
            node=sent.node,
            first=change,
            last=sent,
            after=failed[-1].message if failed else sent.message,
            evidence={"peer": sent.peer, "ms": sent.at_ms - change.at_ms},
            message=f"{sent.node} sent {sent.peer} the change of {story.client} of {change} only in {sent}, "
            f"{sent.at_ms - change.at_ms} ms later",
            expected=f"{sent.node} sends a change when the sync delay is over, whatever retry is queued",
        )


ROUND = Invariant(
    "INV-ROUND",
    "An owner verifies each client with every member that is up in every round.",
    ("run", "client", "node"),
    skipped,
    tell_skipped,
    needs=Needs(state=True, reported=True, sent=("CHANGE", "DELETE", "SNAPSHOT", "VERIFY"), lossless=True),
    needs_end=True,  # the longer a node holds a client, the more of what happens to its peers is an excuse
)
DELAY = Invariant(
    "INV-DELAY",
    "A change is sent to every member when the sync delay is over, whatever retry is queued for it.",
    ("run", "client", "node"),
    delayed,
    tell_delayed,
    needs=Needs(state=True, reported=True, sent=("CHANGE", "VERIFY"), lossless=True),
)
