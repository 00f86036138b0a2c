"""INV-DELETE: the end of a client is told to everybody who holds it.

Judged at the first checkpoint after the client has left its owner, if the owner runs on until then: whoever still holds
a copy, and was in the owner's list from when the client left until a DELETE could be sent, must have answered one with
SUCCESS (what it is worth then is INV-ACK's and INV-RESURRECT's matter), unless one failed just now. B08, B24, B25, B28:
the DELETE was swallowed before it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import HASHED
from distro_spark.invariants.conv import swallowed
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    DELETE,
    DISCONNECTED,
    ENDED,
    SUCCESS,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    clients,
    content_after,
    faults_of,
    is_state,
    latest,
)
from distro_spark.story import REPEATED_WITHIN_MS, Finding, Story, Told
from distro_spark.violations import SIGNATURE


@compiled
def untold(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in clients(rows):
        if rows.flags[start] & HASHED:
            continue
        left = latest(rows, start, end, (DISCONNECTED,))
        if left < 0 or not decides[rows.node[left]]:
            continue
        ordinal = next_ordinal(rows, facts, past, left)
        if ordinal < 0:
            continue
        check_ms = checkpoint_ms(facts, rows.node[left], ordinal)
        i = start
        while i < end:
            stop = i
            while stop < end and rows.node[stop] == rows.node[i]:
                stop += 1
            holding = held_at(rows, facts, past, i, stop, ordinal)
            may_have = rows.node[i] != rows.node[left] and decides[rows.node[i]] and holding >= 0
            is_owed = may_have and is_listed(rows, facts, left, rows.node[i], last_try(rows, left, end, rows.node[i]))
            if is_owed and not is_told(rows, left, end, rows.node[i], check_ms):
                first[found], last[found] = left, holding
                found += 1
            i = stop
    return found


@uncounted
def next_ordinal(rows: Rows, facts: Facts, past: Past, i: int) -> int:
    """Of the first checkpoint of the row's node after it and before the node's next start or stop; -1: none."""
    node = rows.node[i]
    checks = facts.check_seq[facts.check_from[node] : facts.check_from[node + 1]]
    check = np.searchsorted(checks, rows.seq[i])
    if check == len(checks):
        return -1
    if past.reset[i] < facts.reset_from[node + 1] and facts.reset_seq[past.reset[i]] < checks[check]:
        return -1
    return int(facts.check_ordinal[facts.check_from[node] + check])


@uncounted
def held_at(rows: Rows, facts: Facts, past: Past, start: int, end: int, ordinal: int) -> int:
    """The row since which the node holds what it holds at its checkpoint of that ordinal; -1: nothing."""
    node = rows.node[start]
    ordinals = facts.check_ordinal[facts.check_from[node] : facts.check_from[node + 1]]
    at = np.searchsorted(ordinals, ordinal)
    if at == len(ordinals) or ordinals[at] != ordinal:
        return -1
    seq = facts.check_seq[facts.check_from[node] + at]
    since = -1
    for i in range(start, end):
        if rows.seq[i] > seq:
            break
        if is_state(rows.kind[i]):
            if content_after(rows, i) == 0:
                since = -1
            elif since < 0 or past.content[i] == 0:
                since = i
    if since < 0:
        return -1
    reset = past.reset[since]
    return since if reset == facts.reset_from[node + 1] or facts.reset_seq[reset] > seq else -1


@uncounted
def last_try(rows: Rows, left: int, end: int, peer: int) -> int:
    """The row in which the last DELETE to the peer ended; that with which the client left where there was none."""
    last = left
    for i in range(left + 1, end):
        if rows.node[i] != rows.node[left]:
            break
        if rows.kind[i] == ENDED and rows.operation[i] == DELETE and rows.peer[i] == peer:
            last = i
    return last


@uncounted
def is_listed(rows: Rows, facts: Facts, left: int, peer: int, tried: int) -> bool:
    """Is the peer in the node's list before and after the instant in which the client left, and until the next DELETE
    was due after the last try? It sends to nobody else, and what waits for who is not listed is dropped."""
    listed = True
    due_ms = rows.at_ms[tried] + REPEATED_WITHIN_MS
    begin, end = faults_of(facts, rows.node[left], peer)
    for at in range(begin, end):
        if facts.fault_at_ms[at] > due_ms:
            break
        is_back = facts.fault_back[at] and facts.fault_at_ms[at] < rows.at_ms[left]
        listed = (listed or is_back) and not facts.fault_left[at]
    return listed


@uncounted
def checkpoint_ms(facts: Facts, node: int, ordinal: int) -> int:
    """When the node has its checkpoint of that ordinal, which it has."""
    begin, end = facts.check_from[node], facts.check_from[node + 1]
    return int(facts.check_at_ms[begin + np.searchsorted(facts.check_ordinal[begin:end], ordinal)])


@uncounted
def is_told(rows: Rows, left: int, end: int, peer: int, check_ms: int) -> bool:
    """A DELETE succeeded, or the last one failed so lately that it is not due again before the checkpoint."""
    for i in range(left + 1, end):
        if rows.node[i] != rows.node[left]:
            break
        if rows.kind[i] != ENDED or rows.operation[i] != DELETE or rows.peer[i] != peer:
            continue
        if rows.outcome[i] == SUCCESS or 0 <= check_ms - rows.at_ms[i] <= REPEATED_WITHIN_MS:
            return True
    return False


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for left, held in found:
        assert left is not None, "the finder names it"
        checkpoint = next(row for row in story.checkpoints[left.node] if row.seq > left.seq)
        calls = [row for row in story.by_node[left.node] if row.peer == held.node and row.operation]
        after = calls[-1] if calls else None
        yield Told(
            node=held.node,
            first=left,
            last=checkpoint,
            after=after.message if after else None,
            evidence={SIGNATURE: swallowed(story, held.node), "owner": left.node, "held_since": str(held)},
            message=f"{held.node} still holds {story.client} (since {held}) at checkpoint {checkpoint.detail}: "
            f"{left.node} lost it in {left}, and {held.node} confirmed no DELETE since"
            + (f"; the last call to it is {after}" if after else ""),
            expected=f"{left.node} sends the DELETE of {story.client} to {held.node} until it succeeds",
        )


INVARIANT = Invariant(
    "INV-DELETE",
    "When a client has left its owner, DELETE is delivered to every member that holds it.",
    ("run", "client"),
    untold,
    tell,
    needs=Needs(state=True, sent=("DELETE",), lossless=True),
    needs_checkpoint=True,
)
