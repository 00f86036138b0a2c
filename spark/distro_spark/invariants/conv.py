"""INV-CONV: at rest every member has the same view of every service.

A CHECKPOINT row on each live node says: faults are healed, time enough has passed, here all should agree. What a node
holds there is its latest stretch (`history.py`). The truth is what the owner holds, nothing once the client
disconnected from it. When the owner is not there any more (stopped, or started anew and without its connections), the
others may agree about the orphan until its lease ends; if they differ, the truth is that there is nothing.

Since when: both timelines are laid side by side. The last *agreement* is the latest stretch of the owner whose view
this node shared while or after the owner took it. If that is the owner's present view, the node has left it since,
and the row with which it left is the first event; otherwise the first event is the owner's next row, the first
content that the node never reached. Times are compared across nodes only here, to tell a view from the same one later.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.history import Trace, is_one_of
from distro_spark.invariants.registry import invariant
from distro_spark.violations import SIGNATURE, as_violations, event_reference, evidence, no_violations, told
from distro_traces.event import Kind, Outcome

NAME = "INV-CONV"
_CLIENT = ["run", "client"]
_REPLICA = ["run", "client", "node"]
SWALLOWED = "DELETE swallowed"
"""Signature: a CHANGE to this node failed after the client had left its owner, and then no DELETE was sent to it."""

_END = 2**62
"""Later than every sequence number and every time."""


@invariant(
    NAME,
    key=("run", "client"),
    text="At rest every member's view of every service is the same set of instances.",
    needs_checkpoint=True,
)
def same_view_everywhere(trace: Trace) -> DataFrame:
    # Computed once and cut off from its plan: there is little of it, and all that follows is about it.
    diverged = _at_checkpoints(trace).transform(_diverged).localCheckpoint()
    if diverged.isEmpty():  # a healthy run needs no explanation, which is the larger part of the work
        return no_violations(trace.events.sparkSession)
    return (
        _since(diverged, trace.history)
        .transform(_one_per_divergence, trace.events)
        .transform(_with_signature, trace.events)
        .withColumn(
            "evidence",
            evidence(
                owner="owner",
                checkpoints="checkpoints",
                expected=F.coalesce("truth", F.lit("nothing")),
                expected_revision="owners_revision",
                actual=F.coalesce("view", F.lit("nothing")),
                actual_revision=F.when(F.col("view").isNotNull(), F.col("revision")),
                last_message="last_request.message",
                last_operation="last_request.operation",
                last_outcome="last_outcome",
                last_verify="last_verify",
                **{SIGNATURE: "signature"},
            ),
        )
        .withColumn("message", _message())
        .transform(as_violations, NAME)
    )


def _one_per_divergence(since: DataFrame, events: DataFrame) -> DataFrame:
    """A divergence may last for many checkpoints; told is what it was at the last of them.

    Add the last message with content that reached the node until then, its answer, and the last verify's answer.
    """
    at_last = ("view", "revision", "truth", "owners_revision", "has_owner")
    numbers = F.sort_array(F.collect_set(F.struct("checkpoint.seq", "number")))
    with_content = F.col("operation").isin("ADD", "CHANGE", "DELETE")
    reached = F.when(is_one_of(Kind.REQUEST_RECEIVED) & with_content, F.col("message_seq"))
    answered = F.when(is_one_of(Kind.REPLY_SENT) & with_content, F.col("message_seq"))
    verified = F.when(is_one_of(Kind.REPLY_SENT) & ~with_content, F.col("message_seq"))
    messages = events.where(is_one_of(Kind.REQUEST_RECEIVED, Kind.REPLY_SENT)).select(
        *_REPLICA, "kind", "message", "operation", "outcome", F.col("seq").alias("message_seq")
    )
    before = F.col("message_seq") < F.col("checkpoint.seq")
    return (
        since.join(messages, _REPLICA, "left")
        .groupBy("profile", *_REPLICA, "owner", "first_event")
        .agg(
            F.max_by("checkpoint", "checkpoint.seq").alias("last_event"),
            F.array_join(F.transform(numbers, lambda number: number["number"]), ", ").alias("checkpoints"),
            *(F.max_by(name, "checkpoint.seq").alias(name) for name in at_last),
            F.max_by(F.struct("message", "operation"), F.when(before, reached)).alias("last_request"),
            F.max_by(F.struct("message", "outcome"), F.when(before, answered)).alias("last_reply"),
            F.max_by("outcome", F.when(before, verified)).alias("last_verify"),
        )
        .withColumn(
            "last_outcome",
            F.when(F.col("last_reply.message") == F.col("last_request.message"), F.col("last_reply.outcome")),
        )
    )


def _with_signature(divergences: DataFrame, events: DataFrame) -> DataFrame:
    """Name the one cause that the owner's messages show by themselves."""
    left = is_one_of(Kind.CLIENT_DISCONNECTED)
    told = is_one_of(Kind.REQUEST_SENT) & (F.col("operation") == "DELETE")
    failed = (
        is_one_of(Kind.REPLY_RECEIVED) & (F.col("operation") == "CHANGE") & (F.col("outcome") != Outcome.SUCCESS.value)
    )
    by_owner = (
        events.where(left | told | failed)
        .groupBy("run", "client", F.col("node").alias("owner"))
        .agg(
            F.max(F.when(left, F.col("seq"))).alias("left"),
            F.collect_set(F.when(told, F.col("peer"))).alias("told"),
            F.collect_set(F.when(failed, F.struct("peer", "seq"))).alias("failures"),
        )
    )
    failed_too_late = F.exists(
        "failures", lambda failure: (failure["peer"] == F.col("node")) & (failure["seq"] > F.col("left"))
    )
    swallowed = F.col("truth").isNull() & failed_too_late & ~F.array_contains("told", F.col("node"))
    return divergences.join(by_owner, [*_CLIENT, "owner"], "left").withColumn(
        "signature", F.when(swallowed, F.lit(SWALLOWED))
    )


def _at_checkpoints(trace: Trace) -> DataFrame:
    """What each live node held of each client at each checkpoint, and what the owner held there."""
    checkpoints = trace.events.where(is_one_of(Kind.CHECKPOINT)).select(
        "run", "node", F.col("detail").alias("number"), event_reference().alias("checkpoint")
    )
    holds_then = (F.col("seq") < F.col("checkpoint.seq")) & (
        F.coalesce(F.col("next_event.seq"), F.lit(_END)) > F.col("checkpoint.seq")
    )
    together = Window.partitionBy("run", "client", "number")
    is_truth = _is_owners() & F.col("native")
    of_the_owner = {"truth": "view", "owners_seq": "seq", "owners_revision": "revision"}
    return (
        trace.history.join(F.broadcast(checkpoints), ["run", "node"])
        .where(holds_then)
        .withColumns(
            {
                "has_owner": F.max(is_truth).over(together),
                **{name: F.max(F.when(is_truth, F.col(of))).over(together) for name, of in of_the_owner.items()},
                "holders": F.count("view").over(together),
                "nodes": F.count("*").over(together),
                "all_the_same": F.min("view").over(together) == F.max("view").over(together),
            }
        )
    )


def _diverged(held: DataFrame) -> DataFrame:
    agree = (F.col("holders") == 0) | ((F.col("holders") == F.col("nodes")) & F.col("all_the_same"))
    return held.where(~agree & ~F.col("view").eqNullSafe(F.col("truth")))


def _since(diverged: DataFrame, history: DataFrame) -> DataFrame:
    """Add `first_event`."""
    history = history.join(diverged.select(*_CLIENT).distinct(), _CLIENT, "left_semi")
    owners = history.where(_is_truth()).select(
        *_CLIENT,
        F.col("view").alias("owner_view"),
        F.col("at_ms").alias("owner_at_ms"),
        F.struct("seq", "next_event").alias("agreed_now"),
    )
    # The present stretch lasts beyond the checkpoint; it agrees with what the owner had held by then.
    by_then = F.coalesce(
        F.col("agreed_now.seq") <= F.col("owners_seq"), F.col("owner_at_ms") <= F.col("checkpoint.at_ms"), F.lit(True)
    )
    is_agreement = F.col("owner_view").eqNullSafe(F.col("view")) & by_then
    diverged = diverged.join(_parted(history), [*_REPLICA, "seq"])
    others = [F.first(name).alias(name) for name in diverged.columns if name not in (*_REPLICA, "number")]
    left_the_truth = F.col("agreed.seq").eqNullSafe(F.col("owners_seq"))
    turning_point = F.when(left_the_truth, F.col("parted.left")).otherwise(F.col("agreed.next_event"))
    return (
        diverged.join(owners, _CLIENT, "left")
        .groupBy(*_REPLICA, "number")
        .agg(*others, F.max(F.when(is_agreement, F.col("agreed_now"))).alias("agreed_now"))
        .withColumn("agreed", F.greatest("agreed_now", "parted.agreed"))
        .withColumn("first_event", F.coalesce(turning_point, "event", "checkpoint"))
    )


def _parted(history: DataFrame) -> DataFrame:
    """By stretch: of the same node's earlier ones the one with the latest agreement, with what stretch of the owner
    (`agreed`: its sequence number and the event that ended it), and the event with which the node left it (`left`).

    A stretch agrees with the owner's latest one with the same view that began before it ended. Linear: the owner's
    are laid at their beginnings, the others' at their ends, in one order of time.
    """
    begins = F.coalesce(F.when(_is_truth(), F.coalesce("at_ms", F.lit(-_END))), "next_event.at_ms", F.lit(_END))
    in_time = Window.partitionBy(*_CLIENT, "view").orderBy(begins, _is_truth())
    earlier = Window.partitionBy(*_REPLICA).orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    agreed = F.last(F.when(_is_truth(), F.struct("seq", "next_event")), ignorenulls=True).over(in_time)
    agreement = F.when(F.col("agreed").isNotNull(), F.struct("agreed", "seq", F.col("next_event").alias("left")))
    return (
        history.withColumn("agreed", agreed)
        .withColumn("parted", F.max(agreement).over(earlier))
        .select(*_REPLICA, "seq", "parted")
    )


def _is_owners() -> Column:
    return F.coalesce(F.col("node") == F.col("owner"), F.lit(False))


def _is_truth() -> Column:
    """A stretch of the owner, but not one of a copy that it loaded back after a restart."""
    return _is_owners() & (F.col("native") | F.col("view").isNull())


def _message() -> Column:
    revision = F.when(F.col("view").isNotNull(), F.format_string(" (revision %d)", "revision"))
    holds = F.concat(F.coalesce("view", F.lit("nothing")), F.coalesce(revision, F.lit("")))
    truth = F.when(
        F.col("has_owner"),
        F.concat(F.lit("its owner "), "owner", F.lit(" holds "), F.coalesce("truth", F.lit("nothing"))),
    ).otherwise(F.lit("no live node owns it and others hold nothing"))
    after = F.concat(
        F.lit("; the last content message that reached it is "), F.col("last_request.message"), F.lit(" ("),
        F.concat_ws(", ", "last_request.operation", "last_outcome"), F.lit(")"),
    )  # fmt: skip
    return F.concat(
        F.format_string("%s holds ", "node"), holds, F.lit(" of "), "client", F.lit(" at checkpoint "), "checkpoints",
        F.lit(" while "), truth, F.lit("; they differ since "), told("first_event"), F.coalesce(after, F.lit("")),
    )  # fmt: skip
