"""INV-RETRY: a sync that failed is attempted again.

Judged at the owner's checkpoints: the last thing that happened between the owner and a member that is up, if its retry
was due since, must not be a CHANGE or DELETE that failed, unless the client has gone since and a CHANGE has nothing
to carry (that its DELETE is sent is INV-DELETE). For a member that leaves the list, while it is asked or later, it is
dropped, and not taken up when it is back; so it is where a client of the HTTP API may have another owner, since a list
has changed. B37, B42.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled, uncounted
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    CHANGE,
    CHANGED,
    CONNECTED,
    DELETE,
    DISCONNECTED,
    ENDED,
    SUCCESS,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    called,
    content_after,
    faults_of,
    first_from,
    is_new_life,
    is_state,
    members,
    replicas,
)
from distro_spark.story import REPEATED_WITHIN_MS, Finding, Story, Told


@compiled
def given_up(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        node = rows.node[start]
        peers = members(facts, node)
        failed = np.full(len(peers), -1, np.int64)
        asked_ms = np.zeros(len(peers), np.int64)
        waiting, left = 0, False
        check, last_check = facts.check_from[node], facts.check_from[node + 1]
        for i in range(start, end + 1):
            while waiting and check < last_check and (i == end or facts.check_seq[check] < rows.seq[i]):
                offender = unanswered(rows, facts, past, failed, asked_ms, peers, check, i - 1, left)
                if offender >= 0:
                    first[found] = last[found] = offender
                    found += 1
                    break
                check += 1
            if i == end or (found and last[found - 1] >= start):
                break
            check = first_from(facts.check_seq, check, last_check, rows.seq[i])
            if is_new_life(past, start, i):
                failed[:] = -1
                waiting, left = 0, False
            left = rows.kind[i] == DISCONNECTED or (left and rows.kind[i] not in (CONNECTED, CHANGED))
            peer = called(rows, peers, i)
            if peer < 0 or rows.operation[i] not in (CHANGE, DELETE):
                continue
            waiting -= failed[peer] >= 0
            if rows.kind[i] != ENDED:
                asked_ms[peer] = rows.at_ms[i]
            failed[peer] = i if rows.kind[i] == ENDED and rows.outcome[i] != SUCCESS else -1
            waiting += failed[peer] >= 0
    return found


@uncounted
def unanswered(
    rows: Rows,
    facts: Facts,
    past: Past,
    failed: Integers,
    asked_ms: Integers,
    peers: Integers,
    check: int,
    now: int,
    left: bool,
) -> int:
    """The first failure that a peer with the same checkpoint has left behind, or -1. `left`: the client has left the
    node, which may hold a copy of it all the same."""
    node = rows.node[now]
    reset = past.reset[now]
    if reset < facts.reset_from[node + 1] and facts.reset_seq[reset] < facts.check_seq[check]:
        return -1
    holds = not left and (content_after(rows, now) if is_state(rows.kind[now]) else past.content[now]) != 0
    worst = -1
    for j in range(len(peers)):
        i = failed[j]
        if i < 0 or (rows.operation[i] == CHANGE and not holds):
            continue
        if facts.check_at_ms[check] - rows.at_ms[i] <= REPEATED_WITHIN_MS:
            continue
        ordinals = facts.check_ordinal[facts.check_from[peers[j]] : facts.check_from[peers[j] + 1]]
        at = np.searchsorted(ordinals, facts.check_ordinal[check])
        is_up = at < len(ordinals) and ordinals[at] == facts.check_ordinal[check]
        stayed = not has_left(facts, node, peers[j], asked_ms[j], facts.check_at_ms[check])
        if is_up and stayed and (worst < 0 or i < worst):
            worst = i
    return worst


@uncounted
def has_left(facts: Facts, node: int, peer: int, from_ms: int, until_ms: int) -> bool:
    """Did the peer leave the node's list in this time? Then what failed is dropped."""
    begin, end = faults_of(facts, node, peer)
    for at in range(first_from(facts.fault_at_ms, begin, end, from_ms), end):
        if facts.fault_at_ms[at] > until_ms:
            break
        if facts.fault_left[at]:
            return True
    return False


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for _, failed in found:
        checkpoint = next(row for row in story.checkpoints[failed.node] if row.seq > failed.seq)
        if story.may_have_new_owner(checkpoint.at_ms):
            continue
        yield Told(
            node=failed.node,
            first=failed,
            last=checkpoint,
            after=failed.message,
            evidence={"operation": failed.operation, "outcome": failed.outcome, "peer": failed.peer},
            message=f"{failed.node} never repeated its {failed.operation} of {story.client} to {failed.peer}, which "
            f"ended with {failed.outcome} in {failed}, until checkpoint {checkpoint.detail}",
            expected=f"{failed.node} sends {story.client} to {failed.peer} again until that succeeds",
        )


INVARIANT = Invariant(
    "INV-RETRY",
    "A sync that did not succeed is attempted again while its target is a member.",
    ("run", "client", "node"),
    given_up,
    tell,
    needs=Needs(state=True, sent=("CHANGE", "DELETE"), lossless=True),
    needs_checkpoint=True,
)
