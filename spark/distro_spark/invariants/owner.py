"""INV-OWNER: for each client one responsible member.

A node claims a client when it says that it holds it as its own, and when it sends what only an owner sends: CHANGE,
DELETE, VERIFY (`history.claims`). The client of a connection belongs to the node with that connection for as long as
it lives, and its id is never used again (docs/protocol #sync-announce), so within a run two claimers are one too many,
and what a restarted node claimed before stays its own. Clients by `ip:port#…` belong to the member that their hash
names and move with the membership; they are not judged here.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.history import Trace, claims
from distro_spark.invariants.registry import invariant
from distro_spark.violations import as_violations, evidence, told

NAME = "INV-OWNER"


@invariant(NAME, key=("run", "client"), text="Each client has exactly one responsible member.")
def one_owner_per_client(trace: Trace) -> DataFrame:
    """The first claimer is the owner, one with the client's connection before any other; all others are violations."""
    by_rank = Window.partitionBy("run", "client").orderBy("rank")
    return (
        claims(trace.events)
        .where(~F.col("client").contains("#"))
        .withColumn("first_event", F.first("claim").over(by_rank))
        .where("rank > 1")
        .withColumnRenamed("claim", "last_event")
        .withColumn("evidence", evidence(owner="first_event.node", claims="claims"))
        .withColumn(
            "message",
            F.format_string(
                "%s acts as the owner of %s since %s, but %s owns it since %s",
                "node",
                "client",
                told("last_event"),
                "first_event.node",
                told("first_event"),
            ),
        )
        .transform(as_violations, NAME)
    )
