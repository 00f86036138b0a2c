"""INV-EXPIRE and INV-RENEW: a copy that is not renewed expires when its lease is over.

A copy is renewed when it is applied and by every confirmed verify; with the lease of 180 s and a check every 5 s it may
last 185 s after that. The calls in the meantime decide which invariant is violated: INV-RENEW if calls about the copy
were answered with another outcome than SUCCESS (and renewed it anyway), INV-EXPIRE if there were none.
"""

from __future__ import annotations

import polars as pl

from distro_spark.history import LEASE_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import (
    NOTHING,
    Timeline,
    at,
    before,
    c,
    first_of,
    is_gone,
    is_own,
    is_verify,
    renews,
    replied,
    succeeded,
    until,
    where,
)

CHECK_MS = 5_000 + 3_000
"""Period of the lease check, and tolerance."""

LASTS_MS = LEASE_MS + CHECK_MS
LATE = ("g", "due_ms", "now_ms")


def overdue(t: Timeline) -> pl.DataFrame:
    if "overdue" not in t.remembered:
        t.remembered["overdue"] = _overdue(t)
    return t.remembered["overdue"]


def _overdue(t: Timeline) -> pl.DataFrame:
    """Copies that are still held a lease and a check after their last renewal: at a row, or at the end of their node's
    life."""
    begins = (c("kind") == "observed") & c("held").is_null() & c("digest").is_not_null()
    renewal = renews | begins
    rows = t.rows.lazy().with_columns(renewed=before(renewal), now_ms="at_ms")
    rows = rows.with_columns(renewed_ms=at("renewed", "at_ms"))
    is_seen = t.reports | ((c("kind") == "observed") & c("digest").is_not_null())
    rows = rows.filter(c("is_connection") & ~c("is_native") & is_seen)
    each = rows.filter(c("held").is_not_null() & (c("renewed") > c("gone").fill_null(-1)))
    each = each.filter(c("now_ms") - c("renewed_ms") > LASTS_MS)
    still = pl.when("is_state").then(c("content").is_not_null()).otherwise(c("held").is_not_null())
    ends = rows.filter((c("row") + 1 == c("next_begin")) & still & ~is_own).with_columns(
        renewed=pl.when(renewal).then("row").otherwise("renewed"),
        now_ms=pl.when(t.reports).then("life_end_ms").otherwise("at_ms"),
    )
    ends = ends.filter((c("renewed") > c("gone").fill_null(-1)) | is_gone.not_() & (c("renewed") == c("row")))
    columns = ("g", "row", "renewed", "now_ms", "copy", "message")
    both = [part.select(*columns, is_end=pl.lit(part is ends)) for part in (each, ends)]
    found = t.of(pl.concat(both).collect().rechunk(), "renewed", renewed_ms="at_ms")
    found = found.with_columns(due_ms=c("renewed_ms") + LASTS_MS)
    found = first_of(found.filter(c("now_ms") > c("due_ms")), "renewed", "row", "now_ms")
    found = where(found, lambda g, due_ms, now_ms: t.cluster.is_over(g, due_ms, now_ms, CHECK_MS), *LATE)
    if found.is_empty():
        return found.with_columns(is_refused=pl.lit(value=True))
    refuses = replied & (is_verify | (c("op") == "CHANGE")) & ~succeeded
    refused = t.having(c("row").is_in(found["row"].to_list()), "row", by_end=until(refuses), by_row=before(refuses))
    found = found.join(refused, "row", maintain_order="left")
    refused_at = pl.when("is_end").then("by_end").otherwise("by_row")
    return found.with_columns(is_refused=(refused_at > c("renewed")).fill_null(value=False))


def outlived(t: Timeline) -> pl.DataFrame:
    found = overdue(t).filter(~c("is_refused"))
    if found.is_empty():
        return NOTHING
    return _violations(t, found.with_columns(refusals=pl.lit(0, pl.UInt32), by=pl.lit(None, pl.String)))


def renewed_by_refusal(t: Timeline) -> pl.DataFrame:
    found = overdue(t).filter("is_refused")
    if found.is_empty():
        return NOTHING
    calls = t.having(replied & ~succeeded, "copy", refusal="row", by="message")
    calls = found.select("copy", "renewed", "row").join(calls, "copy").filter(c("refusal").is_between("renewed", "row"))
    calls = calls.sort("refusal").group_by("renewed").agg(refusals=pl.len(), by=c("by").first())
    return _violations(t, found.join(calls, "renewed", how="left", maintain_order="left"))


def _violations(t: Timeline, found: pl.DataFrame) -> pl.DataFrame:
    found = t.of(t.of(found, "renewed", renewed_by="message"), "row", held_at="at_ms")
    return found.select(
        "g",
        "held_at",
        "refusals",
        first="renewed",
        last="row",
        after=pl.coalesce("by", "renewed_by"),
        renewed="renewed_ms",
    )


SAYS = (
    f"{{node}} still holds its copy of {{client}} more than {LASTS_MS // 1000} s after it was last renewed in "
    f"{{first}}; "
    "{refusals} calls about it were refused since"
)
EXPECTS = f"{{node}} removes the copy {LEASE_MS // 1000} s after its last renewal"
NEEDS = Needs(state=True, received=("CHANGE", "VERIFY"), lossless=True)
EXPIRE = Invariant(
    "INV-EXPIRE",
    "No node holds a copy longer than a lease and one check after its last renewal.",
    outlived,
    SAYS,
    EXPECTS,
    needs=NEEDS,
)
RENEW = Invariant(
    "INV-RENEW",
    "A call that is not answered with SUCCESS renews no lease.",
    renewed_by_refusal,
    SAYS,
    EXPECTS,
    needs=NEEDS,
)
