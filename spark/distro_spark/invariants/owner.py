"""INV-OWNER: for each client one responsible member.

A node claims a client when it says that it holds it as its own, and when it sends what only an owner sends: CHANGE,
DELETE, VERIFY. The client of a connection belongs to the node with that connection for as long as it lives, and its id
is never used again (docs/protocol #sync-announce), so within a run two claimers are one too many, and what a restarted
node claimed before stays its own. Clients by `ip:port#…` belong to the member that their hash names and move with the
membership; they are not judged here.
"""

from __future__ import annotations

import polars as pl

from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, c


def second_claimer(t: Timeline) -> pl.DataFrame:
    """The first claimer is the owner, one with the client's connection before any other; all others are violations."""
    owners = t.owners.filter(rank=0).select("client_no", first="claim", owner="g")
    found = t.owners.filter(c("rank") > 0).join(owners, "client_no")
    found = t.of(found, "claim", after="message", connected="is_connection").filter("connected")
    return found.select("g", "first", "claims", "after", last="claim", owner=t.name("owner"))


INVARIANT = Invariant(
    "INV-OWNER",
    "Each client has exactly one responsible member.",
    second_claimer,
    "{node} acts as the owner of {client} since {last}, but {owner} owns it since {first}",
    "{node} leaves {client} to {owner}",
    needs=Needs(owned=True),
)
