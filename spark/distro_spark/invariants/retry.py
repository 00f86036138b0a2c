"""INV-RETRY: a failed sync is retried.

Judged at the owner's checkpoints: the last call between the owner and a member that is up must not be a failed CHANGE
or DELETE whose retry is overdue, unless the client is gone and a CHANGE has no content (INV-DELETE judges its DELETE).
If the member leaves the list during the call or later, the retry is dropped, and not resumed when the member is back;
the same holds for a client of the HTTP API whose owner may have changed, since a list has changed. B37, B42.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_change, is_left, is_own, is_sync, neighbour, until
from distro_spark.history import REPEATED_WITHIN_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, first_of, where

INVARIANT = Invariant(
    "INV-RETRY",
    "A failed sync is retried while its target is a member.",
    needs=Needs(state=True, sent=("CHANGE", "DELETE"), lossless=True),
    needs_checkpoint=True,
)


@INVARIANT.found_by(
    "{node} never retried its {operation} of {client} to {peer}, which ended with {outcome} in {first}, until "
    "checkpoint {_number}",
    "{node} retries the {operation} of {client} to {peer} until it succeeds",
)
def given_up(t: Timeline) -> pl.DataFrame:
    calls = t.of(t.calls.filter(is_sync), "row", "check", "end_check", "moved_ms", "is_connection")
    next_check = pl.coalesce(neighbour("check", -1, "begin", "to"), "end_check")
    asked_ms = pl.when(neighbour("is_sent", 1, "begin", "to")).then(c("at_ms").shift(1)).otherwise("at_ms")
    sent_ms = pl.when("is_sent").then(c("at_ms")).min().over("begin", "to", "message")  # calls may overlap
    asked_ms = pl.when(c("message").is_not_null()).then(sent_ms).fill_null(asked_ms)
    failed = calls.with_columns(next_check=next_check, asked_ms=asked_ms).filter(
        ~c("is_sent") & (c("outcome") != "success") & (c("check") < c("next_check"))
    )
    failed = failed.with_columns(check=pl.int_ranges("check", "next_check")).explode("check")
    own = t.cluster.checks.select("check", "run", "ordinal", "number", check_seq="seq", check_ms="at_ms", last="mark")
    failed = failed.join(own, "check").filter(c("check_ms") - c("at_ms") > REPEATED_WITHIN_MS)
    failed = failed.join(t.cluster.checks.select("ordinal", to="g"), ["to", "ordinal"], how="semi")
    failed = failed.filter(c("is_connection") | (c("check_ms") < c("moved_ms")))
    failed = failed.with_columns(now=t.latest(failed.with_columns(seq="check_seq"), pl.lit(value=True)))
    if failed.is_empty():
        return NOTHING
    held_now = pl.when("is_state").then(c("content")).otherwise("held")
    of_failed = c("row").is_in(failed["now"].to_list())
    now = t.having(of_failed, now="row", held_now=held_now, last_end=until(is_left | is_own))
    now = t.of(now, "last_end", last_kind="kind")
    failed = failed.join(now, "now", how="left", maintain_order="left")
    holds = c("held_now").is_not_null() & (c("last_kind") != "client_disconnected").fill_null(value=True)
    failed = failed.filter(~is_change | holds)
    failed = where(failed, t.cluster.has_left, "g", "to", "asked_ms", "check_ms", but_not=True)
    failed = t.of(first_of(failed, "row", "row", "check"), "row", "operation")
    return failed.select(
        "g", "last", "operation", "outcome", first="row", after="message", peer=t.name("to"), _number="number"
    )
