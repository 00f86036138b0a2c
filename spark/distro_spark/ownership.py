"""The member responsible for a client of the HTTP API, as each node must compute it, in times when it is certain.

Each node computes the owner of an `ip:port#…` client from the client's hash and its own member list (docs/protocol
#owner-place). The trace shows the list (the node's own `node_started` and `members_changed`), but not the members that
the node lists as DOWN. These are certain only in *settled* time: no list changed, no node started or stopped, and no
link or node was broken, for `SETTLED_MS`. Until then responsibility may be handed over, and nothing is judged:

    a stops           a starts             a-b cut    healed
    ──┼── hand-over ──┼── hand-over ──┬────┼──────────┼── hand-over ──┬──────
                                      └────┘ settled                  └ settled
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from distro_model.release import STRICT
from distro_model.rules.owners import MODULUS, java_hash, tag_of
from distro_spark.cluster import Cluster
from distro_spark.history import MENDS, NEVER, Row
from distro_traces.event import RESET_KINDS, Kind

SETTLED_MS = 60_000
"""Four failing reports until a member is DOWN, or one until it is UP again, then two rounds of verification."""

LISTS = (Kind.NODE_STARTED, Kind.MEMBERS_CHANGED)

COLUMNS = {
    "run": pl.String(),
    "from_ms": pl.Int64(),
    "until_ms": pl.Int64(),
    "g": pl.Int64(),
    "members": pl.String(),
    "alive": pl.Int64(),
    "owners": pl.List(pl.Int64()),
}
"""In a settled time of a run, for a running node `g`: its list, how many of it are up, and by place (the hash modulo
the length of `owners`) the number of the owner."""


def views(cluster: Cluster, runs: Iterable[str]) -> pl.DataFrame:
    """In `COLUMNS`, of the nodes whose lists name no node that the trace does not know."""
    rows = [row for run in runs for row in _of_run(cluster, run)]
    return pl.DataFrame(rows, COLUMNS, orient="row")


def hash_of(client: str) -> int:
    return abs(java_hash(tag_of(client))) % MODULUS


def _of_run(cluster: Cluster, run: str) -> Iterator[tuple[object, ...]]:
    header, members = cluster.headers[run], cluster.of_run[run]
    numbers = {cluster.names[g]: g for g in members}
    end = max(cluster.last_ms[g] for g in members)
    for begin_ms, end_ms in settled(row for g in members for row in cluster.of_node[g].rows):
        running = {g for g in members if cluster.of_node[g].is_up(begin_ms)}
        for g in running:
            listed = {cluster.names[g], *(cluster.of_node[g].listed(begin_ms) or header.nodes)}
            if listed <= numbers.keys():
                ascending = [numbers[name] for name in sorted(listed)]
                owners = _owners(ascending, running, by_configured_place=header.profile == STRICT)
                alive = len(running.intersection(ascending))
                yield run, begin_ms, min(end_ms, end), g, ", ".join(sorted(listed)), alive, owners


def _owners(ascending: Sequence[int], running: set[int], *, by_configured_place: bool) -> list[int]:
    """In a release the place is computed among the members that are up; in `strict` in the whole list, and a DOWN
    member is replaced by the next one that is up."""
    if not by_configured_place:
        return [g for g in ascending if g in running]
    return [next(g for g in (*ascending[place:], *ascending) if g in running) for place in range(len(ascending))]


def settled(rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
    """The settled times of a run, from these rows about its nodes."""
    changes: list[tuple[int, int]] = [(0, 0)]  # the times of each change or fault
    broken: dict[tuple[str, str | None, str], int] = {}
    for row in sorted(rows, key=lambda row: row.at_ms):
        what = row.detail or ""
        if row.kind in RESET_KINDS or row.kind in LISTS:
            changes.append((row.at_ms, row.at_ms))
        elif row.kind == Kind.LINK_FAULT and what in MENDS:
            changes += [(broken.pop((row.node, row.peer, each), row.at_ms), row.at_ms) for each in MENDS[what]]
        elif row.kind == Kind.LINK_FAULT:
            broken.setdefault((row.node, row.peer, what), row.at_ms)
    changes += [(since, NEVER) for since in broken.values()]
    since = 0
    for begin, end in sorted(changes):
        if begin > since + SETTLED_MS:
            yield since + SETTLED_MS, begin
        since = max(since, end)
    if since < NEVER:
        yield since + SETTLED_MS, NEVER
