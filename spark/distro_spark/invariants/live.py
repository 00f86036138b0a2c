"""INV-LIVE: no lease check removes a live client.

Judged where the lease check removes a copy, or the client itself. Signatures:

* `native removed`: the client is connected to this node;
* `short lease`: a verify renewed the copy less than the lease ago (B31);
* `sync does not renew`: a CHANGE was applied less than the lease ago; some releases do not renew the lease then (B17);
* `verified in vain`: the owner sent three requests about it in the last half minute, but none of them renewed it, and
  no sync repaired it (B10).
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import (
    before,
    by_lease,
    c,
    is_applied,
    is_delete,
    is_removed,
    is_verify,
    received,
    renews,
    replied,
    succeeded,
)
from distro_spark.history import LEASE_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline

TOLERANCE_MS = 1000
ASKED_WITHIN_MS = 30_000
"""Three verify rounds, and the same time as margin."""


INVARIANT = Invariant(
    "INV-LIVE",
    "No lease check removes a client that is connected, or whose owner still sends requests about it.",
    needs=Needs(state=True, reported=True, received=("CHANGE", "VERIFY")),
)


@INVARIANT.found_by(
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
