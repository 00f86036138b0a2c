"""The time until a change has reached all members. It is measured only on request.

For every change of a client's view on its owner by the client's connection: the time until each other member that was
up had that view, or a later one of the owner (changes are merged, docs/protocol #sync-merge). A change that never
reached a member is unconverged, not infinitely slow; a change whose owner or member went down meanwhile is not measured
for that member, since it could not be delivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from distro_spark.expressions import c
from distro_spark.history import NEVER, OWN_CONNECTION
from distro_spark.result import ChangeTime, Convergence, event_reference
from distro_spark.timeline import Timeline
from distro_traces.event import Kind

CHANGES_MAX = 200
COLUMNS = {
    **{name: pl.String() for name in ("run", "client", "node", "kind", "message", "follower")},
    **{name: pl.Int64() for name in ("seq", "at_ms", "ms")},
}


def lags(t: Timeline) -> pl.DataFrame:
    """For each change the last member to follow, and in how many ms (null: it never did); in `COLUMNS`."""
    stretches = t.of(t.stretches, "row", "kind", "life_end_ms", "is_ended", "run")
    stretches = stretches.with_columns(c("view").fill_null(""))
    by_connection = c("kind").is_in([*OWN_CONNECTION, Kind.CLIENT_DISCONNECTED])
    owners = t.owners.filter(rank=0).select("client_no", "g")
    changes = stretches.join(owners, ["client_no", "g"], how="semi").filter(by_connection)
    changes = changes.select("client_no", "run", "row", "at_ms", "view", owner="g")
    resets = stretches.filter(c("next_row").is_null() & c("is_ended"))
    resets = resets.select("client_no", "g", view=pl.lit(""), at_ms="life_end_ms")
    views = pl.concat([stretches.select("client_no", "g", "view", "at_ms"), resets]).sort("at_ms")
    pairs = _pairs(t, changes).sort("at_ms")
    pairs = pairs.join_asof(
        views.rename({"view": "shown"}),
        on="at_ms",
        by=["client_no", "g"],
        allow_exact_matches=False,
        check_sortedness=False,
    )
    came = views.join_asof(
        changes.select("client_no", "view", "at_ms", "row").sort("at_ms"),
        on="at_ms",
        by=["client_no", "view"],
        check_sortedness=False,
    )
    came = came.group_by("row", "g").agg(came_ms=c("at_ms").min())
    pairs = pairs.join(came, ["row", "g"], how="left").sort("client_no", "g", "row")
    at_once = pl.when(c("shown").fill_null("") == c("view")).then("at_ms")
    reached = pl.min_horizontal(at_once, "came_ms").fill_null(NEVER).cum_min(reverse=True).over("client_no", "g")
    pairs = _without_down(t, pairs.with_columns(reached=reached))
    worst = pairs.sort("row", "reached", "g", descending=[False, True, True]).unique(
        "row", keep="first", maintain_order=True
    )
    found = t.of(worst, "row", "client", "node", "seq", "kind", "message")
    ms = pl.when(c("reached") < NEVER).then(pl.max_horizontal(c("reached") - c("at_ms"), 0))
    return found.with_columns(c("kind").cast(pl.String), follower=t.name("g"), ms=ms).select(list(COLUMNS))


def _pairs(t: Timeline, changes: pl.DataFrame) -> pl.DataFrame:
    """Each change with each other member of its run: a node with rows of its own, or with some of this client."""
    nodes = t.cluster.nodes.select("run", "g")
    has_marks = pl.concat([t.cluster.checks["g"], t.cluster.lives.filter(c("begin_seq") > 0)["g"]]).unique()
    pairs = changes.join(nodes, "run").filter(c("g") != c("owner"))
    holders = t.rows.lazy().select("client_no", "g", has_rows=pl.lit(value=True)).unique().collect()
    pairs = pairs.join(holders, ["client_no", "g"], how="left")
    return pairs.filter(c("has_rows").fill_null(value=False) | c("g").is_in(has_marks.to_list())).drop("has_rows")


def _without_down(t: Timeline, pairs: pl.DataFrame) -> pl.DataFrame:
    """Without the pairs whose owner or member was down between the change and its arrival."""
    down = t.cluster.lives.filter(c("begin_kind") == Kind.NODE_STOPPED)
    down = down.select("g", down_ms="begin_ms", up_ms=pl.when("is_ended").then("end_ms").otherwise(NEVER))
    if down.is_empty():
        return pairs
    for node in ("g", "owner"):
        met = pairs.join(down, left_on=node, right_on="g", suffix="_down")
        met = met.filter((c("down_ms") <= c("reached")) & (c("up_ms") >= c("at_ms")))
        pairs = pairs.join(met, ["row", "g"], how="anti")
    return pairs


def distribution(parts: Iterable[pl.DataFrame]) -> tuple[Convergence, tuple[ChangeTime, ...]]:
    """The distribution over all changes, and the slowest of them with their last members."""
    ms, slowest = pl.Series(dtype=pl.Int64), pl.DataFrame(schema=COLUMNS)
    for part in parts:
        ms.append(part["ms"])
        by_time = pl.concat([slowest, part]).sort(
            "ms", "run", "at_ms", "client", descending=[True, False, False, False], nulls_last=False
        )
        slowest = by_time.head(CHANGES_MAX)
    total = Convergence(
        count=ms.count(),
        median_ms=_whole(ms.quantile(0.5, "linear")),
        p99_ms=_whole(ms.quantile(0.99, "linear")),
        max_ms=_whole(ms.max()),
        unconverged=ms.null_count(),
    )
    return total, tuple(_change(row) for row in slowest.iter_rows(named=True))


def _whole(value: object) -> int | None:
    return None if value is None else int(value)  # type: ignore[call-overload]


def _change(row: dict[str, Any]) -> ChangeTime:
    return ChangeTime(row["run"], row["client"], event_reference(row), row["follower"], row["ms"])
