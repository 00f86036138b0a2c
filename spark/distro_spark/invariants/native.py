"""INV-NATIVE: the content of a connected client changes only through its own connection, which counts its revision.

While a node has the client's connection, no copy from a peer or a snapshot may replace the content that came over the
connection, and no DELETE from a peer may remove it (B01, B41). A copy with the same content is no violation. Its
revision is 0 at first, and one more with each change (docs/protocol #revision-connection). A batch leaves it as it was
from 2.1.2 to 2.2.4 (B18), which INV-REV judges; recordings need not say which change was one.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import by_lease, c, is_applied, is_removed, stamped
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline

INVARIANT = Invariant(
    "INV-NATIVE",
    "What a connected client publishes, and its revision, change only through its own connection; each change adds one "
    "to the revision.",
    needs=Needs(state=True, reported=True, owned=True),  # any node may remove a copy
)


@INVARIANT.found_by(
    "{client} is connected to {node}, which has {own} from it since {_own}, and was [replaced by {_content}|removed] "
    "in {last}",
    "{node} keeps the content that it sent over its connection, and refuses other content",
)
def overwritten(t: Timeline) -> pl.DataFrame:
    moved = (c("revision") != c("held_revision")).fill_null(value=False)
    replaced = is_applied & (moved | c("digest").ne_missing(c("held")))
    removed = is_removed & ~by_lease.fill_null(value=False)
    wrong = c("is_connection") & c("is_native") & (replaced | removed)
    found = t.having(wrong, "g", "row", "digest", "revision", "own")
    return t.of(found, "own", own_digest="digest", own_revision="revision").select(
        "g",
        "own_revision",
        first="row",
        last="row",
        own="own_digest",
        actual="digest",
        _own_row="own",
        _content=stamped("digest", "revision"),
    )


@INVARIANT.found_by(
    "{client} is connected to {node}, and has revision {_revision} after [revision {own_revision}|no revision] in "
    "{last}",
    "{node} gives it revision {_next}",
)
def miscounted(t: Timeline) -> pl.DataFrame:
    """Connections whose client does not begin with revision 0, and changes that do not add one to it."""
    first = (c("kind") == "client_connected") & c("held").is_null()
    stays = (c("revision") == c("held_revision")) & ~c("counts_batches")
    next_one = (c("revision") == c("held_revision") + 1) | stays
    right = pl.when(first).then(c("revision") == 0).otherwise(next_one)
    is_counted = first | ((c("kind") == "client_changed") & c("is_native"))
    wrong = is_counted & c("is_connection") & c("has_revisions") & ~right.fill_null(value=True)
    return t.having(wrong, "g", "row", "revision", "held_revision", "state").select(
        "g",
        own_revision="held_revision",
        first=pl.coalesce("state", "row"),
        last="row",
        _revision="revision",
        _next=(c("held_revision") + 1).fill_null(0),
    )
