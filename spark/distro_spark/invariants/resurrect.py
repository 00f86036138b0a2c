"""INV-RESURRECT: no node holds a client for long after its owner removed it.

Even if its DELETE was lost, the last copy expires 180 s, one check of 5 s and one verify period after the client has
left. A node that loads the copy meanwhile from a member that still holds it begins a new lease; the tolerance covers
this, with a whole lease where a node was started again (B03, B26, B27, B40). Where the owner stopped within a lease
after the client left, the DELETE may never have been sent, and every load may begin one more lease: not judged.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_applied, is_left, is_own
from distro_spark.history import LEASE_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, first_of

LOAD_MS = 35_000
WITHIN_MS = LEASE_MS + 5_000 + 5_000 + LOAD_MS


INVARIANT = Invariant(
    "INV-RESURRECT",
    "No node holds a client any more when a lease has passed since its owner removed it.",
    needs=Needs(state=True, lossless=True),
    differ_by="last_seq",
)


@INVARIANT.found_by(
    f"{{node}} still holds {{client}} more than {WITHIN_MS // 1000} s after it has left its owner in {{first}}; "
    "its copy is from {last}",
    "{node} removes {client} at the DELETE, or when its lease ends",
)
def lingers(t: Timeline) -> pl.DataFrame:
    columns = ("client_no", "g", "row", "at_ms", "kind", "is_ended", "life_end_ms")
    ends = t.having(c("is_connection") & (is_left | is_own), *columns).sort("at_ms", "row")
    came = ends.filter(is_own).group_by("client_no").agg(came_ms=c("at_ms").max())
    left = (
        ends.filter(is_left)
        .sort("at_ms", "row", descending=[True, False])
        .unique("client_no", keep="first", maintain_order=True)
    )
    left = left.join(came, "client_no", how="left").filter((c("came_ms") > c("at_ms")).fill_null(value=False).not_())
    left = left.filter(~(c("is_ended") & (c("life_end_ms") - c("at_ms") < LEASE_MS)))
    left = left.select("client_no", left="row", left_ms="at_ms", owner="g")
    states = t.lasting(c("content").is_not_null(), c("is_state"), *columns, "life")
    held = states.join(left, "client_no").filter(c("g") != c("owner"))
    held = held.join(_loads(t), "life", how="left")
    loaded_late = (c("loaded_by_ms") == 0) | (c("left_ms") - pl.max_horizontal("begin_ms", "loaded_by_ms") < LEASE_MS)
    may_be_loaded = (is_applied & c("is_restart") & loaded_late).fill_null(value=False)
    since_ms = pl.when(may_be_loaded).then(pl.max_horizontal("left_ms", "at_ms")).otherwise("left_ms")
    until_ms = pl.when(t.reports).then("end_ms").otherwise("at_ms")
    found = first_of(held.filter(until_ms - since_ms > WITHIN_MS), ["client_no", "g", "life"], "row")
    return found.select("g", first="left", last="row", owner=t.name("owner"), left="left_ms", held_since="at_ms")


def _loads(t: Timeline) -> pl.DataFrame:
    """For each life the start of its node, when it was loaded, and whether the node had run before."""
    lives = t.cluster.lives
    started_before = c("life") > c("life").min().over("g") + 1
    return lives.select("life", "begin_ms", "loaded_by_ms", is_restart=started_before)
