"""INV-AIM: the end of a call to one member queues nothing for another, and nothing is sent without a cause.

Judged at the owner: a CHANGE that carries content which its target has already confirmed needs a cause: a change of the
client, a sync to the same member that did not succeed, or a VERIFY that it answered with FAIL. A CHANGE without such a
cause was meant for another member (`m-add-after-fail-to-all`). Each cause explains one CHANGE: where a call fails while
the CHANGE of a change, or of an earlier failure, is already queued, a second one follows, as seen on a busy 2.2.4. An
answer that a recording of links shows may have come too late for the caller: there a CHANGE at the time of a retry of
that call is no violation either. A call may read a change of the same moment before that change is queued. A client of
the HTTP API is not judged after a member list has changed, since such a client is handed over.

The first call about a client of a connection needs a cause too: that it has connected is none (docs/protocol
#client-connect). So does a DELETE after one that has succeeded.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, call_before, ended, is_change, is_delete, is_owned, is_sync, succeeded
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.reasons import reasons_of_calls
from distro_spark.timeline import NOTHING, Timeline
from distro_traces.header import WITHOUT_REVISIONS

TIMED_OUT_AND_REPEATED_MS = 3_000 + 3_000
"""Between a call that its sender gives up and the retry (docs/protocol #sync-retry)."""

MOMENT_MS = 50
"""Half a tick of the engine. A tick takes the due tasks; then each worker in turn reads the client and calls."""


INVARIANT = Invariant(
    "INV-AIM",
    "A client is sent to a member only when it changes or ends, and again only when a call to that member fails.",
    needs=Needs(state=True, sent=("CHANGE", "DELETE", "VERIFY"), revision=True, lossless=True),
    not_on=WITHOUT_REVISIONS,
)
EXPECTS = "{node} sends {client} only to the member whose call failed"


@INVARIANT.found_by(
    "{node} sent {client} to {peer} in {last}; {peer} had confirmed the same content as {confirmed}, and no call to it "
    "failed since[; the call that failed in between is {_failure}, to {_failed_to}]",
    EXPECTS,
)
def sent_again(t: Timeline) -> pl.DataFrame:
    sends = c("is_sent") & is_change
    calls = t.of(t.calls, "row", "state", "revision", "digest")
    calls = t.of(calls, "state", state_ms="at_ms")
    calls = calls.with_columns(is_of_moment=(c("at_ms") - c("state_ms") < MOMENT_MS).fill_null(value=False))
    calls = calls.with_columns(
        sent_before=call_before(sends),
        sent_message=call_before(sends, "message"),
        moment=call_before(sends, "is_of_moment"),
    )
    confirms = ended & succeeded & (c("sent_message") == c("message"))
    changed = c("sent_before").is_null() | (c("state") > c("sent_before")).fill_null(value=True) | c("moment")
    calls = calls.with_columns(before=call_before(confirms, "sent_before"), changed=changed)
    uncaused = calls.filter(sends & c("before").is_not_null() & ~c("changed"))
    uncaused = t.of(
        uncaused,
        "before",
        before_ms="at_ms",
        before_revision="revision",
        before_digest="digest",
        before_message="message",
    )
    uncaused = uncaused.filter(c("revision") == c("before_revision"), c("digest") == c("before_digest"))
    if uncaused.is_empty():
        return NOTHING
    # A failure is a cause for one CHANGE: a counter that never falls below zero.
    step = (
        pl.when(ended & ~succeeded & (is_sync | (c("outcome") == "fail")))
        .then(1)
        .when(sends & ~c("changed"))
        .then(-1)
        .otherwise(0)
    )
    causes = calls.join(uncaused.select("copy", "to").unique(), ["copy", "to"], how="semi").with_columns(
        sum=step.cum_sum().over("copy", "to", order_by="row")
    )
    least = pl.min_horizontal(c("sum").cum_min(), 0)
    left = (c("sum") - least).shift(1).fill_null(0).over("copy", "to", order_by="row")
    uncaused = uncaused.join(causes.with_columns(left=left).filter(c("left") == 0), "row", how="semi")
    uncaused = t.of(uncaused, "row", "has_revisions", "moved_ms", "is_connection")
    uncaused = uncaused.filter("has_revisions", t.reports | (c("at_ms") - c("before_ms") < TIMED_OUT_AND_REPEATED_MS))
    uncaused = uncaused.filter(is_owned).sort("row")
    return _with_failures(t, uncaused)


def _with_failures(t: Timeline, uncaused: pl.DataFrame) -> pl.DataFrame:
    failures = t.calls.filter(ended & ~succeeded).select(
        "copy", failure="row", failed_message="message", failed_to="to"
    )
    failures = (
        uncaused.select("row", "before", "copy").join(failures, "copy").filter(c("failure").is_between("before", "row"))
    )
    last = failures.sort("failure").group_by("row").last().select("row", "failure", "failed_message", "failed_to")
    uncaused = uncaused.join(last, "row", how="left", maintain_order="left")
    return uncaused.select(
        "g",
        "revision",
        first=pl.coalesce("failure", "before"),
        last="row",
        after=pl.coalesce("failed_message", "before_message"),
        peer=t.name("to"),
        confirmed="before_message",
        _failure_row="failure",
        _failed_to=t.name("failed_to"),
    )


@INVARIANT.found_by(
    "{node} sent {client} to {peer} in {last}; [{peer} had confirmed its end as {after}, and it has not come since|"
    "nothing of it has changed since it is there]",
    EXPECTS,
)
def without_cause(t: Timeline) -> pl.DataFrame:
    """The first call about a client of a connection, and the first one after a DELETE that succeeded, where nothing has
    queued it since the start of the node."""
    calls = reasons_of_calls(t)
    starts = t.cluster.lives.filter(begin_kind="node_started").select("life")
    calls = t.of(calls, "row", "life", "op", "message", "revision", "copy").join(starts, "life", maintain_order="left")
    deleted = t.calls.filter(ended & is_delete & succeeded).select("begin", "to", "message", is_done=pl.lit(value=True))
    calls = calls.join(deleted, ["begin", "to", "message"], how="left", maintain_order="left")
    by = ("begin", "to")
    before = {f"before_{name}": c(name).shift(1).over(by) for name in ("row", "message", "is_done")}
    calls = calls.with_columns(**before).filter(c("first").is_null())
    found = calls.filter(c("before_row").is_null() | c("before_is_done").fill_null(value=False)).sort("row")
    return found.select(
        "g",
        "revision",
        first="before_row",
        last="row",
        after="before_message",
        peer=t.name("to"),
    )
