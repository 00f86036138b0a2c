"""Who held what, when: from single rows to stretches of time in which a node's view of a client stayed the same.

INV-CONV and the convergence times both ask this, so it is answered once. A *stretch* begins with the row that changed
the view and ends with the one that changes it again. Before its first row, and from its stop or start on, a node
holds nothing.

What is compared is the view that a subscriber gets, not the client record. A client that publishes nothing is in no
view of any service (docs/protocol #receive-change), so on a node it counts the same as no client at all: the owner has
it from the connection on, the others only after the first verify (section 6.1), and neither of them is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.violations import EVENT_REFERENCE, event_reference
from distro_traces.content import digest
from distro_traces.event import STATE_KINDS, Kind

NOTHING = digest(())
"""The digest of a client that publishes nothing."""

_GONE = (Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED)
_RESET = (Kind.NODE_STARTED, Kind.NODE_STOPPED)
_OWN_CONNECTION = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED)
_OWNERS_OPERATIONS = ("ADD", "CHANGE", "DELETE", "VERIFY")


@dataclass(frozen=True, slots=True)
class Trace:
    """What the invariants work on: `events` has the columns of `Event` and `profile`; `history` is
    `stretches(events)`. Whoever makes it keeps both (`check` does), since several programs read them."""

    events: DataFrame
    history: DataFrame


def is_one_of(*kinds: Kind) -> Column:
    return F.col("kind").isin(*(kind.value for kind in kinds))


def members(events: DataFrame) -> DataFrame:
    """run, profile, node: the nodes that started or were checked, thus those that replicate."""
    return events.where(is_one_of(Kind.CHECKPOINT, *_RESET)).select("run", "profile", "node").distinct()


def claims(events: DataFrame) -> DataFrame:
    """One row per (run, profile, client, node) where the node ever acted as the client's owner.

    That is: said that it holds it as its own, or sent what only an owner sends. claim (the first such event), claims
    (how many), rank (1: the owner). A node with the client's own connection comes before one without, then the first.
    """
    holds_as_own = F.col("owned") & is_one_of(*STATE_KINDS)
    acts_as_owner = is_one_of(Kind.REQUEST_SENT) & F.col("operation").isin(*_OWNERS_OPERATIONS)
    is_claim = F.coalesce(holds_as_own, F.lit(False)) | F.coalesce(acts_as_owner, F.lit(False))
    first = Window.partitionBy("run", "client").orderBy(F.desc("has_connection"), "claim.at_ms", "node")
    return (
        events.where(F.col("client").isNotNull() & is_claim)
        .withColumn("event", event_reference())
        .groupBy("run", "profile", "client", "node")
        .agg(
            F.min_by("event", "seq").alias("claim"),
            F.max(is_one_of(*_OWN_CONNECTION)).alias("has_connection"),
            F.count("*").alias("claims"),
        )
        .withColumn("rank", F.row_number().over(first))
    )


def owners(events: DataFrame) -> DataFrame:
    """run, client, owner: ownership of a connection's client never moves, so there is one for the whole run."""
    return claims(events).where("rank = 1").select("run", "client", F.col("node").alias("owner"))


def stretches(events: DataFrame) -> DataFrame:
    """The history of each client on each member, one row per stretch.

    run, profile, client, node, owner (null: nobody claimed it); view (null: nothing); seq, at_ms, event (the row with
    which it begins, event null for the time before the first row); next_event (with which it ends, null: the trace's
    end); revision (the last one seen in it); native (the node said between the same two starts that it holds
    it as its own).
    """
    timeline = _timeline(events)
    by_seq = Window.partitionBy("run", "client", "node").orderBy("seq")
    is_new = (F.row_number().over(by_seq) == 1) | ~F.col("view").eqNullSafe(F.lag("view").over(by_seq))
    # `max` over the rows so far is the latest such row, since the sequence number only grows.
    last_reset = F.max(F.when(is_one_of(*_RESET), F.col("seq"))).over(by_seq)
    incarnation = Window.partitionBy("run", "client", "node", "last_reset")
    numbered = timeline.withColumns({"is_new": is_new.cast("int"), "last_reset": last_reset}).withColumns(
        {
            "native": F.coalesce(F.max("owned").over(incarnation), F.lit(False)),
            "number": F.sum("is_new").over(by_seq),
        }
    )
    return (
        numbered.groupBy("run", "client", "node", "number")
        .agg(
            F.first("profile").alias("profile"),
            F.first("view").alias("view"),
            F.min("seq").alias("seq"),
            F.min_by("at_ms", "seq").alias("at_ms"),
            F.min_by("event", "seq").alias("event"),
            F.max_by("revision", F.when(F.col("revision").isNotNull(), F.col("seq"))).alias("revision"),
            F.max_by("native", "seq").alias("native"),
        )
        .withColumn("next_event", F.lead("event").over(by_seq))
        .join(owners(events), ["run", "client"], "left")
        .drop("number")
    )


def _timeline(events: DataFrame) -> DataFrame:
    """State rows, and for each client on each member the rows that say it holds nothing: the beginning, the resets."""
    columns = ["run", "profile", "client", "node", "seq", "at_ms", "kind", "owned", "revision", "view", "event"]
    states = (
        events.where(is_one_of(*STATE_KINDS) & F.col("client").isNotNull())
        .withColumn("view", F.when(~is_one_of(*_GONE), F.nullif("digest", F.lit(NOTHING))))
        .withColumn("event", event_reference())
        .select(columns)
    )
    nothing = {"owned": "boolean", "revision": "long", "view": "string"}
    empty = [F.lit(None).cast(kind).alias(name) for name, kind in nothing.items()]
    beginnings = members(events).select(
        "run",
        "profile",
        "node",
        F.lit(0).cast("long").alias("seq"),
        F.lit(None).cast("long").alias("at_ms"),
        F.lit(None).cast("string").alias("kind"),
        *empty,
        F.lit(None).cast(EVENT_REFERENCE).alias("event"),
    )
    resets = events.where(is_one_of(*_RESET)).select(
        "run", "profile", "node", "seq", "at_ms", "kind", *empty, event_reference().alias("event")
    )
    clients = states.select("run", "client").distinct()
    marks = clients.join(F.broadcast(beginnings.unionByName(resets)), "run").select(columns)
    return states.unionByName(marks)
