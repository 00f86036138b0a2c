"""INV-NATIVE: the content of a connected client changes only through its own connection.

While a node has the client's connection, no copy from a peer or a snapshot may replace the content that came over the
connection, and no DELETE from a peer may remove it (B01, B41). A copy with the same content is no violation.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import by_lease, c, is_applied, is_removed
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline


def overwritten(t: Timeline) -> pl.DataFrame:
    moved = (c("revision") != c("held_revision")).fill_null(value=False)
    replaced = is_applied & (moved | c("digest").ne_missing(c("held")))
    removed = is_removed & ~by_lease.fill_null(value=False)
    wrong = c("is_connection") & c("is_native") & (replaced | removed)
    found = t.having(wrong, "g", "row", "digest", "revision", "own")
    found = t.of(found, "own", own_digest="digest", own_revision="revision")
    by = pl.format("replaced by {} (revision {})", "digest", c("revision").cast(pl.String).fill_null("None"))
    return found.select(
        "g",
        "own_revision",
        first="row",
        last="row",
        own="own_digest",
        actual="digest",
        _own=t.words(found, "own"),
        _how=pl.when(c("digest").is_null()).then(pl.lit("removed")).otherwise(by),
    )


INVARIANT = Invariant(
    "INV-NATIVE",
    "What a connected client publishes, and its revision, change only through its own connection.",
    overwritten,
    "{client} is connected to {node}, which has {own} from it since {_own}, and was {_how} in {last}",
    "{node} keeps the content that {client} sent over its connection, and refuses other content",
    needs=Needs(state=True, reported=True, owned=True),  # any node may remove a copy
)
