"""INV-LIVE: nobody's lease check removes a client that is there.

Judged where a copy, or the client itself, is removed because nobody renewed it. Signatures:

* `native removed`: the client is connected to this very node;
* `short lease`: a verify renewed the copy less than the lease ago (B31);
* `sync does not renew`: a CHANGE was applied less than the lease ago, which in a release renews nothing (B17);
* `verified in vain`: the owner was heard about it three times in the last half minute, and not one of them renewed it,
  nor did a sync repair it (B10).
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled
from distro_spark.encoding import BY_LEASE, HASHED
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    DELETE,
    RECEIVED,
    REMOVED,
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    renews,
    replicas,
)
from distro_spark.story import LEASE_MS, Finding, Row, Story, Told
from distro_spark.violations import SIGNATURE
from distro_traces.event import Kind

TOLERANCE_MS = 1000
HEARD_WITHIN_MS = 30_000
"""Three verify rounds and as much again."""


@compiled
def removed_alive(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in replicas(rows, decides):
        renewed, heard, heard_before, heard_first = -1, -1, -1, -1
        for i in range(start, end):
            if rows.flags[i] & HASHED:
                break
            if renews(rows, i):
                renewed = i
            elif rows.kind[i] == RECEIVED and rows.operation[i] != DELETE:
                heard, heard_before, heard_first = i, heard, heard_before
            elif rows.kind[i] == REMOVED and rows.flags[i] & BY_LEASE:
                soon = renewed >= 0 and rows.at_ms[i] - rows.at_ms[renewed] < LEASE_MS - TOLERANCE_MS
                in_vain = heard_first >= 0 and rows.at_ms[i] - rows.at_ms[heard_first] < HEARD_WITHIN_MS
                if past.native[i] or soon or in_vain:
                    first[found], last[found] = renewed, i
                    found += 1
                    break
    return found


def tell(story: Story, found: list[Finding]) -> Iterator[Told]:
    for renewed, removed in found:
        signature = _signature(story, renewed, removed)
        heard = max(
            (row for row in _before(story, removed) if row.kind == Kind.REQUEST_RECEIVED),
            key=lambda row: row.seq,
            default=None,
        )
        since = removed if renewed is None else renewed
        yield Told(
            node=removed.node,
            first=since,
            last=removed,
            after=heard.message if heard else None,
            evidence={SIGNATURE: signature, "renewed": since.at_ms, "removed": removed.at_ms},
            message=f"{removed.node} removed {story.client} in {removed}, for want of a renewal: {signature}; last "
            f"renewed in {since}" + (f", last heard of in {heard}" if heard else ""),
            expected=f"{removed.node} keeps {story.client} while its owner has it",
        )


def _before(story: Story, removed: Row) -> list[Row]:
    """In this life of its node."""
    began = max((row.seq for row in story.resets.get(removed.node, ()) if row.seq < removed.seq), default=0)
    return [row for row in story.by_node[removed.node] if began < row.seq < removed.seq]


def _signature(story: Story, renewed: Row | None, removed: Row) -> str:
    before = _before(story, removed)
    own = [row for row in before if row.kind in (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.REPLICA_REMOVED)]
    if own and own[-1].kind != Kind.REPLICA_REMOVED:
        return "native removed"
    confirmed = [
        row for row in before if row.kind == Kind.REPLY_SENT and (row.operation, row.outcome) == ("VERIFY", "success")
    ]
    began = [row for row in before if row.kind == Kind.REPLICA_APPLIED]
    if confirmed and removed.at_ms - confirmed[-1].at_ms < LEASE_MS - TOLERANCE_MS:
        return "short lease"
    if renewed is not None and removed.at_ms - renewed.at_ms < LEASE_MS - TOLERANCE_MS:
        return "short lease" if len(began) == 1 else "sync does not renew"
    return "verified in vain"


INVARIANT = Invariant(
    "INV-LIVE",
    "No lease check removes a client that is connected, or of which the owner is heard.",
    ("run", "client", "node"),
    removed_alive,
    tell,
    needs=Needs(state=True, reported=True, received=("CHANGE", "VERIFY")),
)
