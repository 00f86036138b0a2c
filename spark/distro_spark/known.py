"""Known failures: what a release is known to violate, so that a check of that release tells news from history.

An entry excuses one *symptom* in one span of releases: a program over the violations and the rows around them that
keeps those in which the bug is seen to have been at work, by what was stamped, sent, answered and when. "This release
fails this invariant" excuses nothing. What is excused is never dropped: it is listed with its number in the catalogue,
counted apart, and does not make the verdict `violates`. In `strict` nothing is known; every violation there counts.

| bug | what has to be seen |
|---|---|
| B10 | the copy has the stamp that it was created with, and by then its owner had published the content later |
| B24 | a CHANGE to that node failed before the queued DELETE was due; the owner sends DELETEs, and none to that node |
| B02 | the node acknowledged the content that it does not have, and confirmed its copy in a verify |
| B01 | before it, somebody's message was applied to the client on the node that holds its connection |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.history import is_one_of
from distro_traces.event import STATE_KINDS, Kind, Outcome


@dataclass(frozen=True, slots=True)
class Rows:
    """`around`: those of the clients that violations are about, and for each of them the starts and stops of all nodes,
    which end what a node held; `all`: whatever was recorded."""

    around: DataFrame
    all: DataFrame


Symptom = Callable[[DataFrame, Rows], DataFrame]
"""Of violations that have an `id`, gives back those that have the symptom."""

_PLACE = ["run", "client", "node"]
_OWN_CONNECTION = (Kind.CLIENT_CONNECTED, Kind.CLIENT_CHANGED)

_CLOCK_SLACK_MS = 400
"""Real servers' ticks and threads run late, and rows are stamped on their way."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`bug` is the number in the catalogue, `source` where it was reported and repaired; both ends are included."""

    bug: str
    since: str | None
    until: str
    invariant: str
    symptom: Symptom
    text: str
    source: str

    def is_of(self, profile: str) -> bool:
        """Whether the profile is that of a release in the span; `strict` is none."""
        release = _release(profile)
        if release is None:
            return False
        return (self.since is None or _version(self.since) <= release) and release <= _version(self.until)


def _creation_stamp(violations: DataFrame, rows: Rows) -> DataFrame:
    """B10. The first revision that the node's copy had in this life of it is the only one, and the content is that of
    a later one: it came with a message that carries a later revision, or its owner had published it by then."""
    states = _states(rows.around).select(*_PLACE, "seq", "begins_anew", "revision")
    by_seq = Window.partitionBy("id").orderBy("seq")
    lives = (
        violations.select("id", *_PLACE, F.col("last_event.seq").alias("offence"), _revision().alias("stamp"))
        .join(states, _PLACE)
        .where("seq <= offence")
        .withColumn("life", F.sum("begins_anew").over(by_seq))
        .withColumn("last_life", F.max("life").over(Window.partitionBy("id")))
        .where("life = last_life and revision is not null")
        .groupBy("id", "stamp")
        .agg(F.min("revision").alias("least"), F.max("revision").alias("most"))
        .where("least = stamp and most = stamp")
        .select("id")
    )
    carried = rows.around.where(is_one_of(Kind.REQUEST_SENT)).select(
        "run", "client", F.col("message").alias("cause"), F.col("revision").alias("carried")
    )
    said_by_owner = F.col("revision").isNotNull() & (F.col("owned") | is_one_of(Kind.REQUEST_SENT))
    published = rows.around.where(said_by_owner).select(
        "run", "client", "digest", F.col("revision").alias("later"), F.col("at_ms").alias("since_ms")
    )
    offences = violations.select(
        "id",
        "run",
        "client",
        F.col("evidence")["actual"].alias("digest"),
        _revision().alias("stamp"),
        F.col("last_event.at_ms").alias("at_ms"),
        F.col("last_event.kind").alias("kind"),
        F.col("last_event.message").alias("cause"),
    ).where(is_one_of(*STATE_KINDS))
    later = (
        offences.join(carried, ["run", "client", "cause"], "left")
        .join(published, ["run", "client", "digest"])
        .where("later > stamp and since_ms <= at_ms and (carried is null or carried > stamp)")
    )
    return violations.join(lives, "id", "left_semi").join(later.select("id"), "id", "left_semi")


def _swallowed_delete(violations: DataFrame, rows: Rows) -> DataFrame:
    """B24. The DELETE is due one sync delay and a tick of the engine after the client left; that the owner sends any
    is seen of whatever client and peer in the run."""
    due_ms = F.when(F.col("profile").rlike(r"^nacos-2\.[01]\."), 2100).otherwise(1100) + _CLOCK_SLACK_MS
    gone = violations.where(F.col("evidence")["expected"] == "nothing").select(
        "id", "profile", "run", "client", "node", F.col("evidence")["owner"].alias("owner")
    )
    left = (
        rows.around.where(is_one_of(Kind.CLIENT_DISCONNECTED))
        .groupBy("run", "client", F.col("node").alias("owner"))
        .agg(F.max_by(F.struct("seq", "at_ms"), "seq").alias("left"))
    )
    of_owner = rows.around.select(
        "run", "client", F.col("node").alias("owner"), F.col("peer").alias("node"), "kind", "operation", "outcome",
        "seq", "at_ms",
    )  # fmt: skip
    is_failure = (
        is_one_of(Kind.REPLY_RECEIVED)
        & F.col("operation").isin("ADD", "CHANGE")
        & (F.col("outcome") != Outcome.SUCCESS.value)
        & (F.col("seq") > F.col("left.seq"))
        & (F.col("at_ms") - F.col("left.at_ms") <= due_ms)
    )
    is_delete = is_one_of(Kind.REQUEST_SENT) & (F.col("operation") == "DELETE")
    deletes = rows.all.where(is_delete).select("run", F.col("node").alias("owner")).distinct()
    seen = (
        gone.join(left, ["run", "client", "owner"])
        .join(of_owner, ["run", "client", "owner", "node"])
        .groupBy("id", "run", "owner")
        .agg(F.max(is_failure).alias("failed"), F.max(is_delete & (F.col("seq") > F.col("left.seq"))).alias("deleted"))
        .where("failed and not deleted")
        .join(deletes, ["run", "owner"], "left_semi")
    )
    return violations.join(seen.select("id"), "id", "left_semi")


def _confirmed_unread(violations: DataFrame, _: Rows) -> DataFrame:
    """B02. Something is missing or old although what carried it was acknowledged, and a verify confirmed the copy."""
    seen = F.col("evidence")
    return violations.where(
        (seen["expected"] != "nothing")
        & seen["last_operation"].isin("ADD", "CHANGE")
        & (seen["last_outcome"] == Outcome.SUCCESS.value)
        & (seen["last_verify"] == Outcome.SUCCESS.value)
    )


def _native_overwritten(violations: DataFrame, rows: Rows) -> DataFrame:
    """B01. The node holds the client's connection, and between two starts applied to it what was sent for a copy."""
    by_seq = Window.partitionBy(*_PLACE).orderBy("seq")
    so_far = Window.partitionBy(*_PLACE, "life").orderBy("seq")
    overwritten = (
        _states(rows.around)
        .withColumn("life", F.sum("begins_anew").over(by_seq))
        .withColumn("has_connection", F.max(is_one_of(*_OWN_CONNECTION)).over(so_far))
        .where(is_one_of(Kind.REPLICA_APPLIED) & F.col("has_connection"))
        .groupBy("run", "client")
        .agg(F.min("at_ms").alias("overwritten_ms"))
    )
    seen = violations.join(overwritten, ["run", "client"]).where(F.col("last_event.at_ms") >= F.col("overwritten_ms"))
    return violations.join(seen.select("id"), "id", "left_semi")


def _states(around: DataFrame) -> DataFrame:
    """Rows about what a node holds, and `begins_anew`: 1 where from here on it holds nothing of before."""
    is_start = is_one_of(Kind.NODE_STARTED, Kind.NODE_STOPPED)
    is_end = is_one_of(Kind.CLIENT_DISCONNECTED, Kind.REPLICA_REMOVED) | F.col("digest").isNull()
    states = around.where(is_one_of(*STATE_KINDS, Kind.NODE_STARTED, Kind.NODE_STOPPED))
    return states.withColumn("begins_anew", (is_start | is_end).cast("int"))


def _revision() -> Column:
    return F.col("evidence")["revision"].cast("long")


_LAST_READ = "3.0.3"
"""The last release that was looked at."""

KNOWN: tuple[KnownFailure, ...] = (
    KnownFailure(
        "B10",
        "2.1.2",
        "2.2.4",
        "INV-REV",
        _creation_stamp,
        "A replica takes over the content of a later sync, but keeps the revision that it was created with.",
        "alibaba/nacos #10056, #10693; repaired in 2.3.0 by #10553; docs/protocol #defect-d1",
    ),
    KnownFailure(
        "B24",
        None,
        _LAST_READ,
        "INV-CONV",
        _swallowed_delete,
        "The retry of a CHANGE that fails after the client left replaces the queued DELETE; the copy stays.",
        "alibaba/nacos #10809; seen on 2.2.4 and 2.3.2 (real-nacos.md section 6); docs/protocol #defect-d2",
    ),
    KnownFailure(
        "B02",
        None,
        "2.1.1",
        "INV-CONV",
        _confirmed_unread,
        "A verify tests existence only, so a copy that missed what it acknowledged is confirmed for ever.",
        "alibaba/nacos #9210, #9214; repaired in 2.1.2 by #9239",
    ),
    KnownFailure(
        "B01",
        None,
        _LAST_READ,
        "INV-REV",
        _native_overwritten,
        "A late snapshot or CHANGE is applied to a client that is connected here; its next change reuses a revision.",
        "alibaba/nacos #15857; wire-protocol.md 6.4",
    ),
)


def with_known(violations: DataFrame, events: DataFrame) -> DataFrame:
    """Add `known`: the number of the known failure whose symptom a violation has, or null."""
    found = violations.withColumn("id", F.monotonically_increasing_id()).localCheckpoint()
    kinds = [(row["profile"], row["invariant"]) for row in found.select("profile", "invariant").distinct().collect()]
    clients = found.select("run", "client").distinct()
    starts = events.where(is_one_of(Kind.NODE_STARTED, Kind.NODE_STOPPED)).drop("client").join(clients, "run")
    rows = Rows(events.join(clients, ["run", "client"], "left_semi").unionByName(starts), events)
    excused = []
    for failure in KNOWN:
        profiles = [
            profile for profile, invariant in kinds if failure.invariant == invariant and failure.is_of(profile)
        ]
        if profiles:
            candidates = found.where((F.col("invariant") == failure.invariant) & F.col("profile").isin(profiles))
            excused.append(failure.symptom(candidates, rows).select("id", F.lit(failure.bug).alias("known")))
    if not excused:
        return found.drop("id").withColumn("known", F.lit(None).cast("string"))
    bugs = reduce(DataFrame.unionByName, excused).groupBy("id").agg(F.min("known").alias("known"))
    return found.join(bugs, "id", "left").drop("id")


def _release(profile: str) -> tuple[int, ...] | None:
    name, _, version = profile.partition("-")
    return _version(version) if name == "nacos" and version else None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
