"""INV-SOURCE: what a node sends of a client is what it holds of it.

A CHANGE carries the content and the revision that its sender holds when it calls, however long it was queued and
whatever it said before (docs/protocol #sync-execute); a VERIFY carries the revision, and both are about a client that
the sender holds. A node does not send a DELETE of a client that is connected to it. Not judged: a call so soon after a
change that it may have been read before.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_delete, is_sync, is_verify, sent, stamped
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline

INVARIANT = Invariant(
    "INV-SOURCE",
    "A CHANGE and a VERIFY carry what their sender holds of the client, and no DELETE is sent of a client that is "
    "connected.",
    needs=Needs(state=True, reported=True, sent=("CHANGE", "DELETE", "VERIFY"), lossless=True),
)


@INVARIANT.found_by(
    "{node} sent {peer} a {operation} of {client} with {_sent} in {last}; it holds [content {_held}|nothing]",
    "{node} sends what it holds of {client}",
)
def misstated(t: Timeline) -> pl.DataFrame:
    is_other = c("digest").is_not_null() & (c("digest") != c("held"))
    is_unlike = c("has_revisions") & (c("revision") != c("held_revision"))
    unheld = c("held").is_null()
    wrong = pl.when(is_delete).then(c("is_connection") & c("is_native")).otherwise(unheld | is_unlike | is_other)
    wrong = sent & (is_sync | is_verify) & wrong.fill_null(value=False)
    columns = (
        "g",
        "row",
        "to",
        "at_ms",
        "operation",
        "state",
        "held",
        "held_revision",
        "digest",
        "revision",
        "late_ms",
    )
    found = t.of(t.having(wrong, *columns), "state", state_ms="at_ms")
    found = found.filter((c("at_ms") - c("state_ms") > c("late_ms")).fill_null(value=True))
    content = pl.format("content {}", stamped("digest", "revision"))
    return found.select(
        "g",
        "operation",
        first="state",
        last="row",
        peer=t.name("to"),
        _sent=pl.coalesce(content, pl.format("revision {}", "revision"), pl.lit("no content")),
        _held=stamped("held", "held_revision"),
    )
