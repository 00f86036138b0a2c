"""INV-REV: a revision stands for one content.

What revision r of a client holds is said by the first row of its owner with r; where the owner's own state was not
recorded (a real server), by the first message that carried r, else by the first row. Every other content under r is a
violation, and its signature says which kind:

* `stale stamp`: it is the content of a later revision; the replica took the content over and not the revision (B10);
* `stale content`: it is the content of an earlier revision; something old was written over the new (B05);
* `reused revision`: the owner itself changed its content without moving on (B18). What a former owner took over after
  a restart, when the client is not its own any more, is a replica like any other;
* `foreign content`: the owner is not known to have held it.

Up to 2.1.1 there are no revisions, the field is always 0 (docs/protocol #releases-matrix): such runs are not judged.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.history import Trace, is_one_of
from distro_spark.invariants.registry import invariant
from distro_spark.violations import SIGNATURE, as_violations, event_reference, evidence, told
from distro_traces.event import STATE_KINDS, Kind

NAME = "INV-REV"
WITHOUT_REVISIONS = r"^nacos-2\.(0\.|1\.[01]$)"
"""Profiles of the releases before 2.1.2."""


@invariant(
    NAME,
    key=("run", "client"),
    text="A replica stamped with revision r holds the owner's content of r.",
    not_on=WITHOUT_REVISIONS,
)
def one_content_per_revision(trace: Trace) -> DataFrame:
    carriers = (
        trace.events.where("client is not null and revision is not null and digest is not null")
        .where(~F.coalesce(F.col("profile").rlike(WITHOUT_REVISIONS), F.lit(False)))
        .withColumn("event", event_reference())
        .withColumn("trust", _trust())
    )
    of_revision = Window.partitionBy("run", "client", "revision").orderBy("trust", "at_ms", "node", "seq")
    whole = of_revision.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    judged = carriers.withColumn("expected", F.first("digest").over(whole)).withColumn(
        "first_event", F.first("event").over(whole)
    )
    offenders = (
        judged.where("digest != expected")
        .groupBy("run", "profile", "client", "revision", "node", "digest", "expected", "first_event")
        .agg(
            F.min_by("event", "seq").alias("last_event"),
            F.coalesce(F.max("owned"), F.lit(True)).alias("own"),  # messages do not tell
            F.count("*").alias("rows"),
        )
    )
    contents = (
        judged.where("digest = expected")
        .groupBy("run", "client", "digest")
        .agg(F.min("revision").alias("earliest"), F.max("revision").alias("latest"))
    )
    signature = (
        F.when(F.col("own") & (F.col("node") == F.col("first_event.node")), "reused revision")
        .when(F.col("latest") > F.col("revision"), "stale stamp")
        .when(F.col("earliest") < F.col("revision"), "stale content")
        .otherwise("foreign content")
    )
    return (
        offenders.join(contents, ["run", "client", "digest"], "left")
        .withColumn("signature", signature)
        .withColumn(
            "evidence",
            evidence(
                **{SIGNATURE: "signature"}, revision="revision", expected="expected", actual="digest", rows="rows"
            ),
        )
        .withColumn(
            "message",
            F.format_string(
                "%s has content %s of %s under revision %d in %s, but that revision is %s since %s: %s",
                "node",
                "digest",
                "client",
                "revision",
                told("last_event"),
                "expected",
                told("first_event"),
                "signature",
            ),
        )
        .transform(as_violations, NAME)
    )


def _trust() -> Column:
    """Whose word counts for what a revision holds: the owner's state, then what was sent, then anything."""
    owners_state = F.coalesce(F.col("owned"), F.lit(False)) & is_one_of(*STATE_KINDS)
    return F.when(owners_state, 0).when(is_one_of(Kind.REQUEST_SENT), 1).otherwise(2)
