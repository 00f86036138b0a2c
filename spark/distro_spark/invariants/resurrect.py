"""INV-RESURRECT: a client that its owner removed is in the end held nowhere.

Whatever went wrong with its DELETE, the lease ends the last copy: 180 s, one check of 5 s and one verify period after
the client has left. What a node that loads meanwhile takes from one that does not know yet begins a lease of its own;
so much tolerance is given, and a whole lease where a node was started again (B03, B26, B27, B40). Where the owner
stopped within a lease of that, the DELETE may never have been sent, and every load may begin one more lease: not
judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import HASHED
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    APPLIED,
    CHANGED,
    CONNECTED,
    DISCONNECTED,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    clients,
    content_after,
    is_state,
    latest,
    seen_until_ms,
)
from distro_spark.story import LEASE_MS, Finding, Story, Told

LOAD_MS = 35_000
WITHIN_MS = LEASE_MS + 5_000 + 5_000 + LOAD_MS


@compiled
def lingers(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in clients(rows):
        if rows.flags[start] & HASHED:
            continue
        left = latest(rows, start, end, (DISCONNECTED,))
        came = latest(rows, start, end, (CONNECTED, CHANGED))
        if left < 0 or (came >= 0 and rows.at_ms[came] > rows.at_ms[left]):
            continue
        reset = past.reset[left]
        stopped = reset < facts.reset_from[rows.node[left] + 1]
        if stopped and facts.reset_at_ms[reset] - rows.at_ms[left] < LEASE_MS:
            continue
        told = -1
        for i in range(start, end):
            if not is_state(rows.kind[i]) or content_after(rows, i) == 0 or rows.node[i] == told:
                continue
            if not decides[rows.node[i]] or rows.node[i] == rows.node[left]:
                continue
            since_ms = rows.at_ms[left]
            if may_be_loaded(rows, facts, past, i, left):
                since_ms = max(since_ms, rows.at_ms[i])
            if seen_until_ms(rows, facts, past, i, end) - since_ms > WITHIN_MS:
                first[found], last[found] = left, i
                found += 1
                told = rows.node[i]
    return found


@uncounted
def may_be_loaded(rows: Rows, facts: Facts, past: Past, i: int, left: int) -> bool:
    """Its node was started again, and that or the snapshot that it then got was after the client had left or not long
    before. It may be minutes until a load is answered; where the trace tells of none, nobody knows when that was."""
    started = past.reset[i] - 1
    if rows.kind[i] != APPLIED or started <= facts.reset_from[rows.node[i]]:
        return False
    surely_ms = facts.surely_ms[started]
    return bool(surely_ms == 0 or rows.at_ms[left] - max(facts.reset_at_ms[started], surely_ms) < LEASE_MS)


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for left, held in found:
        assert left is not None, "the finder names it"
        yield Told(
            node=held.node,
            first=left,
            last=held,
            after=held.message,
            evidence={"owner": left.node, "left": left.at_ms, "held_since": held.at_ms},
            message=f"{held.node} still holds {story.client} more than {WITHIN_MS // 1000} s after it has left its "
            f"owner in {left}; what it holds it has from {held}",
            expected=f"{held.node} removes {story.client} at the DELETE, or else when its lease ends",
        )


INVARIANT = Invariant(
    "INV-RESURRECT",
    "A client that its owner removed exists nowhere any more when a lease has passed.",
    ("run", "client"),
    lingers,
    tell,
    needs=Needs(state=True, lossless=True),
)
