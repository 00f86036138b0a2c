"""How long a change takes to be everywhere. Measured when asked for; else it costs nothing.

For every change that its own connection made of a client's view on its owner: until when each other member that was
up had reached that view, or a later one of the owner's (changes are merged on their way, docs/protocol #sync-merge). A
change that a member never reached is unconverged, not infinitely slow; one whose owner or member went down meanwhile
is not measured for that member, since nothing could have carried it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.compiling import compiled, suited, uncounted
from distro_spark.encoding import client_key, node_hash, numbered
from distro_spark.facts import Overview
from distro_spark.judge import together
from distro_spark.result import ChangeTime, Convergence, EventReference
from distro_spark.rows import (
    CHANGED,
    CONNECTED,
    DISCONNECTED,
    STOPPED,
    Facts,
    Integers,
    Rows,
    clients,
    is_claim,
    members,
    views,
    whole_clients,
)
from distro_spark.story import END

_COLUMNS = ("key", "owner", "seq", "follower", "ms")
CHANGES_MAX = 200


def convergence(session: SparkSession, events: DataFrame, seen: Overview) -> tuple[Convergence, tuple[ChangeTime, ...]]:
    """The distribution over all changes, and the slowest of them with what each waited for."""
    times = _times(session, events, seen).persist()
    try:
        total = times.agg(
            F.count("ms").alias("count"),
            F.percentile("ms", 0.5).cast("long").alias("median_ms"),
            F.percentile("ms", 0.99).cast("long").alias("p99_ms"),
            F.max("ms").alias("max_ms"),
            F.count_if(F.col("ms").isNull()).alias("unconverged"),
        ).collect()[0]
        slowest = times.orderBy(F.desc_nulls_first("ms"), "owner", "seq").limit(CHANGES_MAX)
        return Convergence(**total.asDict()), _told(events, slowest, seen)
    finally:
        times.unpersist()


def _times(session: SparkSession, events: DataFrame, seen: Overview) -> DataFrame:
    shared = session.sparkContext.broadcast(seen.facts)

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        facts = shared.value
        for rows in whole_clients(batches, facts.node):
            found = np.empty((len(rows.seq), len(_COLUMNS)), np.int64)
            size = suited(lags, len(rows.seq))(rows, facts, found)
            columns = {name: found[:size, i] for i, name in enumerate(_COLUMNS)}
            for place in ("owner", "follower"):
                columns[place] = facts.node[columns[place]]
            never = columns["ms"] == END
            arrays = [pa.array(columns[name], mask=never if name == "ms" else None) for name in _COLUMNS]
            yield pa.RecordBatch.from_arrays(arrays, names=list(_COLUMNS))

    rows = together(numbered(events), seen.client_rows)
    return rows.mapInArrow(measure, ", ".join(f"{name} long" for name in _COLUMNS))


def _told(events: DataFrame, slowest: DataFrame, seen: Overview) -> tuple[ChangeTime, ...]:
    """Give the changes their names back."""
    their = F.broadcast(slowest)
    change = (client_key() == F.col("key")) & (node_hash("node") == F.col("owner")) & (events["seq"] == their["seq"])
    rows = events.join(their, change).select(
        "run", "client", events["seq"], "node", "at_ms", "kind", "message", "follower", "ms"
    )
    name_of: Mapping[int, str] = {node.hash: node.name for node in seen.nodes}
    found: Sequence[ChangeTime] = [
        ChangeTime(
            row["run"],
            row["client"],
            EventReference(row["node"], row["seq"], row["at_ms"], row["kind"], row["message"]),
            name_of[row["follower"]],
            row["ms"],
        )
        for row in rows.distinct().collect()
    ]
    return tuple(sorted(found, key=lambda c: (-(END if c.ms is None else c.ms), c.run, c.event.at_ms, c.client)))


@compiled
def lags(rows: Rows, facts: Facts, found: Integers) -> int:
    """Per change: key, owner, seq, the last member to follow and in how many ms (END: it never did).

    Returns how many.
    """
    size = 0
    for start, end in clients(rows):
        owner = _owner(rows, start, end)
        if owner < 0:
            continue
        at_ms, shown, seq = _changes(rows, facts, start, end, owner)
        worst, last = np.full(len(at_ms), -1, np.int64), np.zeros(len(at_ms), np.int64)
        order = np.argsort(shown, kind="mergesort")
        ascending = shown[order]
        i = start
        for follower in members(facts, owner):
            while i < end and rows.node[i] < follower:
                i += 1
            stop = i
            while stop < end and rows.node[stop] == follower:
                stop += 1
            if follower != owner and (stop > i or _is_member(facts, follower)):
                reached = _reached(rows, facts, i, stop, at_ms, shown, order, ascending)
                for change in range(len(at_ms)):
                    until = reached[change]
                    if _was_down(facts, follower, at_ms[change], until) or _was_down(
                        facts, owner, at_ms[change], until
                    ):
                        continue
                    ms = END if until == END else max(until - at_ms[change], 0)
                    if ms > worst[change]:
                        worst[change], last[change] = ms, follower
            i = stop
        for change in range(len(at_ms)):
            if worst[change] >= 0:
                found[size, 0], found[size, 1], found[size, 2] = rows.key[start], owner, seq[change]
                found[size, 3], found[size, 4] = last[change], worst[change]
                size += 1
    return size


@uncounted
def _owner(rows: Rows, start: int, end: int) -> int:
    """Of the nodes that claim the client one with its connection, else the first."""
    owner, since_ms, connected = -1, END, False
    claimer, claimed_ms = -1, END
    for i in range(start, end):
        if not is_claim(rows, i):
            continue
        if rows.node[i] != claimer:
            claimer, claimed_ms = rows.node[i], rows.at_ms[i]
        own = rows.kind[i] in (CONNECTED, CHANGED)
        if (own and not connected) or (own == connected and claimed_ms < since_ms):
            owner, since_ms, connected = claimer, claimed_ms, own
    return owner


@compiled
def _changes(rows: Rows, facts: Facts, start: int, end: int, owner: int) -> tuple[Integers, Integers, Integers]:
    while rows.node[start] != owner:
        start += 1
    stop = start
    while stop < end and rows.node[stop] == owner:
        stop += 1
    found = views(rows, facts, start, stop)
    size = 0
    for j in range(len(found)):
        if found[j, 3] in (CONNECTED, CHANGED, DISCONNECTED):
            found[size] = found[j]
            size += 1
    return found[:size, 1].copy(), found[:size, 2].copy(), found[:size, 0].copy()


@compiled
def _reached(
    rows: Rows,
    facts: Facts,
    start: int,
    stop: int,
    at_ms: Integers,
    shown: Integers,
    order: Integers,
    ascending: Integers,
) -> Integers:
    """When a follower had each change or a later one: at once when it happened to show that, else when it came to."""
    reached = np.full(len(at_ms), END, np.int64)
    change, view = 0, 0
    found = views(rows, facts, start, stop)
    for j in range(len(found)):
        row_at_ms, after = found[j, 1], found[j, 2]
        while change < len(at_ms) and at_ms[change] < row_at_ms:
            if shown[change] == view:
                reached[change] = at_ms[change]
            change += 1
        view = after
        # Of the changes to the same view, which stand together in order of time, the last one until now.
        first = np.searchsorted(ascending, view)
        low, high = first, np.searchsorted(ascending, view, side="right")
        while low < high:
            middle = (low + high) // 2
            if at_ms[order[middle]] <= row_at_ms:
                low = middle + 1
            else:
                high = middle
        if low > first:
            latest = order[low - 1]
            reached[latest] = min(reached[latest], row_at_ms)
    while change < len(at_ms):
        if shown[change] == view:
            reached[change] = at_ms[change]
        change += 1
    for change in range(len(at_ms) - 2, -1, -1):
        reached[change] = min(reached[change], reached[change + 1])
    return reached


@uncounted
def _is_member(facts: Facts, node: int) -> bool:
    resets = facts.reset_from[node + 1] - facts.reset_from[node]
    return bool(resets + facts.check_from[node + 1] > facts.check_from[node])


@uncounted
def _was_down(facts: Facts, node: int, since_ms: int, until_ms: int) -> bool:
    for reset in range(facts.reset_from[node], facts.reset_from[node + 1]):
        if facts.reset_kind[reset] == STOPPED and facts.reset_at_ms[reset] <= until_ms:
            last = reset + 1 == facts.reset_from[node + 1]
            if last or facts.reset_at_ms[reset + 1] >= since_ms:
                return True
    return False
