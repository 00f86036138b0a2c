"""What queues a CHANGE or a DELETE, and with which delay: the reasons of each call.

A change or the end of a client queues a call to every member, after the sync delay; a call that has failed is queued
again, after the retry delay; and a VERIFY that failed brings the content at once. There is one task for each client and
member: a newer one takes its place with its own delay, and the clock runs on from the older one (docs/protocol
#sync-merge). So a call is due when the delay of the latest reason since the call before has passed since the first one:

    change ──── 400 ms ──── change ──── 600 ms ──── call          the sync delay, 1 s, from the first change on
    failure ─────── 2,500 ms ─────── change ─ tick ─ call         the same, from the failure on: at once

Known of clients of connections only: a registration over HTTP that changes nothing is announced too, and has no row.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, ended, is_delete, is_sync, is_verify, succeeded
from distro_spark.timeline import Timeline

MOMENT_MS = 50
"""Half a tick of the engine. A tick takes the due tasks, then each worker in turn reads the client and calls: what
happens in between is recorded before the call, and queues another one."""

is_changed = c("kind") == "client_changed"
asks_for_content = ended & is_verify & (c("outcome") == "fail") & c("to").is_not_null() & c("is_native")
is_failed = ended & is_sync & ~succeeded & c("to").is_not_null()

_BY_CALL = ("begin", "to", "turn")
_COLUMNS = ("begin", "g", "run", "row", "at_ms", "delay_ms", "retry_ms")


def reasons_of_calls(t: Timeline) -> pl.DataFrame:
    """For each CHANGE and DELETE about a client of a connection to a member: begin, g, to, row, at_ms; the first reason
    since the call before, `first` (its row; null: there is none), and `what` it is; `first_ms`, from when on at the
    earliest the delay counts; and `wait_ms`, the delay of the latest reason."""
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
    """begin, g, to, row, at_ms, what, and wait_ms, the delay that comes with it. The retry of a CHANGE whose client has
    left meanwhile may find a DELETE queued."""
    announces = is_changed | (c("is_native") & c("is_state") & (c("kind") != "observed"))
    to_all = for_members(t, t.having(c("is_connection") & announces, *_COLUMNS, what=pl.lit("change")))
    waits = pl.when(is_verify).then(0).when(is_delete | c("held").is_not_null()).then("retry_ms").otherwise("delay_ms")
    what = pl.when(is_verify).then(pl.lit("content")).otherwise(pl.lit("failed call"))
    to_one = t.having(c("is_connection") & (asks_for_content | is_failed), *_COLUMNS, "to", what=what, wait_ms=waits)
    columns = ("begin", "g", "to", "row", "at_ms", "what", "wait_ms")
    return pl.concat([to_all.with_columns(wait_ms="delay_ms").select(columns), to_one.select(columns)])


def for_members(t: Timeline, rows: pl.DataFrame) -> pl.DataFrame:
    """Once for each other member of the run."""
    return rows.join(t.cluster.nodes.select("run", to="g"), "run").filter(c("to") != c("g"))
