"""INV-ROUND and INV-DELAY: verifies and changes are sent when they are due, whatever happens to calls to other members.

An owner verifies each of its clients with every member in every round of 5 s. When the sync delay is over, it sends a
change and the end of a client to every member, even if a retry is queued; when the retry delay is over, what has
failed; and at once its content to a member whose VERIFY failed. Judged only against members without an excuse: such a
member did not start or stop, and its link had no fault, within the time of a round of member reports; it was not
stopped or cut off all that time; and no call to it was unreachable. A dropped or refused call is no excuse. Some margin
is given, and real servers, whose machine may be busy, may be two rounds late. INV-DELAY judges clients by ip:port at
the owner, and until a member list changes, since their owner may change then. A DELETE that was never sent is left to
INV-DELETE.

No call leaves before its delay is over (`reasons`).
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import (
    c,
    ended,
    is_change,
    is_delete,
    is_gone,
    is_left,
    is_owned,
    is_sync,
    is_verify,
    neighbour,
    succeeded,
)
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.reasons import asks_for_content, for_members, is_changed, is_failed, reasons_of_calls
from distro_spark.timeline import NOTHING, Timeline, first_of, where

EARLY_MS = 50
"""Of a row whose time is that of its writing."""

BY_PEER = ("native_from", "to")
_COLUMNS = ("begin", "g", "run", "row", "at_ms", "delay_ms", "retry_ms", "late_ms")


ROUND = Invariant(
    "INV-ROUND",
    "An owner verifies each client with every member that is up once in every round.",
    needs=Needs(state=True, reported=True, sent=("CHANGE", "DELETE", "SNAPSHOT", "VERIFY"), lossless=True),
    needs_end=True,  # the longer a node holds a client, the more faults of its peers are an excuse
)
EACH_ROUND = "{node} verifies {client} with every member that is up every 5 s"
DELAY = Invariant(
    "INV-DELAY",
    "A change and the end of a client are sent when the sync delay is over, even if a retry is queued, a failed call "
    "when the retry delay is over, and content whose VERIFY failed at once.",
    needs=Needs(state=True, reported=True, sent=("CHANGE", "DELETE", "VERIFY"), lossless=True),
)
WHEN_DUE = (
    "{node} sends the {_what} of {client} to {peer} when its delay is over, not before, and even if a retry is queued"
)


@ROUND.found_by(
    "{node} did not verify {client} with {peer} for more than {_s} s after {first}, and no fault excuses that",
    EACH_ROUND,
)
def skipped(t: Timeline) -> pl.DataFrame:
    """Members that no verify round reached while the client was connected and the node loaded."""
    spans = _connected(t)
    starts = spans.join(t.cluster.nodes.select("run", to="g"), "run").filter(c("to") != c("g"))
    starts = starts.select("native_from", "to", row="connected", at_ms="connected_ms", counts=pl.lit(value=True))
    calls = t.of(t.calls.filter((c("is_sent") & is_verify) | (c("outcome") == "unreachable")), "row", "native_from")
    calls = calls.join(spans.select("native_from", "connected"), "native_from").filter(c("row") > c("connected"))
    marks = pl.concat([starts, calls.select("native_from", "to", "row", "at_ms", counts="is_sent")]).sort(
        *BY_PEER, "row"
    )
    marks = marks.with_columns(next_row=neighbour("row", -1, *BY_PEER), next_ms=neighbour("at_ms", -1, *BY_PEER))
    gaps = marks.filter("counts").join(spans, "native_from")
    gaps = gaps.with_columns(until=pl.coalesce("next_row", "end"), until_ms=pl.coalesce("next_ms", "end_ms"))
    gaps = gaps.join(t.cluster.lives.select("life", "loaded_by_ms"), "life", maintain_order="left")
    gaps = t.of(gaps, "row", "rounds_ms")
    gaps = gaps.with_columns(late_ms=pl.max_horizontal("at_ms", "loaded_by_ms") + c("rounds_ms"))
    gaps = gaps.filter(c("until_ms") > c("late_ms"))
    if gaps.is_empty():
        return NOTHING
    gaps = where(_first_late(t, gaps), t.cluster.is_excused, "g", "to", "at_ms", "now_ms", but_not=True)
    return _skipped(t, gaps.sort("row"))


def _connected(t: Timeline) -> pl.DataFrame:
    """The times in which a node held a client by its own connection, from its first change `connected`, with its time,
    until `end` (the last row) and `end_ms`: native_from, and the columns that are equal in all rows."""
    is_changed = (c("kind") == "client_changed") & c("content").is_not_null() & c("is_connection")
    changed = _held(t, is_changed, is_gone, "native_from", "run", "g", "copy", "life", "row", "at_ms")
    return first_of(changed, "native_from", "row").rename({"row": "connected", "at_ms": "connected_ms"})


def _held(t: Timeline, condition: pl.Expr, ends: pl.Expr, *columns: str) -> pl.DataFrame:
    """As `Timeline.lasting`; where nothing ends it, `end` is the last row of the copy's life."""
    rows = t.lasting(condition, ends, *columns, "next_begin")
    return rows.with_columns(end=pl.coalesce("end", c("next_begin") - 1)).drop("next_begin")


def _first_late(t: Timeline, gaps: pl.DataFrame) -> pl.DataFrame:
    """Add `now`: the first row of the copy after the verify was due, or the end of the gap."""
    copies = c("copy").is_in(gaps["copy"].unique().to_list())
    rows = t.having(copies, "copy", now_ms="at_ms", now="row").sort("now_ms")
    found = gaps.sort("late_ms").join_asof(
        rows,
        left_on="late_ms",
        right_on="now_ms",
        by="copy",
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
        coalesce=False,
    )
    is_row = (c("now") <= c("until")) & (c("now") > c("row"))
    return found.with_columns(
        now=pl.when(is_row).then("now").otherwise("until"), now_ms=pl.when(is_row).then("now_ms").otherwise("until_ms")
    )


def _skipped(t: Timeline, gaps: pl.DataFrame) -> pl.DataFrame:
    verified = t.calls.filter(c("is_sent") & is_verify).select("copy", verify="row", other="to")
    others = gaps.select("row", "now", "copy", "to").join(verified, "copy").filter(c("verify").is_between("row", "now"))
    others = others.filter(c("other") != c("to")).with_columns(other=t.name("other"))
    others = others.group_by("row", "to").agg(verified_with=c("other").unique().sort().str.join(", "))
    gaps = t.of(gaps.join(others, ["row", "to"], how="left", maintain_order="left"), "row", "message")
    return gaps.select(
        "g",
        first="row",
        last="now",
        after="message",
        peer=t.name("to"),
        verified_with=c("verified_with").fill_null(""),
        _s=c("rounds_ms") // 1000,
    )


@ROUND.found_by("{node} verified {client} with {peer} {_ms} ms after {first}, and no fault excuses that", EACH_ROUND)
def repeated(t: Timeline) -> pl.DataFrame:
    """Members with which a client was verified twice in a round."""
    calls = t.calls.filter(c("is_sent") & is_verify)
    before = {f"before_{name}": neighbour(name, 1, "begin", "to") for name in ("row", "at_ms")}
    calls = t.of(calls.with_columns(**before), "row", "apart_ms")
    found = calls.filter(c("at_ms") - c("before_at_ms") < c("apart_ms")).sort("row")
    found = where(found, t.cluster.is_excused, "g", "to", "before_at_ms", "at_ms", but_not=True)
    return found.select(
        "g",
        first="before_row",
        last="row",
        after="message",
        peer=t.name("to"),
        _ms=c("at_ms") - c("before_at_ms"),
    )


@DELAY.found_by("{node} {_does} the {_what} of {client} in {first} to {peer} {_when} {last}, {ms} ms later", WHEN_DUE)
def sent_late(t: Timeline) -> pl.DataFrame:
    """Changes, ends of clients, repairs and retries that a member was not sent in time: by then no CHANGE or DELETE
    left, and no call failed whose retry would have replaced the queued task and has its own delay."""
    sends, failed = c("is_sent") & is_sync, ended & ~succeeded
    changes = is_changed & (c("is_connection") | c("content").ne_missing(c("held"))) & is_owned
    retries = is_failed & is_owned & (is_delete | c("held").is_not_null())
    ends = _late(t, "end", is_left & c("is_connection"), pl.lit(value=False), (sends & is_delete) | failed, "delay_ms")
    repaired = (sends & is_change) | (failed & is_sync)
    late = [
        _late(t, "change", changes, is_gone, (sends & is_change) | failed, "delay_ms"),
        ends.filter((c("close_op") == "DELETE") & c("close_is_sent")),
        _late(t, "content", asks_for_content & is_owned, is_gone | is_changed, repaired, pl.lit(0)),
        _late(t, "failed call", retries, is_gone, sends, "retry_ms"),
    ]
    found = where(pl.concat(late, how="diagonal"), t.cluster.is_excused, "g", "to", "begin_ms", "due_ms", but_not=True)
    found = t.of(found, "row", "client_no")
    found = where(found, lambda g, client_no: t.cluster.may_own(g, t.clients[client_no]), "g", "client_no")
    return NOTHING if found.is_empty() else _delayed(t, found)


def _late(
    t: Timeline, what: str, begins: pl.Expr, ends: pl.Expr, closes: pl.Expr, delay_ms: str | pl.Expr
) -> pl.DataFrame:
    """A row that `begins` queues a call, to every member if it is a change or an end. That lasts until a row that
    `ends` it or the end of the life (end_row, end_ms), and until the next call that `closes` it (close, close_ms). Of
    the rows since the last such call the first ones, where that came later than after the delay."""
    begun = _held(t, begins, ends, *_COLUMNS, "to")
    begun = for_members(t, begun.drop("to")) if what in ("change", "end") else begun
    due_ms = c("at_ms") + (c(delay_ms) if isinstance(delay_ms, str) else delay_ms) + c("late_ms")
    columns = ("begin", "g", "to", "row", "end_ms")
    begun = begun.select(*columns, begin_ms="at_ms", what=pl.lit(what), due_ms=due_ms, end_row="end")
    found = ("close", "close_ms", "close_op", "close_is_sent")
    calls = t.calls.filter(closes).select(
        *("begin", "to", "row"), close="row", close_ms="at_ms", close_op="op", close_is_sent="is_sent"
    )
    marks = pl.concat([begun, calls], how="diagonal").sort("begin", "to", "row")
    marks = marks.with_columns(c(found).backward_fill().over("begin", "to"))
    is_first = c("begin_ms").shift(1).over("begin", "to").is_null()
    late = marks.filter(c("begin_ms").is_not_null() & is_first)
    late = late.with_columns(until_ms=pl.min_horizontal("close_ms", "end_ms"))
    return late.filter(c("until_ms") > c("due_ms"))


def _delayed(t: Timeline, late: pl.DataFrame) -> pl.DataFrame:
    is_closed = (c("close_ms") <= c("end_ms")).fill_null(value=False)
    late = late.with_columns(last=pl.when(is_closed).then("close").otherwise("end_row"))
    late = t.of(late, "last", "kind")
    is_sent = is_closed & (c("kind") == "request_sent")
    return late.select(
        "g",
        "last",
        first="row",
        peer=t.name("to"),
        ms=c("until_ms") - c("begin_ms"),
        _what="what",
        _does=pl.when(is_sent).then(pl.lit("sent")).otherwise(pl.lit("had not sent")),
        _when=pl.when(is_sent).then(pl.lit("only in")).otherwise(pl.lit("by")),
    )


@DELAY.found_by("{node} sent the {_what} of {client} in {first} to {peer} already in {last}, {ms} ms later", WHEN_DUE)
def sent_early(t: Timeline) -> pl.DataFrame:
    """Calls that left before their delay was over."""
    early = reasons_of_calls(t).filter(c("at_ms") < c("first_ms") + c("wait_ms") - EARLY_MS)
    early = where(early.sort("row"), t.cluster.is_excused, "g", "to", "first_ms", "at_ms", but_not=True)
    return t.of(early, "first", reason_ms="at_ms").select(
        "g",
        "first",
        last="row",
        peer=t.name("to"),
        ms=c("at_ms") - c("reason_ms"),
        _what="what",
    )
