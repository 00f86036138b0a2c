"""`check --replay`: every row must be a step of the model, as in `validate`, for many runs on many machines.

Almost every rule reads the slice of one client (`distro_validation`). So the clients of a run are distributed to tasks;
each task also gets the run's few rows about no client (starts, stops, loads, faults of links), and judges its clients
together. Where rows are missing, nothing is rejected for want of one. A client that is rejected is not judged any
further; the others are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from distro_model.profiles import profile_named
from distro_spark.cluster import Cluster
from distro_spark.result import Rejected, Replay, event_reference
from distro_traces.event import Event
from distro_traces.exports.causal import causal_order
from distro_traces.header import Header
from distro_traces.parquet import event_of
from distro_validation.validate import Slices
from distro_validation.verdict import Rejection

REPLAY_ROWS = 100_000
"""So many rows of a task are in memory at once, some 50 MB; more when they are of one client."""

REJECTED_MAX = 200
"""Limit of listed rejections, of each task and in total; further ones are counted."""

COLUMNS = {
    **{name: pl.String() for name in ("run", "client", "node", "kind", "message", "guards")},
    **{name: pl.Int64() for name in ("seq", "at_ms", "rejected", "undecided")},
}


def replaying(
    cluster: Cluster, of_nodes: pl.DataFrame
) -> tuple[Callable[[pl.DataFrame], pl.DataFrame], Mapping[str, pl.DataType]]:
    """The function over the rows of some whole clients that gives the lines of their runs, and its columns. Raises what
    `profile_named` does when a run is of a release that is not known."""
    for header in cluster.headers.values():
        profile_named(header.profile)
    headers = cluster.with_gaps().headers
    ends_ms = dict(cluster.nodes.group_by("run").agg(pl.col("last_ms").max()).iter_rows())

    def judge(part: pl.DataFrame) -> pl.DataFrame:
        lines: list[dict[str, Any]] = []
        for (run,), rows in part.group_by("run", maintain_order=True):
            both = pl.concat([of_nodes.filter(run=run).select(rows.columns), rows])
            events = map(event_of, both.iter_rows(named=True))
            lines += _lines(headers[str(run)], events, until_ms=ends_ms[run])
        return pl.DataFrame(lines, COLUMNS)

    return judge, COLUMNS


def _lines(header: Header, events: Iterable[Event], *, until_ms: int) -> list[dict[str, Any]]:
    """The rejections of some clients of a run, from their rows and the rows about no client, in `COLUMNS`."""
    slices = Slices(header, profile_named(header.profile))
    once = {(event.node, event.seq): event for event in events}
    rejected = list(slices.rejections(causal_order(once.values()), until_ms=until_ms))
    clients = sum(rejection.event.client is not None for rejection in rejected)
    lines = [_line(header.run, rejection) for rejection in rejected[:REJECTED_MAX]]
    return [*lines, {"run": header.run, "rejected": clients, "undecided": slices.undecided}]


def _line(run: str, rejection: Rejection) -> dict[str, object]:
    event = rejection.event
    same = {name: getattr(event, name) for name in ("client", "node", "seq", "at_ms", "kind", "message")}
    return {**same, "run": run, "guards": json.dumps([str(candidate) for candidate in rejection.candidates])}


def replayed(found: Sequence[Mapping[str, Any]]) -> Replay:
    """From the lines of all tasks. What is about no client every task finds, each of which had the same rows of it."""
    listed = {_rejected(row) for row in found if row.get("guards") is not None}
    of_none = sum(each.client is None for each in listed)
    rejected = _sum(found, "rejected") + of_none
    ordered = sorted(listed, key=lambda each: (each.run, each.event.at_ms, each.client or "", each.event.seq))
    shown = tuple(ordered[:REJECTED_MAX])
    return Replay(rejected, _sum(found, "undecided"), shown, rejected - len(shown))


def _sum(found: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row.get(name) or 0 for row in found)


def _rejected(row: Mapping[str, Any]) -> Rejected:
    return Rejected(row["run"], row["client"], event_reference(row), tuple(json.loads(row["guards"])))
