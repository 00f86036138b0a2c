"""The reasons for a CHANGE or a DELETE: the events that queue it, each with its delay.

A change or the end of a client queues a call to every member, with the sync delay. A call that failed is queued again,
with the retry delay. A VERIFY that failed queues the content without delay. For each client and member there is one
task: a newer task replaces it and brings its own delay, but the time counts from the older one (docs/protocol
#sync-merge). So after the previous call, a call is due when the delay of the latest reason has passed since the first:

    change ──── 400 ms ──── change ──── 600 ms ──── call          the sync delay, 1 s, from the first change on
    failure ─────── 2,500 ms ─────── change ─ tick ─ call         the same, from the failure on: at once

This holds only for clients with a connection: a registration over HTTP that changes nothing queues a CHANGE, too, but
has no row.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, ended, is_delete, is_sync, is_verify, succeeded
from distro_spark.timeline import Timeline

MOMENT_MS = 50
"""Half a tick of the engine. At a tick all due tasks are taken; then each worker reads its client and sends the call. A
change between these two is recorded before the call, but queues another one."""

is_changed = c("kind") == "client_changed"
asks_for_content = ended & is_verify & (c("outcome") == "fail") & c("to").is_not_null() & c("is_native")
is_failed = ended & is_sync & ~succeeded & c("to").is_not_null()

_BY_CALL = ("begin", "to", "turn")
_COLUMNS = ("begin", "g", "run", "row", "at_ms", "delay_ms", "retry_ms")


def reasons_of_calls(t: Timeline) -> pl.DataFrame:
    """A row for each CHANGE and DELETE about a client with a connection: begin, g, to, row, at_ms, and its reasons.

    `first`: the row of the first reason since the previous call, or null; `what`: the kind of that reason; `first_ms`:
    the earliest time from which the delay counts; `wait_ms`: the delay of the latest reason.
    """
    calls = t.calls.filter(c("is_sent") & is_sync).select(
        "begin", "g", "to", "row", "at_ms", is_call=pl.lit(value=True)
    )
    calls = t.of(calls, "row", "is_connection").filter("is_connection").drop("is_connection")
    marks = pl.concat([_reasons(t), calls], how="diagonal").sort("begin", "to", "row")
    marks = marks.with_columns(c("is_call").fill_null(value=False), call_ms=pl.when("is_call").then("at_ms"))
    marks = marks.with_columns(
        turn=c("is_call").cast(pl.Int64).cum_sum().over("begin", "to") - c("is_call").cast(pl.Int64),
        call_ms=c("call_ms").backward_fill().over("begin", "to"),
    )
    reasons = marks.filter(~c("is_call")).with_columns(is_late=c("call_ms") - c("at_ms") < MOMENT_MS)
    put_off = reasons.filter("is_late").with_columns(turn=c("turn") + 1, is_late=pl.lit(value=False))
    reasons = pl.concat([reasons.with_columns(is_own=1), put_off.with_columns(is_own=0)]).sort("row")
    late = c("is_late").fill_null(value=False)
    wait_ms = pl.min_horizontal(c("wait_ms").filter(~late).last(), c("wait_ms").filter(late).min())
    since_call = c("row", "what").sort_by("is_own", descending=True, maintain_order=True).first()
    found = reasons.group_by(_BY_CALL, maintain_order=True).agg(
        since_call,
        first_ms=c("at_ms").first(),
        wait_ms=wait_ms,
    )
    found = found.rename({"row": "first"})
    calls = marks.filter("is_call").select("begin", "g", "to", "row", "at_ms", "turn")
    return calls.join(found, _BY_CALL, how="left", maintain_order="left")


def _reasons(t: Timeline) -> pl.DataFrame:
    """A row for each reason: begin, g, to, row, at_ms, what, and wait_ms, its delay. The retry of a CHANGE may meet a
    queued DELETE, if the client has left meanwhile."""
    announces = is_changed | (c("is_native") & c("is_state") & (c("kind") != "observed"))
    to_all = for_members(t, t.having(c("is_connection") & announces, *_COLUMNS, what=pl.lit("change")))
    waits = pl.when(is_verify).then(0).when(is_delete | c("held").is_not_null()).then("retry_ms").otherwise("delay_ms")
    what = pl.when(is_verify).then(pl.lit("content")).otherwise(pl.lit("failed call"))
    to_one = t.having(c("is_connection") & (asks_for_content | is_failed), *_COLUMNS, "to", what=what, wait_ms=waits)
    columns = ("begin", "g", "to", "row", "at_ms", "what", "wait_ms")
    return pl.concat([to_all.with_columns(wait_ms="delay_ms").select(columns), to_one.select(columns)])


def for_members(t: Timeline, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, once for each other member of the run."""
    return rows.join(t.cluster.nodes.select("run", to="g"), "run").filter(c("to") != c("g"))
