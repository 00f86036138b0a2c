"""INV-OWNER: for each client one responsible member.

A node claims a client when it says that it holds it as its own, and when it sends what only an owner sends: CHANGE,
DELETE, VERIFY (`Story.claims`). The client of a connection belongs to the node with that connection for as long as it
lives, and its id is never used again (docs/protocol #sync-announce), so within a run two claimers are one too many, and
what a restarted node claimed before stays its own. Clients by `ip:port#…` belong to the member that their hash names
and move with the membership; they are not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator

from distro_spark.compiling import compiled
from distro_spark.encoding import HASHED
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.rows import (
    Facts,
    Flags,
    Integers,
    Past,
    Rows,
    clients,
    is_claim,
)
from distro_spark.story import Finding, Story, Told


@compiled
def second_claimer(rows: Rows, facts: Facts, past: Past, decides: Flags, first: Integers, last: Integers) -> int:
    found = 0
    for start, end in clients(rows):
        claimer = -1
        for i in range(start, end):
            if rows.flags[i] & HASHED or not is_claim(rows, i) or rows.node[i] == claimer:
                continue
            if claimer >= 0:
                first[found], last[found] = -1, i
                found += 1
                break
            claimer = rows.node[i]
    return found


def tell(story: Story, _: list[Finding]) -> Iterator[Told]:
    """The first claimer is the owner, one with the client's connection before any other; all others are violations."""
    (owners, *others) = story.claims
    since = owners[0]
    for claims in others:
        claim = claims[0]
        yield Told(
            node=claim.node,
            first=since,
            last=claim,
            after=claim.message,
            evidence={"owner": since.node, "claims": len(claims)},
            message=f"{claim.node} acts as the owner of {story.client} since {claim}, "
            f"but {since.node} owns it since {since}",
            expected=f"{claim.node} leaves {story.client} to {since.node}",
        )


INVARIANT = Invariant(
    "INV-OWNER",
    "Each client has exactly one responsible member.",
    ("run", "client"),
    second_claimer,
    tell,
    needs=Needs(owned=True),
)
