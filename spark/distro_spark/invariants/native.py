"""INV-NATIVE: the content of a connected client changes only through its own connection, which counts its revision.

While a node has the client's connection, no copy from a peer or a snapshot may replace the content that came over the
connection, and no DELETE from a peer may remove it (B01, B41). A copy with the same content is no violation. Its
revision is 0 at first, and one more with each change (docs/protocol #revision-connection). A batch leaves it as it was
from 2.1.2 to 2.2.4 (B18), which INV-REV judges; recordings need not say which change was one.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import by_lease, c, is_applied, is_removed, stamped
from distro_spark.invariants.registry import Invariant, Needs
from distro_spark.timeline import Timeline, either


def changed_otherwise(t: Timeline) -> pl.DataFrame:
    return either(overwritten(t), miscounted(t))


def miscounted(t: Timeline) -> pl.DataFrame:
    """Connections whose client does not begin with revision 0, and changes that do not add one to it."""
    first = (c("kind") == "client_connected") & c("held").is_null()
    stays = (c("revision") == c("held_revision")) & ~c("counts_batches")
    next_one = (c("revision") == c("held_revision") + 1) | stays
    right = pl.when(first).then(c("revision") == 0).otherwise(next_one)
    is_counted = first | ((c("kind") == "client_changed") & c("is_native"))
    wrong = is_counted & c("is_connection") & c("has_revisions") & ~right.fill_null(value=True)
    found = t.having(wrong, "g", "row", "revision", "held_revision", "state")
    before = pl.format("revision {}", "held_revision").fill_null("no revision")
    return found.select(
        "g",
        own_revision="held_revision",
        first=pl.coalesce("state", "row"),
        last="row",
        _how=pl.format("and has revision {} after {} in {}", "revision", before, t.words(found, "row")),
        _expected=pl.format("gives it revision {}", (c("held_revision") + 1).fill_null(0)),
    )


def overwritten(t: Timeline) -> pl.DataFrame:
    moved = (c("revision") != c("held_revision")).fill_null(value=False)
    replaced = is_applied & (moved | c("digest").ne_missing(c("held")))
    removed = is_removed & ~by_lease.fill_null(value=False)
    wrong = c("is_connection") & c("is_native") & (replaced | removed)
    found = t.having(wrong, "g", "row", "digest", "revision", "own")
    found = t.of(found, "own", own_digest="digest", own_revision="revision")
    by = pl.format("replaced by {}", stamped("digest", "revision"))
    how = pl.when(c("digest").is_null()).then(pl.lit("removed")).otherwise(by)
    has = ("own_digest", t.words(found, "own"), how, t.words(found, "row"))
    return found.select(
        "g",
        "own_revision",
        first="row",
        last="row",
        own="own_digest",
        actual="digest",
        _how=pl.format("which has {} from it since {}, and was {} in {}", *has),
        _expected=pl.lit("keeps the content that it sent over its connection, and refuses other content"),
    )


INVARIANT = Invariant(
    "INV-NATIVE",
    "What a connected client publishes, and its revision, change only through its own connection; each change adds one "
    "to the revision.",
    changed_otherwise,
    "{client} is connected to {node}, {_how}",
    "{node} {_expected}",
    needs=Needs(state=True, reported=True, owned=True),  # any node may remove a copy
)
