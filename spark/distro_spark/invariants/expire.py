"""INV-EXPIRE and INV-RENEW: a copy that nothing has renewed is gone when its lease is over.

A copy is renewed by being applied and by every verify that is confirmed; with the lease of 180 s and a check each 5 s
it may last 185 s after that. Which of the two is broken is a matter of what came in the meantime: calls about the copy
that were answered with something else than SUCCESS, and renewed it all the same (INV-RENEW), or nothing (INV-EXPIRE).
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import HASHED
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    CHANGE,
    CHANGED,
    CONNECTED,
    OBSERVED,
    REPLIED,
    SUCCESS,
    VERIFY,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    content_after,
    faults_of,
    is_seen,
    is_state,
    renews,
    replicas,
    seen_until_ms,
)
from distro_spark.story import LEASE_MS, Finding, Story, Told

CHECK_MS = 5_000 + 3_000
"""Period of the check of leases, and tolerance."""

LASTS_MS = LEASE_MS + CHECK_MS


@compiled
def overdue(
    rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers, refused: bool
) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        renewed, refusals = -1, 0
        for i in range(start, end):
            if rows.flags[i] & HASHED:
                break
            if past.content[i] == 0:
                renewed = -1
            if (
                renewed >= 0
                and rows.at_ms[i] - rows.at_ms[renewed] > LASTS_MS  # of few rows; the rest costs more to find out
                and not past.native[i]
                and (refusals > 0) == refused
                and is_seen(rows, facts, i)
                and is_over(facts, rows.node[i], rows.at_ms[renewed], rows.at_ms[i])
            ):
                first[found], last[found] = renewed, i
                found += 1
                renewed = -1
                break
            if renews(rows, i) or (rows.kind[i] == OBSERVED and past.content[i] == 0 and rows.digest[i] != 0):
                renewed, refusals = i, 0
            elif rows.kind[i] == REPLIED and rows.operation[i] in (VERIFY, CHANGE) and rows.outcome[i] != SUCCESS:
                refusals += 1
        if renewed < 0 or (refusals > 0) != refused or not holds_copy(rows, past, end - 1):
            continue
        if not is_seen(rows, facts, end - 1):
            continue
        until_ms = seen_until_ms(rows, facts, past, end - 1, end)
        if is_over(facts, rows.node[start], rows.at_ms[renewed], until_ms):
            first[found], last[found] = renewed, end - 1
            found += 1
    return found


@uncounted
def is_over(facts: Facts, node: int, renewed_ms: int, now_ms: int) -> bool:
    """May a copy not be there any more? It lasts for its lease and one check, which a node that is paused makes when it
    goes on."""
    due = renewed_ms + LASTS_MS
    if now_ms <= due:
        return False
    is_paused = False
    begin, end = faults_of(facts, node, node)
    for at in range(begin, end):
        if facts.fault_at_ms[at] > due and not is_paused:
            break
        is_paused = facts.fault_breaks[at]
        if not is_paused:
            due = max(due, facts.fault_at_ms[at] + CHECK_MS)
    return not is_paused and now_ms > due


@uncounted
def holds_copy(rows: Rows, past: Past, i: int) -> bool:
    """After row i."""
    if past.native[i] or rows.kind[i] in (CONNECTED, CHANGED):
        return False
    return bool((content_after(rows, i) if is_state(rows.kind[i]) else past.content[i]) != 0)


@compiled
def outlived(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    return overdue(rows, facts, past, decides, first, last, False)


@compiled
def renewed_by_refusal(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    return overdue(rows, facts, past, decides, first, last, True)


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for renewed, last in found:
        assert renewed is not None, "the finder names it"
        calls = [row for row in story.by_node[last.node] if renewed.seq < row.seq <= last.seq and row.outcome]
        refused = [row for row in calls if row.outcome != "success"]
        yield Told(
            node=last.node,
            first=renewed,
            last=last,
            after=refused[0].message if refused else renewed.message,
            evidence={"renewed": renewed.at_ms, "held_at": last.at_ms, "refusals": len(refused)},
            message=f"{last.node} still holds its copy of {story.client} more than {LASTS_MS // 1000} s after it was "
            f"last renewed in {renewed}; {len(refused)} calls about it were refused since",
            expected=f"{last.node} removes the copy {LEASE_MS // 1000} s after its last renewal",
        )


EXPIRE = Invariant(
    "INV-EXPIRE",
    "A copy that nothing has renewed is held nowhere a lease and one check later.",
    ("run", "client", "node"),
    outlived,
    tell,
    needs=Needs(state=True, received=("CHANGE", "VERIFY"), lossless=True),
)
RENEW = Invariant(
    "INV-RENEW",
    "A call that is not answered with SUCCESS renews no lease.",
    ("run", "client", "node"),
    renewed_by_refusal,
    tell,
    needs=Needs(state=True, received=("CHANGE", "VERIFY"), lossless=True),
)
