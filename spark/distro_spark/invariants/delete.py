"""INV-DELETE and INV-RESURRECT: the end of a client reaches every member that holds it.

INV-DELETE is judged at the first checkpoint after the client has left its owner, if the owner runs until then: a member
that still holds a copy, and was in the owner's list from when the client left until a DELETE was due, must have
answered a DELETE with SUCCESS, unless the last one failed so recently that its retry is not due. (INV-ACK and
INV-RESURRECT judge whether the member applied it.) B08, B24, B25, B28: the DELETE was swallowed before it was sent.

INV-RESURRECT: no node holds a client for long after its owner removed it. Even if its DELETE was lost, the last copy
expires 180 s, one check of 5 s and one verify period after the client has left. A node that loads the copy meanwhile
from a member that still holds it begins a new lease; the tolerance covers this, with a whole lease where a node was
started again (B03, B26, B27, B40). Where the owner stopped within a lease after the client left, the DELETE may never
have been sent, and every load may begin one more lease: not judged.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_applied, is_delete, is_left, is_own, until
from distro_spark.history import LEASE_MS, REPEATED_WITHIN_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, first_of, where

NAME = "INV-DELETE"
SWALLOWED = "DELETE swallowed"
"""Signature: a CHANGE to this node failed after the client had left its owner, and then no DELETE was sent to it."""


DELETE = Invariant(
    NAME,
    "When a client has left its owner, DELETE is delivered to every member that holds it.",
    needs=Needs(state=True, sent=("DELETE",), lossless=True),
    needs_checkpoint=True,
)


@DELETE.found_by(
    "{node} still holds {client} (since {held_since}) at checkpoint {_number}: {owner} lost it in {first}, and {node} "
    "confirmed no DELETE since[; the last call to it is {_call}]",
    "{owner} sends the DELETE of {client} to {node} until it succeeds",
)
def undelivered(t: Timeline) -> pl.DataFrame:
    judged = t.judged(NAME)
    left = (
        t.having(is_left & c("is_connection"), "client_no", "run", "g", "row", "at_ms", "check", "end_check")
        .sort("at_ms", "row")
        .unique("client_no", keep="last", maintain_order=True)
    )
    left = left.filter(judged & (c("check") < c("end_check")))
    left = left.join(
        t.cluster.checks.select("check", "ordinal", "number", check_ms="at_ms", last="mark"), "check"
    ).select("client_no", "run", "ordinal", "check_ms", "last", "number", owner="g", left="row", left_ms="at_ms")
    missing = left.join(t.cluster.checks.filter(judged).select("g", "run", "ordinal", "seq"), ["run", "ordinal"])
    missing = _holding(t, missing.filter(c("g") != c("owner")))
    tries = t.calls.filter(~c("is_sent") & is_delete).select(
        "client_no", "outcome", "row", owner="g", g="to", end_ms="at_ms"
    )
    key = ("client_no", "owner", "g")
    after = missing.join(tries, key).filter(c("row") > c("left"))
    fine = (c("outcome") == "success") | (c("check_ms") - c("end_ms")).is_between(0, REPEATED_WITHIN_MS)
    missing = missing.join(after.filter(fine), key, how="anti")
    last_try = after.sort("row").group_by(key).agg(tried_ms=c("end_ms").last())
    missing = missing.join(last_try, key, how="left", maintain_order="left")
    missing = missing.with_columns(due_ms=pl.coalesce("tried_ms", "left_ms") + REPEATED_WITHIN_MS)
    missing = where(missing, t.cluster.is_listed, "owner", "g", "left_ms", "due_ms")
    return NOTHING if missing.is_empty() else _with_calls(t, missing)


def _holding(t: Timeline, missing: pl.DataFrame) -> pl.DataFrame:
    """The members that hold the client at the checkpoint, with the row `since` which they hold it."""
    missing = missing.with_columns(state=t.latest(missing, c("is_state")), reset=t.begin_seq(missing))
    since = until(c("content").is_not_null() & c("held").is_null())
    states = t.having(c("content").is_not_null(), state="row", state_seq="seq", since=since)
    return missing.join(states, "state").filter(c("state_seq") > c("reset"))


def _with_calls(t: Timeline, missing: pl.DataFrame) -> pl.DataFrame:
    calls = t.calls.filter(c("op").is_not_null()).group_by("client_no", "g", "to").agg(call=c("row").max())
    missing = missing.join(
        calls, left_on=["client_no", "owner", "g"], right_on=["client_no", "g", "to"], how="left", maintain_order="left"
    )
    missing = t.of(missing.with_columns(swallowed=swallowed(t, missing)), "call", after="message")
    return missing.select(
        "g",
        "last",
        "after",
        first="left",
        signature=pl.when("swallowed").then(pl.lit(SWALLOWED)),
        owner=t.name("owner"),
        held_since_row="since",
        _number="number",
        _call_row="call",
    )


def swallowed(t: Timeline, found: pl.DataFrame) -> pl.Series:
    """For each (client_no, owner, g) whether the calls show it."""
    left = t.having(is_left, "client_no", "g", "row").group_by("client_no", "g").agg(left=c("row").max())
    calls = t.calls.join(left, ["client_no", "g"])
    failed = ~c("is_sent") & (c("op") == "CHANGE") & (c("outcome") != "success") & (c("row") > c("left"))
    calls = calls.group_by("client_no", "g", "to").agg(swallowed=failed.any() & ~(c("is_sent") & is_delete).any())
    wanted = found.select("client_no", "owner", "g")
    seen = wanted.join(
        calls, left_on=["client_no", "owner", "g"], right_on=["client_no", "g", "to"], how="left", maintain_order="left"
    )
    return seen["swallowed"].fill_null(value=False)


LOAD_MS = 35_000
WITHIN_MS = LEASE_MS + 5_000 + 5_000 + LOAD_MS


RESURRECT = Invariant(
    "INV-RESURRECT",
    "No node holds a client any more when a lease has passed since its owner removed it.",
    needs=Needs(state=True, lossless=True),
    differ_by="last_seq",
)


@RESURRECT.found_by(
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
