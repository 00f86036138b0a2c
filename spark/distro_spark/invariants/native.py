"""INV-NATIVE: what a connected client publishes changes only through its own connection.

While a node has the client's connection, no copy that a peer or a snapshot brings may replace what the connection has
said, and nobody else's DELETE may remove it (B01, B41). A copy that says the same changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled, uncounted
from distro_spark.encoding import BY_LEASE, HASHED, NO_REVISION
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    APPLIED,
    CHANGED,
    CONNECTED,
    REMOVED,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    replicas,
)
from distro_spark.story import Finding, Story, Told


@compiled
def overwritten(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        own = -1
        for i in range(start, end):
            if rows.kind[i] in (CONNECTED, CHANGED):
                own = i
            elif past.native[i] and not rows.flags[i] & HASHED and changes(rows, past, i):
                first[found], last[found] = own, i
                found += 1
                break
    return found


@uncounted
def changes(rows: Rows, past: Past, i: int) -> bool:
    if rows.kind[i] == REMOVED:
        return bool(rows.flags[i] & BY_LEASE == 0)
    if rows.kind[i] != APPLIED:
        return False
    moved = rows.revision[i] not in (NO_REVISION, past.revision[i]) and past.revision[i] != NO_REVISION
    return bool(moved or rows.digest[i] != past.content[i])


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for first, last in found:
        what = "removed" if last.digest is None else f"replaced by {last.digest} (revision {last.revision})"
        yield Told(
            node=last.node,
            first=last,
            last=last,
            after=last.message,
            evidence={"own": first and first.digest, "own_revision": first and first.revision, "actual": last.digest},
            message=f"{story.client} is connected to {last.node}, which has {first and first.digest} from it since "
            f"{first}, and was {what} in {last}",
            expected=f"{last.node} keeps what {story.client} itself has said, and refuses the rest",
        )


INVARIANT = Invariant(
    "INV-NATIVE",
    "What a connected client publishes, and its revision, change only through its own connection.",
    ("run", "client", "node"),
    overwritten,
    tell,
    needs=Needs(state=True, reported=True, owned=True),  # a copy may be removed by anybody
)
