"""The facts about the nodes of all runs, before any client is judged: their lives, checkpoints, loads and faults.

They are small, so one process holds them and every task of Spark receives them with its function. Frames are joined
with rows; dictionaries answer questions of one candidate violation about one link. A node has a number `g`; a *life* is
the time between two starts or stops of a node, and has a number of its own over all nodes:

    node a   ──┬─ life 0 ─┬──── life 1 ────┬─ life 2 ─…      rows with the same (client, node, life) are one copy
             begin     node_started     node_stopped
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from uuid import uuid4

import polars as pl

from distro_model.release import STRICT
from distro_model.rules.owners import place, tag_of
from distro_spark.history import (
    AT_MS,
    BREAKS,
    CALLS,
    LEASE_CHECK_PERIOD_MS,
    LINK_FAULTS,
    NEVER,
    Fault,
    Node,
    Row,
    faults_of,
)
from distro_spark.needs import Needs
from distro_traces.event import RESET_KINDS, Kind, Outcome
from distro_traces.header import Header

SEQ_MAX = 2**40
"""Sequence numbers are below: a node's number and a sequence number make one sortable number."""

EXCUSED_MS = 45_000
"""A member may count as unreachable for this time after its start or the end of a fault."""

VERIFIED_WITHIN_MS = {"virtual": 5_000 + 1_000, "wall": 3 * 5_000 + 2_000}
"""A round of verification and some margin. The threads of real servers run late: two rounds more."""

SENT_WITHIN_MS = {"virtual": 300, "wall": 1_000}
"""Due tasks are taken every 100 ms (docs/protocol #sync-merge); a busy machine is late."""

APART_MS = {"virtual": 5_000 - 300, "wall": 1_000}
"""Between two verifies of a client with one member; a round that was late may be followed by one that is not."""

UNCOUNTED = ("nacos-2.1.2", "nacos-2.2.")
"""Releases in which a batch does not add one to the revision (B18)."""

SLOW = ("nacos-2.0.", "nacos-2.1.")

MARK_COLUMNS = ("run", "node", "seq", "at_ms", "kind", "peer", "message", "operation", "outcome", "detail")
MEASURES = ("rows", "last_seq", "distinct", "last_ms", "client_rows", "deletes")
"""Of a node: rows, the highest sequence number, how many different ones, the last time, rows about clients, DELETEs
sent."""


IS_MARK = f"""client IS NULL AND (
    kind IN ('{Kind.NODE_STARTED}', '{Kind.NODE_STOPPED}', '{Kind.CHECKPOINT}', '{Kind.MEMBERS_CHANGED}')
    OR operation = 'SNAPSHOT' AND kind IN ('{"', '".join(CALLS)}')
    OR kind = '{Kind.LINK_FAULT}' AND detail IN ('{"', '".join(LINK_FAULTS)}'))"""
IS_DELETION = f"kind = '{Kind.REQUEST_SENT}' AND operation = 'DELETE'"
"""Conditions of rows in SQL, for both engines: about a node and needed to judge clients; the sending of a DELETE."""


def key(node: str | pl.Expr = "g", seq: str = "seq") -> pl.Expr:
    return (pl.col(node) if isinstance(node, str) else node).cast(pl.Int64) * SEQ_MAX + pl.col(seq)


def hash_owner_in(listed: Sequence[str], client: str) -> str:
    """Whom the hash of a client of the HTTP API names among these members (docs/protocol #owner-place)."""
    members = sorted(listed)
    return members[place(tag_of(client), len(members))]


@dataclass(frozen=True)
class Cluster:
    """`nodes`: run, node, g and `MEASURES`. `marks`: `MARK_COLUMNS`, g, and the number `mark` of each (-1 - its
    place), by g and seq."""

    nodes: pl.DataFrame
    marks: pl.DataFrame
    headers: Mapping[str, Header]
    needs: Mapping[str, Needs]
    """By invariant, and by name of a measure."""
    aside: Mapping[str, int] = field(default_factory=dict)
    """By run the rows that are no events. So many others of that run may lack."""

    def __reduce__(self) -> tuple[Callable[[str, bytes], Cluster], tuple[str, bytes]]:
        return _received, self._sent

    @cached_property
    def _sent(self) -> tuple[str, bytes]:
        return uuid4().hex, pickle.dumps([getattr(self, each.name) for each in fields(self)])

    @cached_property
    def judged(self) -> Mapping[str, frozenset[int]]:
        """For each entry of `needs`, the nodes of which enough was observed."""
        found: dict[str, set[int]] = {name: set() for name in self.needs}
        for run, members in self.of_run.items():
            header, names = self.headers[run], {g: self.names[g] for g in members}
            if not header.names_release:
                continue  # its known failures are unknown
            for name, needs in self.needs.items():
                others = {g: tuple(other for other in names.values() if other != names[g]) for g in members}
                met = {g for g in members if needs.met(header.observed, names[g], others[g])}
                if not (needs.everywhere and (run in self.partial or len(met) < len(members))):
                    found[name] |= met
        return {name: frozenset(nodes) for name, nodes in found.items()}

    @cached_property
    def partial(self) -> frozenset[str]:
        """The runs without any row of a node that their header names."""
        found = {run: {self.names[g] for g in members} for run, members in self.of_run.items()}
        return frozenset(run for run, names in found.items() if not names.issuperset(self.headers[run].nodes))

    def whole(self, name: str) -> list[str]:
        """The runs of which enough was observed of every node for that entry of `needs`."""
        return [run for run, nodes in self.of_run.items() if self.judged[name].issuperset(nodes)]

    @cached_property
    def missing(self) -> Mapping[str, int]:
        """By run how many rows are missing, by gaps in the sequence numbers, beyond those that were set aside."""
        gaps = self.nodes.group_by("run").agg((pl.col("last_seq") - pl.col("distinct")).sum()).iter_rows()
        return {run: gap - self.aside.get(run, 0) for run, gap in gaps if gap > self.aside.get(run, 0)}

    def with_gaps(self) -> Cluster:
        """The same, but the absence of a row in a run with missing rows proves nothing, whatever its header says."""
        headers = {run: each.with_gaps() if run in self.missing else each for run, each in self.headers.items()}
        return replace(self, headers=headers)

    @property
    def doubled(self) -> int:
        """How many rows have the node and the sequence number of another one."""
        return int((self.nodes["rows"] - self.nodes["distinct"]).sum())

    @cached_property
    def names(self) -> list[str]:
        return self.nodes["node"].to_list()

    @cached_property
    def runs(self) -> list[str]:
        """By node."""
        return self.nodes["run"].to_list()

    @cached_property
    def of_run(self) -> Mapping[str, Sequence[int]]:
        found: defaultdict[str, list[int]] = defaultdict(list)
        for g, run in enumerate(self.runs):
            found[run].append(g)
        return found

    @cached_property
    def last_ms(self) -> list[int]:
        return self.nodes["last_ms"].to_list()

    @cached_property
    def reports(self) -> list[bool]:
        """By node: whether it reports every change of its state itself, expired leases included."""
        return [self.headers[run].observed.reports(node) for run, node in zip(self.runs, self.names, strict=True)]

    @cached_property
    def by_run(self) -> pl.DataFrame:
        """run, has_revisions, counts_batches (they add one to a revision), delay_ms and retry_ms (after which a change
        and a failed sync are sent), late_ms (by how much later a sync may be sent), rounds_ms and apart_ms (until when
        the next verify must have been sent, and before which it may not), moved_ms (the first time at which ownership
        by hash may have moved: a member list changed, or a member might be taken for dead)."""
        moves = pl.col("kind").is_in([Kind.MEMBERS_CHANGED, Kind.NODE_STOPPED]) | pl.col("detail").is_in(BREAKS)
        moved = dict(self.marks.filter(moves).group_by("run").agg(pl.col("at_ms").min()).iter_rows())
        columns = {"run": pl.String(), "has_revisions": pl.Boolean(), "counts_batches": pl.Boolean()}
        columns |= dict.fromkeys(("delay_ms", "retry_ms", "late_ms", "rounds_ms", "apart_ms", "moved_ms"), pl.Int64())
        rows = []
        for run in self.of_run:
            header, profile = self.headers[run], self.headers[run].profile
            by_clock = (of[header.clock] for of in (SENT_WITHIN_MS, VERIFIED_WITHIN_MS, APART_MS))
            delays = (sync_delay_ms(profile), retry_delay_ms(profile), *by_clock, moved.get(run, NEVER))
            rows.append((run, header.has_revisions, not profile.startswith(UNCOUNTED), *delays))
        return pl.DataFrame(rows, columns, orient="row")

    @cached_property
    def _lives(self) -> pl.DataFrame:
        begin = self.nodes.select("g", begin_seq=pl.lit(0, pl.Int64), begin_ms=pl.lit(0, pl.Int64))
        resets = self.marks.filter(pl.col("kind").is_in(RESET_KINDS))
        resets = resets.select("g", begin_seq="seq", begin_ms="at_ms", begin_kind="kind", begin_mark="mark")
        lives = pl.concat([begin, resets], how="diagonal").sort("g", "begin_seq")
        later = pl.col("begin_ms").shift(-1).over("g")
        last = pl.Series("last_ms", self.last_ms, dtype=pl.Int64).gather(lives["g"])
        return lives.with_columns(
            is_ended=later.is_not_null(), end_ms=pl.coalesce(later, last), life=pl.int_range(pl.len())
        )

    def in_lives(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of nodes (g, seq), each with the columns of the life that it is in, but for the loads."""
        wanted = rows.with_row_index("place").sort("seq")
        lives = self._lives.sort("begin_seq")
        found = wanted.join_asof(
            lives, left_on="seq", right_on="begin_seq", by="g", check_sortedness=False, coalesce=False
        )
        return found.sort("place").drop("place")

    @cached_property
    def lives(self) -> pl.DataFrame:
        """life, g, begin_seq, begin_ms, begin_kind, begin_mark, end_ms, is_ended, loaded_seq, loaded_by_ms, of all
        nodes in order. `loaded_seq`: from which row on the node may have been loaded, `loaded_by_ms`: from when on it
        certainly was; 0 where nothing was asked, so that the trace does not say.

        An answer to a load completes it. In `strict`, a refusal does so too if only refusals were received."""
        kind, outcome = pl.col("kind"), pl.col("outcome")
        strict = [run for run in self.of_run if self.headers[run].profile == STRICT]
        calls = self.in_lives(self.marks.filter(operation="SNAPSHOT")).filter(pl.col("begin_mark").is_not_null())
        calls = calls.filter((kind == Kind.REQUEST_SENT).cum_sum().over("life") > 0)
        ended = kind == Kind.REPLY_RECEIVED
        is_refused = pl.col("run").is_in(strict) & (outcome == Outcome.FAIL)
        loads = calls.group_by("life").agg(
            loaded_seq=pl.col("seq").filter(ended & outcome.is_in([Outcome.SUCCESS, Outcome.FAIL])).min(),
            loaded_by_ms=pl.min_horizontal(
                pl.col("at_ms").filter(ended & (outcome == Outcome.SUCCESS)).min(),
                pl.when(is_refused.filter(ended).first()).then(pl.col("at_ms").filter(ended).first()),
            ),
        )
        loads = loads.with_columns(pl.col("loaded_seq", "loaded_by_ms").fill_null(NEVER))
        lives = self._lives.join(loads, "life", how="left", maintain_order="left")
        return lives.with_columns(pl.col("loaded_seq", "loaded_by_ms").fill_null(0))

    @cached_property
    def checks(self) -> pl.DataFrame:
        """check (its place here), g, run, seq, at_ms, number (detail), ordinal (of the run, in order of time), mark."""
        checks = self.marks.filter(kind="checkpoint")
        by_run = checks.group_by("run", "detail").agg(pl.col("at_ms").min()).sort("run", "at_ms", "detail")
        by_run = by_run.with_columns(ordinal=pl.int_range(pl.len()).over("run")).drop("at_ms")
        found = checks.join(by_run, ["run", "detail"], nulls_equal=True, maintain_order="left")
        found = found.select("g", "run", "seq", "at_ms", "ordinal", "mark", number=pl.col("detail").fill_null(""))
        return found.with_columns(check=pl.int_range(pl.len()))

    @cached_property
    def unreached(self) -> Set[tuple[str, int]]:
        """Runs and ordinals of the checkpoints of which a node that was up then has no row."""
        reached = self.checks.group_by("run", "ordinal").agg("g", at_ms=pl.col("at_ms").min())
        return {
            (run, ordinal)
            for run, ordinal, nodes, at_ms in reached.iter_rows()
            if any(self.of_node[g].is_up(at_ms) for g in {*self.of_run[run]} - {*nodes})
        }

    @cached_property
    def faults(self) -> Mapping[tuple[int, int], Sequence[Fault]]:
        """By node and peer, in order of time; of a node with itself its pauses."""
        found: defaultdict[tuple[int, int], list[Fault]] = defaultdict(list)
        for g, node in enumerate(self.of_node):
            for peer, fault in faults_of(g, node.rows, {self.names[each]: each for each in self.of_run[self.runs[g]]}):
                found[g, peer].append(fault)
        return {link: sorted(faults, key=AT_MS) for link, faults in found.items()}

    @cached_property
    def of_node(self) -> Sequence[Node]:
        found: list[list[Row]] = [[] for _ in self.names]
        for g, row in zip(self.marks["g"], self.mark_rows, strict=True):
            found[g].append(row)
        return [Node(rows) for rows in found]

    @cached_property
    def mark_rows(self) -> list[Row]:
        names = MARK_COLUMNS[1:]
        return [Row(**dict(zip(names, values, strict=True))) for values in self.marks.select(names).iter_rows()]

    @cached_property
    def deleters(self) -> Mapping[str, frozenset[str]]:
        """By run the nodes that send DELETEs: in this run, or in another one of the same target and profile.

        A short run may hold no DELETE but those that a known defect swallows."""
        builds = {run: (self.headers[run].target, self.headers[run].profile) for run in self.of_run}
        found = defaultdict[tuple[str, str], set[str]](set)
        for run, node, deletes in self.nodes.select("run", "node", "deletes").iter_rows():
            if deletes:
                found[builds[run]].add(node)
        return {run: frozenset(found[build]) for run, build in builds.items()}

    def without(self, runs: Collection[str]) -> Cluster:
        """Of the other runs alone."""
        if not runs:
            return self
        nodes = self.nodes.filter(~pl.col("run").is_in(list(runs)))
        marks = self.marks.filter(~pl.col("run").is_in(list(runs)))
        return cluster_of(nodes.drop("g"), marks.drop("g"), self.headers, self.needs, self.aside)

    def own(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of its runs."""
        return rows if len(self.of_run) == len(self.headers) else rows.filter(pl.col("run").is_in([*self.of_run]))

    # Questions about one link, for few candidates

    def is_excused(self, node: int, peer: int, since_ms: int, until_ms: int) -> bool:
        """May the peer have been down for the node, at some time in between?"""
        from_ms = since_ms - EXCUSED_MS
        if self.last_ms[peer] < until_ms:
            return True
        for g in (node, peer):
            resets = self.of_node[g].resets
            at = bisect_left(resets, from_ms, key=AT_MS)
            if (at and resets[at - 1].kind == Kind.NODE_STOPPED) or (at < len(resets) and resets[at].at_ms <= until_ms):
                return True
        for link in ((node, peer), (peer, node), (node, node), (peer, peer)):
            faults = self.faults.get(link, ())
            at = bisect_left(faults, from_ms, key=AT_MS)
            if (at < len(faults) and faults[at].at_ms <= until_ms) or (at and faults[at - 1].is_broken):
                return True
        return False

    def has_left(self, node: int, peer: int, from_ms: int, until_ms: int) -> bool:
        """Did the peer leave the node's list in this time? Then its failed calls are dropped."""
        return any(fault.left and from_ms <= fault.at_ms <= until_ms for fault in self.faults.get((node, peer), ()))

    def is_listed(self, node: int, peer: int, left_ms: int, due_ms: int) -> bool:
        """Is the peer in the node's list before and after that instant, and until then?"""
        listed = True
        for fault in self.faults.get((node, peer), ()):
            if fault.at_ms > due_ms:
                break
            listed = (listed or (fault.back and fault.at_ms < left_ms)) and not fault.left
        return listed

    def may_own(self, node: int, client: str) -> bool:
        """Whether a client of a connection is at the node, or the hash of one of the HTTP API names the node among the
        members that it listed when it started (docs/protocol #owner-place), if that is recorded."""
        if "#" not in client:
            return True
        started = (row for row in self.of_node[node].lists if row.kind == Kind.NODE_STARTED)
        listed = next((str(row.detail).split(",") for row in started), None)
        return listed is None or hash_owner_in(listed, client) == self.names[node]

    def is_over(self, node: int, due_ms: int, now_ms: int, check_ms: int, lasts_ms: int) -> bool:
        """Must the lease that ended then have ended by now? A paused node checks its leases when it resumes. `strict`
        lets them begin anew if it may have missed a whole check (docs/protocol #lease-pause)."""
        is_paused, paused_ms = False, 0
        begins_anew = self.headers[self.runs[node]].profile == STRICT
        for fault in self.faults.get((node, node), ()):
            if fault.at_ms > due_ms and not is_paused:
                break
            if fault.is_broken and not is_paused:
                paused_ms = fault.at_ms
            elif is_paused and not fault.is_broken:
                is_anew = begins_anew and fault.at_ms - paused_ms > LEASE_CHECK_PERIOD_MS
                due_ms = max(due_ms, fault.at_ms + (lasts_ms if is_anew else check_ms))
            is_paused = fault.is_broken
        return not is_paused and now_ms > due_ms


_IN_WORKER: dict[str, Cluster] = {}


def _received(token: str, content: bytes) -> Cluster:
    """The cluster that a task brings with it. A worker keeps the last one, with all that was derived from it: in a run
    of 100 million rows this takes longer than to judge the rows of a task."""
    if token not in _IN_WORKER:
        _IN_WORKER.clear()
        _IN_WORKER[token] = Cluster(*pickle.loads(content))
    return _IN_WORKER[token]


def cluster_of(
    nodes: pl.DataFrame,
    marks: pl.DataFrame,
    headers: Mapping[str, Header],
    needs: Mapping[str, Needs],
    aside: Mapping[str, int],
) -> Cluster:
    """`nodes`: run, node and `MEASURES`; `marks`: `MARK_COLUMNS`, each row once."""
    nodes = nodes.sort("run", "node").with_columns(g=pl.int_range(pl.len(), dtype=pl.Int64))
    marks = marks.select(MARK_COLUMNS).join(nodes.select("run", "node", "g"), ["run", "node"], maintain_order="left")
    marks = marks.sort("g", "seq").with_columns(mark=-1 - pl.int_range(pl.len(), dtype=pl.Int64))
    return Cluster(nodes, marks, headers, needs, aside)


def sync_delay_ms(profile: str) -> int:
    """Two seconds up to 2.1 (docs/protocol #sync-announce)."""
    return 2000 if profile.startswith(SLOW) else 1000


def retry_delay_ms(profile: str) -> int:
    """Five seconds up to 2.1 (docs/protocol #sync-retry)."""
    return 5000 if profile.startswith(SLOW) else 3000
