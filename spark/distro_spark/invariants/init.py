"""INV-INIT: a node acts for no client before it is loaded.

A node that requests a snapshot after its start, and has received no answer yet, has an incomplete table: it must not
verify, and must not send that table to a member that loads (B33). A refusal is an answer too. A node that never
requests one violates INV-LOAD, not INV-INIT.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_verify, sent, succeeded
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, first_of

INVARIANT = Invariant(
    "INV-INIT",
    "A node that is not loaded neither verifies nor sends a snapshot.",
    needs=Needs(sent=("SNAPSHOT", "VERIFY"), lossless=True),
)


@INVARIANT.found_by(
    "{node} verifies {client} with {peer} in {last}, and has received no answer to its load since {first}",
    "{node} verifies no client before it is loaded",
)
def verified_early(t: Timeline) -> pl.DataFrame:
    early = c("seq") < pl.lit(t.cluster.lives["loaded_seq"]).gather(c("life"))
    found = t.having(sent & is_verify & early, "g", "peer", "client_no", "life", "row")
    found = first_of(found.join(t.cluster.lives.select("life", "begin_mark"), "life"), ["client_no", "life"], "row")
    return found.select("g", "peer", first="begin_mark", last="row")


@INVARIANT.found_by(
    "{node} sends {peer} a snapshot in {last}, and has received no answer to its own load since {first}",
    "{node} refuses a snapshot before it is loaded",
    of_nodes=True,
)
def snapshots_before_load(t: Timeline) -> pl.DataFrame:
    """Snapshots sent by a node that waits for its own, the first one of each life."""
    loads = t.cluster.lives.select("life", "loaded_seq")
    marks = t.cluster.in_lives(t.cluster.marks.filter(t.judged("INV-INIT")))
    given = marks.filter(c("kind") == "reply_sent", succeeded).join(loads, "life")
    given = given.filter(c("seq") < c("loaded_seq"), c("begin_mark").is_not_null())
    found = first_of(given, "life", "seq")
    return found.select("g", "peer", first="begin_mark", last="mark")
