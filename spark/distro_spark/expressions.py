"""Expressions over the rows of a timeline: what a row is, and which earlier or later row of its copy it refers to.

A reference to a row is its number (column `row`), with which `Timeline.of` fetches columns; null where there is none.
"""

from __future__ import annotations

import polars as pl

from distro_spark.history import LEASE, OWN_CONNECTION

c = pl.col

sent, received = c("kind") == "request_sent", c("kind") == "request_received"
replied, ended = c("kind") == "reply_sent", c("kind") == "reply_received"
succeeded = c("outcome") == "success"
is_sync = c("op").is_in(["CHANGE", "DELETE"])
is_change, is_delete, is_verify = c("op") == "CHANGE", c("op") == "DELETE", c("op") == "VERIFY"
is_applied, is_removed = c("kind") == "replica_applied", c("kind") == "replica_removed"
is_own = c("kind").is_in([kind.value for kind in OWN_CONNECTION])
is_left = c("kind") == "client_disconnected"
is_owned = c("is_connection") | (c("at_ms") < c("moved_ms"))
"""A node that owned the client still does: the owner of an ip:port client may change with a member list."""
by_lease = c("detail") == LEASE
is_gone = c("is_state") & c("content").is_null()
claims = pl.when("is_state").then(c("owned").fill_null(value=False)).otherwise(sent & (is_sync | is_verify))
"""A node acts as the owner: it holds the client as its own, or sends a request that only an owner sends."""
renews = is_applied | (replied & is_verify & succeeded)
"""A copy was applied, or a verify of it confirmed."""


def stamped(content: str, revision: str) -> pl.Expr:
    """A content with its revision, as text; null without content."""
    return pl.format("{} (revision {})", content, c(revision).cast(pl.String).fill_null("None"))


def before(condition: pl.Expr) -> pl.Expr:
    """The number of the latest earlier row of the copy for which the condition holds; null: none."""
    return in_copy(_latest(condition).shift(1))


def until(condition: pl.Expr) -> pl.Expr:
    """As `before`, this row included."""
    return in_copy(_latest(condition))


def after(condition: pl.Expr) -> pl.Expr:
    """The number of the next later row of the copy for which the condition holds; null: none."""
    later = pl.when(condition).then("row").backward_fill().shift(-1)
    return pl.when(later < c("next_begin")).then(later)


def neighbour(column: str | pl.Expr, step: int, *same: str) -> pl.Expr:
    """The value in the row that is so many rows before; null where one of the columns `same` differs there."""
    is_same = pl.all_horizontal(c(name) == c(name).shift(step) for name in same)
    return pl.when(is_same).then((c(column) if isinstance(column, str) else column).shift(step))


def call_before(condition: pl.Expr, column: str = "row") -> pl.Expr:
    """Of `Timeline.calls`: a column of the latest earlier one of this copy to this peer for which that holds."""
    place = pl.when(condition).then("place").forward_fill().shift(1)
    return c(column).gather(pl.when(place >= c("first")).then(place))


def _latest(condition: pl.Expr) -> pl.Expr:
    return pl.when(condition).then("row").forward_fill()


def of_row(row: str, column: str) -> pl.Expr:
    """The value that a column has in the row of that number; only where all rows of a timeline are."""
    return c(column).gather(c(row))


def in_copy(row: pl.Expr) -> pl.Expr:
    """That number where it is of the same life of this copy; else null."""
    return pl.when(row >= c("begin")).then(row)
