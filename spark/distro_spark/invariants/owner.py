"""INV-OWNER: each client has one responsible member.

The client of a connection belongs to the node with that connection as long as it lives, and its id is never used again
(docs/protocol #sync-announce). A node claims a client when it reports that it holds it as its own, and when it sends a
request that only an owner sends: CHANGE, DELETE, VERIFY. So within a run a second claimer is a violation, a restarted
node keeps its earlier claims, and a client that is held but was never claimed is a violation too.

A client by `ip:port#…` belongs to the member that its hash selects among those that are up, and changes its owner
without a message. It is judged in settled time (`responsibility`), by each node's own member list, and by verifies,
since a former owner may still retry a CHANGE: a node that verifies a client of another owner is a violation; if two
members are both the owner, since their lists differ, the one that began later is the violation; and an owner that is
loaded and holds the client must verify it.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.responsibility import BY_CONNECTION, BY_HASH, ROUNDS_MS, claims_by_hash, holdings_by_hash
from distro_spark.timeline import NOTHING, Timeline, first_of

INVARIANT = Invariant("INV-OWNER", "Each client has exactly one responsible member.", needs=Needs(owned=True))
LEAVES = "{node} leaves {client} to {owner}"


@INVARIANT.found_by(
    "{node} acts as the owner of {client} since {last}, but {owner} owns it since {first}",
    LEAVES,
)
def second_claimer(t: Timeline) -> pl.DataFrame:
    """The first claimer is the owner; one with the client's connection precedes all others. Further claimers are
    violations."""
    owners = t.owners.filter(rank=0).select("client_no", first="claim", owner="g")
    found = t.owners.filter(c("rank") > 0).join(owners, "client_no").rename({"claim": "last"})
    found = t.of(found, "last", "is_connection").filter("is_connection")
    return found.select("client_no", "g", "first", "last", "claims", owner=t.name("owner"))


@INVARIANT.found_by(
    "{node} holds {client} since {last}, which no member ever claimed",
    "{node} holds only clients that a member owns, and not {client}",
)
def unclaimed(t: Timeline) -> pl.DataFrame:
    """Clients of connections that a node holds and no member ever claimed; the first row with each."""
    held = t.having(c("is_connection") & c("content").is_not_null(), "run", "client_no", "g", "row", "at_ms")
    held = held.join(t.owners, "client_no", how="anti").filter(c("run").is_in(t.cluster.whole(BY_CONNECTION)))
    found = first_of(held, "client_no", "at_ms", "row")
    return found.select("client_no", "g", first="row", last="row", claims=0)


@INVARIANT.found_by(
    "{node} verifies {client} since {last}, but [by its member list ({_members}) {_by_list} is responsible]{_and}"
    "[{_other} claims it since {_other_since}]",
    LEAVES,
)
def misclaimed(t: Timeline) -> pl.DataFrame:
    """Members that verify a client which is another's by their own list, or which another owner claimed before."""
    if t.rows["is_connection"].all():
        return NOTHING
    claims = claims_by_hash(t)
    rightful = first_of(claims.filter(c("owner") == c("g")), ["client_no", "from_ms"], "claimed_ms", "g")
    rightful = rightful.select("client_no", "from_ms", first="row", other="g")
    found = claims.join(rightful, ["client_no", "from_ms"], how="left")
    found = found.filter((c("owner") != c("g")) | (c("other") != c("g")))
    found = first_of(found, ["client_no", "g"], "from_ms", "row").rename({"row": "last"})
    is_anothers = c("owner") != c("g")
    return found.filter(t.judged(BY_HASH)).select(
        *("client_no", "g", "first", "last", "claims"),
        owner=pl.coalesce(t.name("other"), t.name("owner")),
        _members="members",
        _by_list=pl.when(is_anothers).then(t.name("owner")),
        _and=pl.when(is_anothers & c("other").is_not_null()).then(pl.lit(", and ")).otherwise(pl.lit("")),
        _other=t.name("other"),
        _other_since_row="first",
    )


@INVARIANT.found_by(
    "{node} is responsible for {client} by its member list ({_members}) and holds it since {last}, but never verified "
    "it from {_from_ms} to {_until_ms} ms",
    "{node} verifies {client}",
)
def unverified(t: Timeline) -> pl.DataFrame:
    """Members that by their own list are the owner of a client, hold it and are loaded, and never verify it."""
    if t.rows["is_connection"].all():
        return NOTHING
    held = holdings_by_hash(t).filter(c("owner") == c("g"), c("alive") > 1)
    claims = claims_by_hash(t).select("client_no", "g", "from_ms")
    found = held.join(claims, ["client_no", "g", "from_ms"], how="anti")
    found = first_of(found.filter(c("until_ms") - c("since_ms") > ROUNDS_MS), ["client_no", "g"], "row", "from_ms")
    return found.filter(t.judged(BY_HASH)).select(
        *("client_no", "g"),
        first="row",
        last="row",
        claims=0,
        owner=t.name("owner"),
        _members="members",
        _from_ms="since_ms",
        _until_ms="until_ms",
    )
