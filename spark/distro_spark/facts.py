"""What is known before any client is looked at: the nodes, their starts, stops and checkpoints, and what is missing.

All of it is little for each node, so it comes to the driver, becomes arrays, and goes to every task as one broadcast;
no row has to be joined with another for it. Losses are counted by sequence number, not by subtraction, so that a row
that comes twice does not hide one that is gone: a sum over the rows of a node proves that each number is there once,
and only where it does not a bitmap of the numbers says how many are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from distro_spark.encoding import KINDS, NODE_KINDS, node_hash
from distro_spark.invariants import INVARIANTS
from distro_spark.invariants.registry import Needs
from distro_spark.rows import Facts, Flags, Integers
from distro_spark.story import RESETS, Row
from distro_traces.event import Kind, Outcome
from distro_traces.header import Header

_NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a run: how many rows, the highest sequence number, how many different ones."""

    run: str
    name: str
    hash: int
    rows: int
    last_seq: int
    different: int
    last_at_ms: int
    client_rows: int
    deletes: int = 0  # DELETEs that it sent


@dataclass(frozen=True)
class Overview:
    """`nodes` in the order of their hashes, as in `facts`. `marks`: by run and node, starts, stops,
    checkpoints, loads and faults of links."""

    nodes: tuple[Node, ...]
    facts: Facts
    runs: tuple[str, ...]  # as they are numbered in `facts`
    marks: Mapping[str, Mapping[str, Sequence[Row]]]
    misfits: int
    text_bytes: int  # of the lines that were read
    builds: Mapping[str, tuple[str, str]]  # by run: target and profile

    @property
    def events(self) -> int:
        return sum(node.rows for node in self.nodes)

    @property
    def client_rows(self) -> int:
        return sum(node.client_rows for node in self.nodes)

    @property
    def missing(self) -> int:
        return sum(node.last_seq - node.different for node in self.nodes)

    @property
    def doubled(self) -> int:
        return sum(node.rows - node.different for node in self.nodes)

    @cached_property
    def runs_without_checkpoint(self) -> tuple[str, ...]:
        return tuple(
            run
            for run in self.runs
            if not any(row.kind == Kind.CHECKPOINT for rows in self.marks.get(run, {}).values() for row in rows)
        )

    @cached_property
    def deleters(self) -> dict[str, frozenset[str]]:
        """By run the nodes that send DELETEs: that did in this run, or in another one of the same target and profile.

        A short run may hold no DELETE but those that a known defect swallows."""
        of_build = defaultdict[tuple[str, str], set[str]](set)
        for node in self.nodes:
            if node.deletes:
                of_build[self.builds[node.run]].add(node.name)
        return {run: frozenset(of_build[self.builds[run]]) for run in self.runs}

    def without(self, runs: Collection[str], headers: Mapping[str, Header]) -> Overview:
        """Of the other runs alone."""
        if not runs:
            return self
        nodes = tuple(node for node in self.nodes if node.run not in runs)
        marks = {run: by_node for run, by_node in self.marks.items() if run not in runs}
        return replace(self, nodes=nodes, facts=facts_of(nodes, marks, headers), runs=_runs(nodes), marks=marks)

    def undecided(self, invariant: str) -> int:
        """Of how many nodes not enough was observed to judge them by it."""
        decides = self.facts.decides[list(INVARIANTS).index(invariant)]
        return len(self.nodes) - int(decides.sum())

    def decided(self, run: str, invariant: str) -> list[str]:
        """The nodes of a run that can be judged by it."""
        decides = self.facts.decides[list(INVARIANTS).index(invariant)]
        return [self.nodes[g].name for g in self.positions.get(run, ()) if decides[g]]

    def blind(self, run: str) -> frozenset[str]:
        """The nodes of a run of which nobody saw what they hold."""
        return frozenset(self.nodes[g].name for g in self.positions[run]).difference(self.decided(run, "INV-CONV"))

    @cached_property
    def positions(self) -> Mapping[str, Sequence[int]]:
        """By run where its nodes are: of thousands of runs each asks for its own."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for g, node in enumerate(self.nodes):
            found[node.run].append(g)
        return found

    def marks_of(self, run: str, kinds: Iterable[str]) -> dict[str, list[Row]]:
        """By node, in order."""
        wanted = set(kinds)
        return {node: [row for row in rows if row.kind in wanted] for node, rows in self.marks.get(run, {}).items()}


def overview(rows: DataFrame, headers: Mapping[str, Header]) -> Overview:
    """Two jobs over few columns of `Loaded.rows`, a third one where rows are gone or come twice; `headers` by run."""
    nodes, misfits, text_bytes = _nodes(rows)
    marks = _marks(rows)
    runs = _runs(nodes)
    builds = {run: (headers[run].target, headers[run].profile) for run in runs}
    return Overview(nodes, facts_of(nodes, marks, headers), runs, marks, misfits, text_bytes, builds)


def _runs(nodes: Sequence[Node]) -> tuple[str, ...]:
    return tuple(sorted({node.run for node in nodes}))


def _nodes(rows: DataFrame) -> tuple[tuple[Node, ...], int, int]:
    fits = F.col("reason").isNull()
    is_delete = (F.col("kind") == Kind.REQUEST_SENT.value) & (F.col("operation") == "DELETE")
    found = (
        rows.groupBy(F.when(fits, F.col("run")).alias("run"), F.when(fits, F.col("node")).alias("node"))
        .agg(
            F.count("*").alias("rows"),
            F.max("seq").alias("last_seq"),
            F.bit_xor(_edge()).alias("edges"),
            F.max("at_ms").alias("last_at_ms"),
            F.count("client").alias("client_rows"),
            F.count_if(is_delete).alias("deletes"),
            F.sum("bytes").alias("bytes"),
        )
        .withColumn("is_whole", (F.col("edges") == _path("last_seq")) & (F.col("rows") == F.col("last_seq")))
        .withColumn("different", F.col("last_seq"))
        .withColumn("hash", node_hash("node"))
        .withColumnRenamed("node", "name")
        .collect()
    )
    different = _different(rows, [row["hash"] for row in found if row["run"] is not None and not row["is_whole"]])
    nodes = [Node(*(row[f.name] for f in fields(Node))) for row in found if row["run"] is not None]
    nodes = [replace(node, different=different.get(node.hash, node.different)) for node in nodes]
    misfits = sum(row["rows"] for row in found if row["run"] is None)
    return tuple(sorted(nodes, key=lambda node: node.hash)), misfits, sum(row["bytes"] for row in found)


def _edge() -> Column:
    """Of a sequence number, an edge from the one before it to itself.

    Edges add up to a path from 0 to the last number only when each of them is there an odd number of times; and when
    they are as many as the last number, each is there once.
    """
    return F.xxhash64("seq").bitwiseXOR(F.xxhash64(F.col("seq") - 1))


def _path(last: str) -> Column:
    return F.xxhash64(last).bitwiseXOR(F.xxhash64(F.lit(0).cast("long")))


def _different(rows: DataFrame, hashes: Sequence[int]) -> dict[int, int]:
    """How many different sequence numbers each of these nodes has; a look at their rows alone."""
    if not hashes:
        return {}
    found = (
        rows.where(F.col("reason").isNull() & node_hash("node").isin(*hashes))
        .groupBy(node_hash("node").alias("hash"), F.expr("bitmap_bucket_number(seq)").alias("bucket"))
        .agg(F.expr("bitmap_count(bitmap_construct_agg(bitmap_bit_position(seq)))").alias("different"))
        .groupBy("hash")
        .agg(F.sum("different").alias("different"))
    )
    return {row["hash"]: row["different"] for row in found.collect()}


BREAKS = ("cut", "held", "paused")
MENDS = {"healed": "cut", "released": "held", "resumed": "paused"}
LINK_FAULTS = (*BREAKS, *MENDS)
"""Those that say of a link, or of the node itself, whether it works; the others meet single calls."""

Marks = Mapping[str, Mapping[str, Sequence[Row]]]


def _marks(rows: DataFrame) -> Marks:
    """Each once, in order of their sequence numbers."""
    is_of_node = F.col("kind").isin(*(kind.value for kind in NODE_KINDS))
    is_load = F.col("client").isNull() & (F.col("operation") == "SNAPSHOT")
    is_fault = (F.col("kind") == Kind.LINK_FAULT.value) & F.col("detail").isin(*LINK_FAULTS)
    is_fault |= F.col("kind") == Kind.MEMBERS_CHANGED.value
    columns = ("node", "seq", "at_ms", "kind", "peer", "message", "operation", "outcome", "detail")
    marks: defaultdict[str, defaultdict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for found in rows.where("reason is null").where(is_of_node | is_load | is_fault).select("run", *columns).collect():
        row = Row(**{name: found[name] for name in columns})
        marks[found["run"]][row.node][row.seq] = row
    return {
        run: {node: [by_seq[seq] for seq in sorted(by_seq)] for node, by_seq in by_node.items()}
        for run, by_node in marks.items()
    }


def was_observed(nodes: Sequence[Node], headers: Mapping[str, Header], wanted: Sequence[Needs]) -> Flags:
    """By what is wanted and node: was it observed of the node?"""
    of_run: defaultdict[str, list[str]] = defaultdict(list)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for g, node in enumerate(nodes):
        of_run[node.run].append(node.name)
        places[node.run].append(g)
    found = np.zeros((len(wanted), len(nodes)), np.bool_)
    for g, node in enumerate(nodes):
        others = tuple(name for name in of_run[node.run] if name != node.name)
        found[:, g] = [needs.met(headers[node.run].observed, node.name, others) for needs in wanted]
    everywhere = [i for i, needs in enumerate(wanted) if needs.everywhere]
    for run, of_nodes in places.items():
        if not headers[run].names_release:  # which failures are known of it cannot be said
            found[:, of_nodes] = False
        is_blind = headers[run].observed.covered and not {*headers[run].nodes} <= {*of_run[run]}
        for i in everywhere:
            if is_blind or not found[i, of_nodes].all():
                found[i, of_nodes] = False
    return found


def facts_of(nodes: Sequence[Node], marks: Marks, headers: Mapping[str, Header]) -> Facts:
    number = {run: position for position, run in enumerate(_runs(nodes))}
    of_run: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        of_run[node.run].append(node.name)
    nodes_of: list[list[int]] = [[] for _ in number]
    for g, node in enumerate(nodes):
        nodes_of[number[node.run]].append(g)
    decides = was_observed(nodes, headers, [invariant.needs for invariant in INVARIANTS.values()])
    conv = list(INVARIANTS).index("INV-CONV")
    own = [marks.get(node.run, {}).get(node.name, ()) for node in nodes]
    resets = [[row for row in rows if row.kind in RESETS] for rows in own]
    checks = [[row for row in rows if row.kind == Kind.CHECKPOINT] for rows in own]
    loads = [_loads(rows, headers[node.run].profile) for node, rows in zip(nodes, own, strict=True)]
    place = {(node.run, node.name): g for g, node in enumerate(nodes)}
    faults = [
        sorted(_faults(node, rows, of_run[node.run], place), key=lambda fault: (fault.peer, fault.at_ms))
        for node, rows in zip(nodes, own, strict=True)
    ]
    ordinals, live = _ordinals(nodes, checks, decides[conv], len(number), number)
    flat_ordinals = _array(ordinals)
    check_from = _offsets(checks)
    live_from = _offsets(live)
    flat_live = _array(live)
    changed = np.r_[0, (np.diff(flat_live) != 0)] if len(flat_live) else flat_live
    return Facts(
        node=np.array([node.hash for node in nodes], np.int64),
        run=np.array([number[node.run] for node in nodes], np.int64),
        nodes_from=_offsets(nodes_of),
        nodes_of=_array(nodes_of),
        last_at_ms=np.array([node.last_at_ms for node in nodes], np.int64),
        reset_from=_offsets(resets),
        reset_seq=_array([[row.seq for row in rows] for rows in resets]),
        reset_at_ms=_array([[row.at_ms for row in rows] for rows in resets]),
        reset_kind=_array([[KINDS[Kind(row.kind)] for row in rows] for rows in resets]),
        loaded_seq=_array([[load.seq for load in of_node] for of_node in loads]),
        surely_ms=_array([[load.surely_ms for load in of_node] for of_node in loads]),
        check_from=check_from,
        check_seq=_array([[row.seq for row in rows] for rows in checks]),
        check_at_ms=_array([[row.at_ms for row in rows] for rows in checks]),
        check_ordinal=flat_ordinals,
        gap_after=_gaps(flat_ordinals, check_from),
        fault_from=_offsets(faults),
        fault_at_ms=_array([[each.at_ms for each in faults_of] for faults_of in faults]),
        fault_peer=_array([[each.peer for each in faults_of] for faults_of in faults]),
        fault_breaks=np.array([each.breaks for faults_of in faults for each in faults_of], np.bool_),
        fault_left=np.array([each.left for faults_of in faults for each in faults_of], np.bool_),
        fault_back=np.array([each.back for faults_of in faults for each in faults_of], np.bool_),
        live_from=live_from,
        live=flat_live,
        changes=np.cumsum(changed).astype(np.int64),
        has_revisions=np.array([headers[run].has_revisions for run in number], np.bool_),
        sync_delay_ms=np.array([_sync_delay_ms(headers[run].profile) for run in number], np.int64),
        decides=decides,
        reports=np.array([headers[node.run].observed.reports(node.name) for node in nodes], np.bool_),
    )


class _Fault(NamedTuple):
    at_ms: int
    peer: int
    breaks: bool
    left: bool = False
    back: bool = False


def _faults(
    node: Node, marks: Sequence[Row], names: Sequence[str], place: Mapping[tuple[str, str], int]
) -> Iterator[_Fault]:
    """Of links, of the node itself (its own place), and for each member that has left its list or is back there. What
    is mended in one way may still be broken in another."""
    gone: set[str] = set()
    broken: defaultdict[int, set[str]] = defaultdict(set)
    for row in marks:
        if row.kind == Kind.LINK_FAULT:
            peer, fault = place.get((node.run, row.peer or node.name), -1), row.detail or ""
            broken[peer] = broken[peer] | {fault} if fault in BREAKS else broken[peer] - {MENDS[fault]}
            yield _Fault(row.at_ms, peer, bool(broken[peer]))
        elif row.kind == Kind.MEMBERS_CHANGED:
            listed = set((row.detail or "").split(","))
            for name in names:
                if (name not in listed) != (name in gone):
                    left, peer = name not in listed, place[node.run, name]
                    broken[peer] = broken[peer] | {"left"} if left else broken[peer] - {"left"}
                    yield _Fault(row.at_ms, peer, bool(broken[peer]), left, not left)
            gone = set(names) - listed


def _sync_delay_ms(profile: str) -> int:
    """Two seconds up to 2.1 (docs/protocol #sync-announce)."""
    return 2000 if profile.startswith(("nacos-2.0.", "nacos-2.1.")) else 1000


class _Load(NamedTuple):
    """From which row on a node may have been loaded, and from when on it surely was. 0 where nothing was asked: the
    trace does not say."""

    seq: int = 0
    surely_ms: int = 0


def _loads(marks: Sequence[Row], profile: str) -> list[_Load]:
    """For each start or stop of a node, until the next one.

    An answer to a load completes it. A refusal may do so too: in `strict`, where nothing but refusals came.
    """
    found: list[_Load] = []
    refused = True
    for row in marks:
        if row.kind in RESETS:
            found.append(_Load())
            refused = profile == "strict"
        elif not found or row.operation != "SNAPSHOT":
            continue
        elif row.kind == Kind.REQUEST_SENT and found[-1] == _Load():
            found[-1] = _Load(_NEVER, _NEVER)
        elif row.kind == Kind.REPLY_RECEIVED:
            refused = refused and row.outcome == Outcome.FAIL
            seq, surely_ms = found[-1]
            if row.outcome in (Outcome.SUCCESS, Outcome.FAIL):
                seq = min(seq, row.seq)
            if refused or row.outcome == Outcome.SUCCESS:
                surely_ms = min(surely_ms, row.at_ms)
            found[-1] = _Load(seq, surely_ms)
    return found


def _ordinals(
    nodes: Sequence[Node],
    checks: Sequence[Sequence[Row]],
    decides: Any,
    runs: int,
    number: Mapping[str, int],
) -> tuple[list[list[int]], list[list[int]]]:
    """The checkpoints of each run in order of time: their ordinals by node, and how many judged nodes have each."""
    first_ms: list[dict[str, int]] = [{} for _ in range(runs)]
    for node, rows in zip(nodes, checks, strict=True):
        for row in rows:
            at = first_ms[number[node.run]]
            at[row.detail or ""] = min(at.get(row.detail or "", _NEVER), row.at_ms)
    ordinal = [{name: o for o, name in enumerate(sorted(at, key=lambda name: (at[name], name)))} for at in first_ms]
    live = [[0] * len(at) for at in first_ms]
    found = []
    for g, (node, rows) in enumerate(zip(nodes, checks, strict=True)):
        run = number[node.run]
        own = [ordinal[run][row.detail or ""] for row in rows]
        found.append(own)
        for each in own if decides[g] else ():
            live[run][each] += 1
    return found, live


def _gaps(ordinals: Integers, offsets: Integers) -> Integers:
    """For each checkpoint of a node the position after the last one that follows it without a gap."""
    breaks = np.ones(len(ordinals), np.bool_)
    breaks[:-1] = np.diff(ordinals) != 1
    breaks[offsets[1:][offsets[1:] > 0] - 1] = True
    ends = np.flatnonzero(breaks) + 1
    return ends[np.searchsorted(ends, np.arange(len(ordinals)), side="right")] if len(ordinals) else ordinals


def _offsets(lists: Sequence[Sequence[Any]]) -> Integers:
    return np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)


def _array(lists: Sequence[Sequence[int]]) -> Integers:
    return np.array([value for each in lists for value in each], np.int64)
