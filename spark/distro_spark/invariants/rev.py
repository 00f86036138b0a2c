"""INV-REV: a revision stands for one content.

The content of revision r of a client is defined by the first row of its owner with r; where the owner's state was not
recorded (a real server), by the first message that carried r, else by the first row. Every other content under r is a
violation with one of these signatures:

* `stale stamp`: it is the content of a later revision; the replica applied the content without the revision (B10);
* `stale content`: it is the content of an earlier revision; an old content overwrote the new one (B05);
* `reused revision`: the owner changed its content without a new revision (B18). A copy that a former owner loads after
  a restart, when it does not own the client any more, is a replica like any other;
* `foreign content`: no row shows that the owner held it.

A revision that the owner never had is a violation too, whatever its content (`foreign revision`): where all nodes
report what they hold, of a client of a connection whose beginning they show.

Up to 2.1.1 there are no revisions and the field is always 0 (docs/protocol #releases-matrix): such runs are not judged.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, sent
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.responsibility import BY_CONNECTION
from distro_spark.timeline import NOTHING, Timeline
from distro_traces.header import WITHOUT_REVISIONS

BY_REVISION = ("client_no", "revision")


INVARIANT = Invariant(
    "INV-REV",
    "A replica stamped with revision r holds the owner's content of r.",
    needs=Needs(owned=True, revision=True, received=("CHANGE",), everywhere=True),  # its excuses are on other nodes
    not_on=WITHOUT_REVISIONS,
    differ_by="actual",
)


@INVARIANT.found_by(
    "{node} has content {actual} of {client} under revision {revision} in {last}, but [that revision is {expected} "
    "since {_since}|its owner never had that revision]: {signature}",
    "{node} holds {expected} of {client} under revision {revision}",
)
def broken_stamps(t: Timeline) -> pl.DataFrame:
    carried = c("has_revisions") & c("revision").is_not_null() & c("digest").is_not_null()
    columns = ("run", "client_no", "g", "row", "seq", "at_ms", "kind", "owned", "is_state")
    rows = t.having(carried, *columns, "revision", "digest")
    foreign = of_no_owner(t, rows)
    contents = two_contents(rows.join(foreign, "row", how="anti"))
    return pl.concat([contents, _each(foreign)], how="diagonal")


def of_no_owner(t: Timeline, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a revision that the owner of a client never had."""
    runs = t.cluster.whole(BY_CONNECTION)
    begun = rows.filter(c("run").is_in(runs) & (c("kind") == "client_connected")).select("client_no").unique()
    had = rows.filter(c("owned") & c("is_state")).select(BY_REVISION).unique()
    return rows.join(begun, "client_no", how="semi").join(had, BY_REVISION, how="anti")


def _each(rows: pl.DataFrame) -> pl.DataFrame:
    """One violation for each node, revision and content."""
    found = rows.sort("row").group_by(*BY_REVISION, "g", "digest", maintain_order=True)
    first = found.agg(c("row").first(), rows=pl.len())
    return first.select(
        "g",
        "revision",
        "rows",
        last="row",
        first=pl.lit(None, pl.Int64),
        _since_row=pl.lit(None, pl.Int64),
        signature=pl.lit("foreign revision"),
        expected=pl.lit("nothing"),
        actual="digest",
    )


def two_contents(rows: pl.DataFrame) -> pl.DataFrame:
    several = rows.group_by(BY_REVISION).agg(c("digest").min().alias("one"), c("digest").max().alias("other"))
    several = several.filter(c("one") != c("other")).select(BY_REVISION)
    if several.is_empty():
        return NOTHING
    rows = rows.join(several.select("client_no").unique(), "client_no", how="semi")
    trust = pl.when(c("owned") & c("is_state")).then(0).when(sent).then(1).otherwise(2)
    ordered = rows.with_columns(trust=trust.fill_null(2)).sort("client_no", "trust", "at_ms", "g", "seq")
    first = ordered.unique(BY_REVISION, keep="first", maintain_order=True)
    right = first.select(*BY_REVISION, first="row", right="digest", right_g="g")
    held = first.group_by("client_no", "digest").agg(least=c("revision").min(), most=c("revision").max())
    found = ordered.join(right, BY_REVISION).filter(c("digest") != c("right"))
    found = (
        found.sort("row")
        .group_by(*BY_REVISION, "g", "digest", maintain_order=True)
        .agg(c("row", "first", "right", "right_g").first(), rows=pl.len(), own=c("owned").drop_nulls().max())
    )
    found = found.join(held, ["client_no", "digest"], how="left", maintain_order="left")
    signature = (
        pl.when(c("own").fill_null(value=True) & (c("g") == c("right_g")))
        .then(pl.lit("reused revision"))
        .when(c("most") > c("revision"))
        .then(pl.lit("stale stamp"))
        .when(c("least") < c("revision"))
        .then(pl.lit("stale content"))
        .otherwise(pl.lit("foreign content"))
    )
    return found.select(
        "g",
        "first",
        "revision",
        "rows",
        last="row",
        signature=signature,
        expected="right",
        actual="digest",
        _since_row="first",
    )
