"""How long a change takes to be everywhere.

For every change that its own connection made of a client's view on its owner: until when each other member that was
up had reached that view, or a later one of the owner's (changes are merged on their way, docs/protocol #sync-merge). A
change that a member never reached is unconverged, not infinitely slow; one whose owner or member went down meanwhile
is not measured for that member, since nothing could have carried it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.history import Trace, is_one_of
from distro_traces.event import Kind

_CHANGES = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED, Kind.CLIENT_DISCONNECTED)
_NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Convergence:
    """Over all changes: how many were followed by every other member, in how many milliseconds, and how many never."""

    count: int
    median_ms: int | None
    max_ms: int | None
    unconverged: int


def convergence(trace: Trace) -> DataFrame:
    """run, client, event (the change), node (a member that had to follow), ms (null: it never did)."""
    history = trace.history.where("owner is not null")
    is_owners = F.col("node") == F.col("owner")
    changes = history.where(is_owners & F.col("event.kind").isin(*(kind.value for kind in _CHANGES)))
    followers = history.where(~is_owners)
    waiting = _already_there(changes, followers)
    arrivals = _arrivals(changes, followers)
    # A change is reached as soon as it or a later one is: from the last change backwards, the earliest time so far.
    backwards = Window.partitionBy("run", "client", "node").orderBy(F.desc("seq"), F.col("event").isNotNull())
    measured = (
        waiting.unionByName(arrivals, allowMissingColumns=True)
        .withColumn("reached_at_ms", F.min("reached_at_ms").over(backwards))
        .where("event is not null")
    )
    down = F.broadcast(_down(trace.events)).alias("down")
    was_down_meanwhile = (
        (F.col("measured.run") == F.col("down.run"))
        & F.col("down.node").isin(F.col("measured.node"), F.col("measured.event.node"))
        & (F.col("down.from_ms") <= F.coalesce("reached_at_ms", F.lit(_NEVER)))
        & (F.col("down.until_ms") >= F.col("measured.event.at_ms"))
    )
    ms = F.when(F.col("reached_at_ms").isNotNull(), F.greatest(F.col("reached_at_ms") - F.col("event.at_ms"), F.lit(0)))
    return (
        measured.alias("measured")
        .join(down, was_down_meanwhile, "left_anti")
        .select("run", "client", "event", "node", ms.alias("ms"))
    )


def _already_there(changes: DataFrame, followers: DataFrame) -> DataFrame:
    """Each change for each follower; reached at once when the follower happens to hold that view at the moment."""
    columns = ["run", "client", "node", "at_ms", "view", "seq", "event"]
    members = followers.select("run", "client", "node").distinct()
    waiting = changes.drop("node").join(members, ["run", "client"]).select(columns)
    held = followers.withColumn("event", F.lit(None).cast(waiting.schema["event"].dataType)).select(columns)
    in_time = Window.partitionBy("run", "client", "node").orderBy("at_ms", F.col("event").isNotNull())
    held_then = F.last(F.when(F.col("event").isNull(), F.struct("view")), ignorenulls=True).over(in_time)
    return (
        waiting.unionByName(held)
        .withColumn("held", held_then)
        .where("event is not null")
        .withColumn("reached_at_ms", F.when(F.col("held.view").eqNullSafe(F.col("view")), F.col("at_ms")))
        .select("run", "client", "node", "seq", "event", "reached_at_ms")
    )


def _arrivals(changes: DataFrame, followers: DataFrame) -> DataFrame:
    """The stretches of the followers as times: each reaches the latest change with its view that came before it."""
    marks = changes.select("run", "client", "view", "at_ms", F.lit(None).alias("node"), "seq").unionByName(
        followers.where("event is not null").select(
            "run", "client", "view", "at_ms", "node", F.lit(None).cast("long").alias("seq")
        )
    )
    in_time = Window.partitionBy("run", "client", "view").orderBy("at_ms", F.col("node").isNotNull())
    return (
        marks.withColumn("reaches", F.last("seq", ignorenulls=True).over(in_time))
        .where("node is not null and reaches is not null")
        .select("run", "client", "node", F.col("reaches").alias("seq"), F.col("at_ms").alias("reached_at_ms"))
    )


def _down(events: DataFrame) -> DataFrame:
    """run, node, from_ms, until_ms: from a stop to the next start, or to the end of the trace."""
    in_order = Window.partitionBy("run", "node").orderBy("seq")
    return (
        events.where(is_one_of(Kind.NODE_STARTED, Kind.NODE_STOPPED))
        .withColumn("until_ms", F.coalesce(F.lead("at_ms").over(in_order), F.lit(_NEVER)))
        .where(is_one_of(Kind.NODE_STOPPED))
        .select("run", "node", F.col("at_ms").alias("from_ms"), "until_ms")
    )


def slowest(times: DataFrame) -> DataFrame:
    """run, client, event, node (the last member to follow), ms: one row per change, null when a member never did."""
    rank = F.coalesce("ms", F.lit(_NEVER))
    return times.groupBy("run", "client", "event").agg(
        F.max_by("node", rank).alias("node"), F.max_by("ms", rank).alias("ms")
    )


def summary(changes: DataFrame) -> Convergence:
    """Sum up the rows of `slowest`; one job."""
    row: Row = changes.agg(
        F.count("ms").alias("count"),
        F.percentile("ms", 0.5).cast("long").alias("median_ms"),
        F.max("ms").alias("max_ms"),
        F.count_if(F.col("ms").isNull()).alias("unconverged"),
    ).first()  # type: ignore[assignment]  # an aggregate without keys has one row
    return Convergence(**row.asDict())
