"""Who was responsible for each client, over time. Measured when asked for; else it costs nothing.

A member claims a client from when it holds it as its own until it holds it no more, holds it as a copy, or is started
or stopped; and for two rounds of verification after it has sent what only an owner sends. That alone counts for the
clients by `ip:port#…`, which change hands without a word (docs/protocol #owner-place). A client's time begins with the
first claim and ends when no member holds it any more. What is wanted is one claimer; a hand-over has none or two of
them for a while, and only how long that lasts tells it from a defect. So this is a measure and no invariant:
INV-OWNER judges what may never be. A client is measured where what tells of claims was observed on every node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.compiling import compiled, suited, uncounted
from distro_spark.encoding import HASHED, OWNED, client_key, numbered
from distro_spark.facts import Overview, was_observed
from distro_spark.invariants.registry import Needs
from distro_spark.judge import together
from distro_spark.result import ClaimedInterval, Responsibility
from distro_spark.rows import (
    CHANGE,
    SENT,
    VERIFY,
    Facts,
    Flags,
    Integers,
    Rows,
    clients,
    content_after,
    first_from,
    is_state,
    members,
    whole_clients,
)
from distro_spark.story import END
from distro_traces.header import Header

ROUNDS_MS = 11_000
"""Two rounds of verification, 5 s apart, and what they may be late."""

INTERVALS_MAX = 200
UNKNOWN = -1
NEEDS = (Needs(state=True, owned=True), Needs(state=True, owned=True, sent=("CHANGE", "VERIFY")))
"""To tell who claims a client of a connection, and one by `ip:port#…`."""

_COLUMNS = ("key", "from_ms", "until_ms", "claimers", "one", "other")


def responsibility(
    session: SparkSession, events: DataFrame, seen: Overview, headers: Mapping[str, Header]
) -> Responsibility:
    """For how long none, one and several members claimed a client, and the longest times in which it was not one."""
    intervals = (
        _intervals(session, events, seen, headers).withColumn("ms", F.col("until_ms") - F.col("from_ms")).persist()
    )
    try:
        of = {0: "none_ms", 1: "one_ms", 2: "several_ms"}
        total = intervals.agg(
            F.count_distinct(F.when(F.col("claimers") >= 0, F.col("key"))).alias("clients"),
            F.count_if(F.col("claimers") == UNKNOWN).alias("undecided"),
            F.count_if(~F.col("claimers").isin(1, UNKNOWN)).alias("intervals"),
            *(F.sum(F.when(F.least("claimers", F.lit(2)) == n, F.col("ms"))).alias(name) for n, name in of.items()),
        ).collect()[0]
        longest = (
            intervals.where(~F.col("claimers").isin(1, UNKNOWN))
            .orderBy(F.desc("ms"), "key", "from_ms")
            .limit(INTERVALS_MAX)
        )
        told = _told(events, longest, seen)
        return Responsibility(
            clients=total["clients"],
            undecided=total["undecided"],
            **{name: total[name] or 0 for name in of.values()},
            intervals=told,
            intervals_left_out=total["intervals"] - len(told),
        )
    finally:
        intervals.unpersist()


def _intervals(session: SparkSession, events: DataFrame, seen: Overview, headers: Mapping[str, Header]) -> DataFrame:
    shared = session.sparkContext.broadcast((seen.facts, was_observed(seen.nodes, headers, NEEDS)))

    def measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        facts, observed = shared.value
        for rows in whole_clients(batches, facts.node):
            found = np.asarray(suited(claimed, len(rows.seq))(rows, facts, observed), np.int64).reshape(
                -1, len(_COLUMNS)
            )
            columns = dict(zip(_COLUMNS, found.T, strict=True))
            for name in ("one", "other"):
                columns[name] = np.where(columns[name] < 0, 0, facts.node[columns[name]])
            yield pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})

    rows = together(numbered(events), seen.client_rows)
    return rows.mapInArrow(measure, ", ".join(f"{name} long" for name in _COLUMNS))


def _told(events: DataFrame, longest: DataFrame, seen: Overview) -> tuple[ClaimedInterval, ...]:
    """Give the intervals their names."""
    their = F.broadcast(longest.withColumnRenamed("key", "its_key"))
    named = events.where("client is not null").join(their, client_key() == F.col("its_key"))
    name_of: Mapping[int, str] = {node.hash: node.name for node in seen.nodes}
    found = [
        ClaimedInterval(
            row["run"],
            row["client"],
            row["from_ms"],
            row["until_ms"],
            row["claimers"],
            tuple(name_of[node] for node in (row["one"], row["other"]) if node in name_of),
        )
        for row in named.select("run", "client", *_COLUMNS[1:]).distinct().collect()
    ]
    return tuple(sorted(found, key=lambda each: (each.from_ms - each.until_ms, each.run, each.client, each.from_ms)))


@compiled
def claimed(rows: Rows, facts: Facts, observed: Flags) -> list[tuple[int, int, int, int, int, int]]:
    """Each interval in which a client was claimed by the same nodes: key, from, until, by how many (UNKNOWN: cannot be
    told), the first two of them or -1. `observed`: of `NEEDS`, by node."""
    found: list[tuple[int, int, int, int, int, int]] = []
    for start, end in clients(rows):
        nodes = members(facts, rows.node[start])
        if not observed[1 if rows.flags[start] & HASHED else 0][nodes].all():
            found.append((rows.key[start], 0, 0, UNKNOWN, -1, -1))
            continue
        steps = _steps(rows, facts, start, end)
        claims, held, since_ms, has_begun = np.zeros(len(nodes), np.int64), 0, 0, False
        for step in np.argsort(steps[:, 0], kind="mergesort"):
            at_ms, node = steps[step, 0], np.searchsorted(nodes, steps[step, 1])
            claimers = np.flatnonzero(claims)
            if has_begun and at_ms > since_ms and held + len(claimers) > 0:
                one = nodes[claimers[0]] if len(claimers) > 0 else -1
                other = nodes[claimers[1]] if len(claimers) > 1 else -1
                if len(found) > 0 and found[-1][2] == since_ms and found[-1][3:] == (len(claimers), one, other):
                    since_ms = found.pop()[1] if found[-1][0] == rows.key[start] else since_ms
                found.append((rows.key[start], since_ms, at_ms, len(claimers), one, other))
            since_ms = at_ms
            claims[node] += steps[step, 2]
            held += steps[step, 3]
            has_begun = has_begun or steps[step, 2] > 0
    return found


@compiled
def _steps(rows: Rows, facts: Facts, start: int, end: int) -> Integers:
    """When a node began or ended to claim the client and to hold it, one a line: time, node, +1 or -1 of a claim, of
    what is held."""
    found = np.zeros((4 * (end - start), 4), np.int64)
    size, i = 0, start
    while i < end:
        stop = i
        while stop < end and rows.node[stop] == rows.node[i]:
            stop += 1
        size = _steps_of(rows, facts, i, stop, found, size)
        i = stop
    return found[:size]


@uncounted
def _steps_of(rows: Rows, facts: Facts, start: int, stop: int, found: Integers, size: int) -> int:
    """Those of one node; returns how many lines there are now."""
    node = rows.node[start]
    reset, last_reset = facts.reset_from[node], facts.reset_from[node + 1]
    claimed_ms, until_ms, held_ms = -1, -1, -1  # since when it claims it, how long that lasts, since when it holds it
    for i in range(start, stop + 1):
        is_over = i == stop
        at_ms = facts.last_at_ms[node] if is_over else rows.at_ms[i]
        seq = END if is_over else rows.seq[i]
        if reset < last_reset and facts.reset_seq[reset] < seq:
            is_over, at_ms = True, facts.reset_at_ms[reset]
            reset = first_from(facts.reset_seq, reset, last_reset, seq)
        claims, holds = claimed_ms >= 0 and not is_over and at_ms <= until_ms, held_ms >= 0 and not is_over
        lasts_ms = until_ms
        if i < stop:
            if is_state(rows.kind[i]):
                holds = content_after(rows, i) != 0
                claims = holds and rows.flags[i] & OWNED != 0
                lasts_ms = rows.at_ms[i] + ROUNDS_MS if rows.flags[i] & HASHED else END
            elif rows.kind[i] == SENT and rows.operation[i] in (CHANGE, VERIFY):
                lasts_ms = max(until_ms if claims else -1, rows.at_ms[i] + ROUNDS_MS)
                claims = True
        if claimed_ms >= 0 and (is_over or not claims or until_ms < at_ms):
            size = _lasted(found, size, node, claimed_ms, min(until_ms, at_ms), 2)
            claimed_ms = -1
        if held_ms >= 0 and (is_over or not holds):
            size = _lasted(found, size, node, held_ms, at_ms, 3)
            held_ms = -1
        if i < stop and claims:
            claimed_ms, until_ms = rows.at_ms[i] if claimed_ms < 0 else claimed_ms, lasts_ms
        if i < stop and holds and held_ms < 0:
            held_ms = rows.at_ms[i]
    return size


@uncounted
def _lasted(found: Integers, size: int, node: int, since_ms: int, until_ms: int, what: int) -> int:
    for at_ms, by in ((since_ms, 1), (max(since_ms, until_ms), -1)):
        found[size, 0], found[size, 1], found[size, what] = at_ms, node, by
        size += 1
    return size
