"""A cause of a copy that stays, which the owner's calls alone show (INV-CONV, INV-DELETE)."""

from __future__ import annotations

import polars as pl

from distro_spark.timeline import Timeline, c, is_delete, is_left

SWALLOWED = "DELETE swallowed"
"""Signature: a CHANGE to this node failed after the client had left its owner, and then no DELETE was sent to it."""


def swallowed(t: Timeline, found: pl.DataFrame, owner: str = "owner") -> pl.Series:
    """For each (client_no, owner, g) whether the calls show it."""
    left = t.having(is_left, "client_no", "g", "row").group_by("client_no", "g").agg(left=c("row").max())
    calls = t.calls.join(left, ["client_no", "g"])
    failed = ~c("is_sent") & (c("op") == "CHANGE") & (c("outcome") != "success") & (c("row") > c("left"))
    calls = calls.group_by("client_no", "g", "to").agg(swallowed=failed.any() & ~(c("is_sent") & is_delete).any())
    wanted = found.select("client_no", owner, "g")
    seen = wanted.join(
        calls, left_on=["client_no", owner, "g"], right_on=["client_no", "g", "to"], how="left", maintain_order="left"
    )
    return seen["swallowed"].fill_null(value=False)
