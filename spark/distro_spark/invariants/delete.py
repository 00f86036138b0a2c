"""INV-DELETE: the end of a client is sent to every member that holds it.

Judged at the first checkpoint after the client has left its owner, if the owner runs until then: a member that still
holds a copy, and was in the owner's list from when the client left until a DELETE was due, must have answered a DELETE
with SUCCESS, unless the last one failed so recently that its retry is not due. (INV-ACK and INV-RESURRECT judge whether
the member applied it.) B08, B24, B25, B28: the DELETE was swallowed before it was sent.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_delete, is_left, until
from distro_spark.history import REPEATED_WITHIN_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, where

NAME = "INV-DELETE"
SWALLOWED = "DELETE swallowed"
"""Signature: a CHANGE to this node failed after the client had left its owner, and then no DELETE was sent to it."""


INVARIANT = Invariant(
    NAME,
    "When a client has left its owner, DELETE is delivered to every member that holds it.",
    needs=Needs(state=True, sent=("DELETE",), lossless=True),
    needs_checkpoint=True,
)


@INVARIANT.found_by(
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
