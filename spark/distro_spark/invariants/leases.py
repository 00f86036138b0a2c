"""INV-LIVE, INV-EXPIRE and INV-RENEW: a lease check removes the copies that nothing renews, and no others.

INV-LIVE is judged where the lease check removes a copy, or the client itself. Signatures:

* `native removed`: the client is connected to this node;
* `short lease`: a verify renewed the copy less than the lease ago (B31);
* `sync does not renew`: a CHANGE was applied less than the lease ago; some releases do not renew the lease then (B17);
* `verified in vain`: the owner sent three requests about it in the last half minute, but none of them renewed it, and
  no sync repaired it (B10).

The other two: a copy is renewed when it is applied and by every confirmed verify; with the lease of 180 s and a check
every 5 s it may last 185 s after that. The calls in the meantime decide which invariant is violated: INV-RENEW if calls
about the copy were answered with another outcome than SUCCESS (and renewed it anyway), INV-EXPIRE if there were none.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import (
    before,
    by_lease,
    c,
    is_applied,
    is_change,
    is_delete,
    is_removed,
    is_verify,
    received,
    renews,
    replied,
    succeeded,
)
from distro_spark.history import LEASE_CHECK_PERIOD_MS, LEASE_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, first_of, where

TOLERANCE_MS = 1000
ASKED_WITHIN_MS = 30_000
"""Three verify rounds, and the same time as margin."""


LIVE = Invariant(
    "INV-LIVE",
    "No lease check removes a client that is connected, or whose owner still sends requests about it.",
    needs=Needs(state=True, reported=True, received=("CHANGE", "VERIFY")),
)


@LIVE.found_by(
    "{node} removed {client} in {last} as expired: {signature}; last renewed in {first}[, last request about it in "
    "{_request}]",
    "{node} keeps {client} while its owner has it",
)
def removed_alive(t: Timeline) -> pl.DataFrame:
    is_asked = received & ~is_delete.fill_null(value=False)
    expired = is_removed & by_lease & c("is_connection")
    found = t.having(expired, "row", "g", "client_no", "seq", "at_ms", "is_native")
    if found.is_empty():
        return NOTHING
    is_confirmed = replied & is_verify & succeeded
    conditions = {"renewed": renews, "asked": is_asked, "verified": is_confirmed, "applied": is_applied}
    past = {name: t.rows.select(before(condition)).to_series() for name, condition in conditions.items()}
    found = found.with_columns(**{name: rows.gather(found["row"]) for name, rows in past.items()})
    found = found.with_columns(
        asked_3=past["asked"].gather(past["asked"].gather(found["asked"])),
        applied_2=past["applied"].gather(found["applied"]),
    )
    for name in ("renewed", "verified", "asked_3"):
        found = t.of(found, name, **{f"{name}_ms": "at_ms"})
    since = {name: c("at_ms") - c(f"{name}_ms") for name in ("renewed", "verified", "asked_3")}
    soon = (since["renewed"] < LEASE_MS - TOLERANCE_MS).fill_null(value=False)
    in_vain = (since["asked_3"] < ASKED_WITHIN_MS).fill_null(value=False)
    found = found.filter(c("is_native") | soon | in_vain)
    signature = (
        pl.when("is_native")
        .then(pl.lit("native removed"))
        .when(since["verified"] < LEASE_MS - TOLERANCE_MS)
        .then(pl.lit("short lease"))
        .when(soon & c("applied_2").is_null())
        .then(pl.lit("short lease"))
        .when(soon)
        .then(pl.lit("sync does not renew"))
        .otherwise(pl.lit("verified in vain"))
    )
    found = t.of(found.with_columns(request=t.latest(found, received)), "request", after="message")
    return found.select(
        "g",
        "after",
        first=pl.coalesce("renewed", "row"),
        last="row",
        signature=signature,
        renewed=pl.coalesce("renewed_ms", "at_ms"),
        removed="at_ms",
        _request_row="request",
    )


CHECK_MS = LEASE_CHECK_PERIOD_MS + 3_000
"""Period of the lease check, and tolerance."""

LASTS_MS = LEASE_MS + CHECK_MS
LATE = ("g", "due_ms", "now_ms")


NEEDS = Needs(state=True, received=("CHANGE", "VERIFY"), lossless=True)
EXPIRE = Invariant(
    "INV-EXPIRE",
    "No node holds a copy longer than a lease and one check after its last renewal.",
    NEEDS,
)
RENEW = Invariant(
    "INV-RENEW",
    "A call that is not answered with SUCCESS renews no lease.",
    NEEDS,
)
SAYS = (
    f"{{node}} still holds its copy of {{client}} more than {LASTS_MS // 1000} s after it was last renewed in "
    f"{{first}}; "
    "{refusals} calls about it were refused since"
)
EXPECTS = f"{{node}} removes the copy {LEASE_MS // 1000} s after its last renewal"


def overdue(t: Timeline) -> pl.DataFrame:
    """Copies that are still held a lease and a check after their last renewal: at a row, or at the end of their node's
    life. `refusal`: the last answer to a call about it that was not SUCCESS."""
    if "overdue" not in t.cache:
        t.cache["overdue"] = _overdue(t)
    return t.cache["overdue"]


def _overdue(t: Timeline) -> pl.DataFrame:
    is_seen = (c("kind") == "observed") & c("digest").is_not_null()
    refuses = replied & (is_verify | is_change) & ~succeeded
    columns = ("g", "row", "copy", "at_ms", "gone")
    moments = t.moments(
        *("kind", "digest", "is_connection", *columns),
        renewed=renews | (is_seen & c("held").is_null()),
        refusal=refuses,
    )
    held = moments.filter("is_connection", ~c("is_native"), "is_held", c("renewed") > c("gone").fill_null(-1))
    seen_ms = pl.when(t.reports).then("now_ms").otherwise("at_ms")
    held = held.filter(t.reports | is_seen).select(*columns, "renewed", "refusal", now_ms=seen_ms)
    found = t.of(held.collect().rechunk(), "renewed", renewed_ms="at_ms")
    found = found.with_columns(due_ms=c("renewed_ms") + LASTS_MS).filter(c("now_ms") > c("due_ms"))
    found = first_of(found, "renewed", "row", "now_ms")
    found = where(found, lambda g, due_ms, now_ms: t.cluster.is_over(g, due_ms, now_ms, CHECK_MS, LASTS_MS), *LATE)
    return t.of(found, "renewed", renewed_by="message").with_columns(
        is_refused=(c("refusal") > c("renewed")).fill_null(value=False)
    )


@EXPIRE.found_by(SAYS, EXPECTS)
def outlived(t: Timeline) -> pl.DataFrame:
    found = overdue(t).filter(~c("is_refused"))
    return _violations(found.with_columns(refusals=pl.lit(0, pl.UInt32), by="renewed_by"))


@RENEW.found_by(SAYS, EXPECTS)
def renewed_by_refusal(t: Timeline) -> pl.DataFrame:
    found = overdue(t).filter("is_refused")
    if found.is_empty():
        return NOTHING
    calls = t.having(replied & ~succeeded, "copy", call="row", by="message")
    calls = found.select("copy", "renewed", "row").join(calls, "copy").filter(c("call").is_between("renewed", "row"))
    calls = calls.sort("call").group_by("renewed").agg(refusals=pl.len(), by=c("by").first())
    found = found.join(calls, "renewed", how="left", maintain_order="left")
    return _violations(found.with_columns(by=pl.coalesce("by", "renewed_by")))


def _violations(found: pl.DataFrame) -> pl.DataFrame:
    return found.select(
        "g", c("at_ms").alias("held_at"), "refusals", first="renewed", last="row", after="by", renewed="renewed_ms"
    )
