"""INV-ISOLATE: a failing call to one member delays no call to another.

A change or an end of a client is queued for every member at the same time. Once it has been sent to one of them, it is
sent to the others within the sync delay and some margin, however the call to the first one ends. Not judged: a member
with an excuse (`Cluster.is_excused`), or whose own last call failed, since its retry has its own delay.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import before, c, call_before, ended, is_left, is_sync, succeeded
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, where

MARGIN_MS = 1_000


INVARIANT = Invariant(
    "INV-ISOLATE",
    "A failing call to one member delays no call to another.",
    needs=Needs(state=True, sent=("CHANGE", "DELETE"), lossless=True),
)


@INVARIANT.found_by(
    "{node} sent {client} to {peer} in {last} only, {late_ms} ms after the call to {first_peer} in {first}, "
    "[which ended with {_outcome} at {_end_ms} ms|which had not ended by then]; {peer} had no fault",
    "{node} sends {client} to {peer} when it sends it to {first_peer}",
)
def held_up(t: Timeline) -> pl.DataFrame:
    cause = before((c("kind") == "client_changed") | is_left)
    rows = t.rows.lazy().select("row", "delay_ms", "is_connection", cause=cause).collect()
    calls = t.calls.with_columns(
        sent_before=call_before(c("is_sent") & is_sync),
        failed=call_before(ended & is_sync & ~succeeded),
        ended_before=call_before(ended & is_sync),
    )
    calls = calls.with_columns(recovered=call_before(ended & is_sync & (c("failed") == c("ended_before"))))
    sends = (
        calls.filter(c("is_sent") & is_sync)
        .join(rows, "row", maintain_order="left")
        .filter("is_connection", c("cause").is_not_null())
    )
    lead = sends.group_by("copy", "cause").agg(lead=c("row").min())
    late = t.of(sends.join(lead, ["copy", "cause"]), "lead", lead_ms="at_ms")
    late = late.filter(c("at_ms") - c("lead_ms") > c("delay_ms") + MARGIN_MS)
    is_unsent = (c("sent_before") < c("cause")).fill_null(value=True)
    has_recovered = ((c("recovered") > c("failed")) & (c("recovered") < c("cause"))).fill_null(value=False)
    late = late.filter(is_unsent & (c("failed").is_null() | has_recovered))
    late = where(late, t.cluster.is_excused, "g", "to", "lead_ms", "at_ms", but_not=True)
    return NOTHING if late.is_empty() else _violations(t, late)


def _violations(t: Timeline, late: pl.DataFrame) -> pl.DataFrame:
    late = t.of(late, "lead", lead_message="message", lead_to="to")
    ends = t.calls.filter(ended).select("copy", "outcome", end="row", end_ms="at_ms", lead_message="message")
    ends = late.select("row", "copy", "lead", "lead_message").join(ends, ["copy", "lead_message"])
    ends = ends.filter(c("end").is_between("lead", "row")).sort("end").unique("row", keep="first")
    late = late.join(
        ends.select("row", _end_ms="end_ms", _outcome=c("outcome").cast(pl.String)),
        "row",
        how="left",
        maintain_order="left",
    )
    return late.select(
        "g",
        first="lead",
        last="row",
        after="lead_message",
        peer=t.name("to"),
        first_peer=t.name("lead_to"),
        late_ms=c("at_ms") - c("lead_ms"),
        _end_ms="_end_ms",
        _outcome="_outcome",
    )
