"""The input of all invariants: the rows of whole clients in order, each with the state of its node just before it.

A *copy* is the state of one client on one node between two starts or stops of the node. Rows are sorted by client,
node and sequence number, so the rows of a copy are adjacent, and `row` numbers all of them. A column "before" a row is
the number of an earlier row of the same copy; its columns are fetched by that number:

    row kind              digest   begin state held  is_native     `begin`   first row of the copy
      0 client_connected  (empty)      0     -  -    no            `state`   latest earlier row with the held content
      1 client_changed    X            0     0  empty yes          `held`    that content; null: nothing
      2 request_sent                   0     1  X    yes           `is_native`  held by the client's own connection
      3 client_changed    Y            0     1  X    yes
    ─── node_stopped ─────────────────────────────────────────
      4 replica_applied   Y            4     -  -    no            a new copy: nothing is held
      5 observed          Y            4     4  Y    no

Columns of `rows`: run, client, node, seq, at_ms, kind, peer, message, owned, revision, digest, outcome, detail as in
the trace, `operation` as written there, and

    row, client_no          numbers of the row and of its (run, client)
    g, to                   numbers of the node and of the peer (null: not a node of the run)
    op                      the operation, ADD as CHANGE
    copy, begin             number of (client, node), whatever the life; first row of the same life
    life, life_end_ms, is_ended   the node's life (`Cluster.lives`), when it ends, and whether by a stop or start
    check                   place in `Cluster.checks` of the node's next checkpoint; `end_check`: of the first one after
                            this life
    is_state, content       whether the row sets the held content; and that content
    state, held, held_revision, is_native     as above
    native_from             the latest row before which the copy was not native (then this row is the first of it)
    is_connection           a client of a connection, and not an ip:port client of the HTTP API
    has_revisions, counts_batches, delay_ms, retry_ms, late_ms, rounds_ms, apart_ms, moved_ms
                            of the run (`Cluster.by_run`)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import polars as pl

from distro_spark.cluster import SEQ_MAX, Cluster, key
from distro_spark.expressions import (
    after,
    before,
    c,
    claims,
    ended,
    in_copy,
    is_gone,
    is_own,
    neighbour,
    of_row,
    sent,
    until,
)
from distro_spark.history import FIELDS
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import GONE_KINDS, STATE_KINDS, Kind, Outcome

KIND = pl.Enum([kind.value for kind in Kind])
OUTCOME = pl.Enum([outcome.value for outcome in Outcome])
OPERATION = pl.Enum(["CHANGE", "DELETE", "VERIFY", "SNAPSHOT", "QUERY"])
COLUMNS = ("run", "client", *FIELDS)
SORTED = ("run", "client", "node", "seq")

NOTHING = pl.DataFrame(schema={"g": pl.Int64})
"""What an invariant finds where nothing is wrong."""


@dataclass(frozen=True)
class Timeline:
    rows: pl.DataFrame
    cluster: Cluster

    def of(self, frame: pl.DataFrame, row: str, *same: str, **columns: str) -> pl.DataFrame:
        """Add columns of the rows whose numbers are in `row`: under their own names, and name=column."""
        named = {**{name: name for name in same}, **columns}
        return frame.with_columns(**{name: self.rows[column].gather(frame[row]) for name, column in named.items()})

    def having(self, condition: pl.Expr, *columns: str, **named: str | pl.Expr) -> pl.DataFrame:
        """The rows for which the condition holds: these columns, and name=expression, which sees all rows."""
        rows = self.rows.lazy().with_columns(**named).filter(condition).select(*columns, *named)
        return rows.collect().rechunk()  # Polars 2.1 fails to format columns of unequal chunks

    def lasting(self, condition: pl.Expr, ends: pl.Expr, *columns: str) -> pl.DataFrame:
        """As `having`, and until when what the row shows lasts: `end`, the next row of the copy for which `ends` holds,
        and its time `end_ms`, or that of the end of the copy's life."""
        rows = self.having(condition, *columns, life_ms="life_end_ms", end=after(ends))
        return self.of(rows, "end", end_ms="at_ms").with_columns(c("end_ms").fill_null(c("life_ms")))

    def moments(self, *columns: str, **latest: pl.Expr) -> pl.LazyFrame:
        """Each row, as the moment just before it, and the end of each life of a copy, as the moment after its last row:
        these columns, now_ms, is_held and is_native then, and the latest earlier row for which each condition holds."""
        rows = self.rows.lazy().with_columns(**{name: until(condition) for name, condition in latest.items()})
        each = rows.select(
            *columns,
            "is_native",
            now_ms="at_ms",
            is_held=c("held").is_not_null(),
            **{name: in_copy(c(name).shift(1)) for name in latest},
        )
        ends = rows.filter(c("row") + 1 == c("next_begin")).select(
            *columns,
            is_native=(c("is_native") | is_own) & ~is_gone,
            now_ms="life_end_ms",
            is_held=pl.when("is_state").then(c("content").is_not_null()).otherwise(c("held").is_not_null()),
            **{name: in_copy(c(name)) for name in latest},
        )
        return pl.concat([each, ends])

    def judged(self, name: str) -> pl.Expr:
        """Was enough observed of the node `g` for this invariant?"""
        return self._is_one_of(self.cluster.judged[name])

    @cached_property
    def reports(self) -> pl.Expr:
        """Does the node `g` report every change of its state itself?"""
        return self._is_one_of([g for g, does in enumerate(self.cluster.reports) if does])

    def _is_one_of(self, nodes: Collection[int]) -> pl.Expr:
        return pl.lit(value=True) if len(nodes) == len(self.cluster.names) else c("g").is_in(list(nodes))

    def begin_seq(self, asked: pl.DataFrame) -> pl.Series:
        """For each (g, seq) the number with which the node's life began."""
        return self.cluster.in_lives(asked.select("g", "seq"))["begin_seq"]

    @cached_property
    def calls(self) -> pl.DataFrame:
        """Rows of callers, by copy and peer: row, copy, begin, client_no, g, to, seq, at_ms, op, kind, outcome,
        message, is_sent; `first`: the place here of the first one of this copy to this peer."""
        columns = ("row", "client_no", "copy", "begin", "g", "to", "seq", "at_ms", "op", "kind", "outcome", "message")
        calls = self.having((sent | ended) & c("to").is_not_null(), *columns)
        link = c("copy") * len(self.cluster.names) + c("to")  # one number: rows are in the order of copy and row
        calls = calls.sort(link, maintain_order=True).with_row_index("place").with_columns(c("place").cast(pl.Int64))
        new = (c("begin") != c("begin").shift()) | (c("to") != c("to").shift())
        first = pl.when(new.fill_null(value=True)).then("place").forward_fill()
        return calls.with_columns(first=first, is_sent=sent)

    @cached_property
    def stretches(self) -> pl.DataFrame:
        """The times in which a node's view of a client stayed the same: client_no, copy, g, life, view (null: nothing
        that a subscriber gets), row, seq, at_ms, revision, next_seq and next_ms; between them lie its checkpoints from
        `check` until before `next_check`."""
        columns = ("client_no", "copy", "g", "life", "row", "seq", "at_ms", "revision", "begin", "check", "end_check")
        states = self.having(c("is_state"), *columns, view=pl.when(c("content") != NOTHING_PUBLISHED).then("content"))
        states = states.filter(c("view").ne_missing(neighbour("view", 1, "begin")))
        return states.select(
            "client_no",
            "copy",
            "g",
            "life",
            "view",
            "row",
            "seq",
            "at_ms",
            "revision",
            "check",
            next_check=pl.coalesce(neighbour("check", -1, "begin"), "end_check"),
            next_row=neighbour("row", -1, "begin"),
        )

    @cached_property
    def cache(self) -> dict[str, pl.DataFrame]:
        """What several invariants use, by name."""
        return {}

    @cached_property
    def owners(self) -> pl.DataFrame:
        """By client the nodes that act as its owner, the owner first: client_no, g, claim (its first), claims, rank."""
        by_node = self.rows.lazy().filter(claims).group_by("client_no", "g")
        claimed = by_node.agg(
            c("row").min().alias("claim"),
            pl.len().alias("claims"),
            is_own.any().alias("is_own"),
            c("at_ms").first().alias("since_ms"),
        )
        order = claimed.collect().sort("client_no", c("is_own").not_(), "since_ms", "g")
        return order.with_columns(rank=pl.int_range(pl.len()).over("client_no"))

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """By client_no the first and last place of its rows."""
        begins = self.rows.select(pl.arg_where((c("client_no") != c("client_no").shift()).fill_null(value=True)))
        places = [*begins.to_series(), self.rows.height]
        return list(pairwise(places))

    @cached_property
    def clients(self) -> list[str]:
        """By client_no."""
        return self.rows["client"].gather([begin for begin, _ in self.spans]).to_list()

    def latest(self, asked: pl.DataFrame, condition: pl.Expr) -> pl.Series:
        """For each (client_no, g, seq) the latest row of that node before it for which the condition holds."""
        clients = c("client_no").is_in(asked["client_no"].unique().to_list())
        rows = self.having(clients & condition, "client_no", "g", "seq", "row").sort("seq")
        wanted = asked.select("client_no", "g", "seq").with_row_index("place").sort("seq")
        found = wanted.join_asof(
            rows, on="seq", by=["client_no", "g"], check_sortedness=False, allow_exact_matches=False
        )
        return found.sort("place")["row"]

    def name(self, node: str) -> pl.Expr:
        """The name of the node whose number is in that column."""
        return pl.lit(self.cluster.nodes["node"]).gather(c(node))


def first_of(frame: pl.DataFrame, by: str | Sequence[str], *order: str) -> pl.DataFrame:
    """Of the rows with the same values in `by` the first in that order."""
    return frame.sort(order).unique(by, keep="first", maintain_order=True)


def swept(steps: pl.DataFrame, by: Sequence[str], at: str, *counts: str) -> pl.DataFrame:
    """From what is added to some counts at some times: the counts from each time on, and `until`, the next time."""
    points = steps.group_by(*by, at).agg(c(counts).sum()).sort(*by, at)
    return points.with_columns(c(counts).cum_sum().over(by), until=c(at).shift(-1).over(by))


def where(frame: pl.DataFrame, holds: Callable[..., bool], *columns: str, but_not: bool = False) -> pl.DataFrame:
    """The rows for whose values that question holds; `but_not`: the others. For few candidates."""
    found = [holds(*values) != but_not for values in frame.select(columns).iter_rows()]
    return frame.filter(pl.Series(found, dtype=pl.Boolean))


def timeline(rows: pl.DataFrame, cluster: Cluster) -> Timeline:
    """`rows` of whole clients with `COLUMNS`, `SORTED`."""
    return Timeline(_with_past(_numbered(rows, cluster)), cluster)


def _numbered(rows: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    new = ((c("client") != c("client").shift()) | (c("run") != c("run").shift())).fill_null(value=True)
    frame = rows.select(COLUMNS).with_columns(
        c("kind").cast(KIND),
        c("outcome").cast(OUTCOME),
        op=c("operation").replace({"ADD": "CHANGE"}).cast(OPERATION, strict=False),
        client_no=new.cum_sum().cast(pl.Int64) - 1,
        new_copy=new | (c("node") != c("node").shift()),
    )
    is_doubled = ~c("new_copy") & (c("seq") == c("seq").shift()).fill_null(value=False)
    if frame.select(is_doubled.any()).item():
        frame = frame.filter(~is_doubled)
    frame = frame.with_columns(copy=c("new_copy").cum_sum().cast(pl.Int64) - 1)
    of_copies = _of_copies(frame, cluster)
    if of_copies["g"].has_nulls():  # a table that has grown since its nodes were surveyed
        return _numbered(frame.select(COLUMNS).filter(of_copies["g"].is_not_null()), cluster)
    frame = frame.with_columns(of_copies)
    lives, checks = cluster.lives, cluster.checks
    check_keys = checks.select(key()).to_series()
    place = frame.select(key()).to_series()
    life = lives.select(key("g", "begin_seq")).to_series().search_sorted(place, side="left").cast(pl.Int64) - 1
    next_life = lives.select(key("g", "begin_seq").shift(-1).fill_null(len(cluster.names) * SEQ_MAX)).to_series()
    ends = check_keys.search_sorted(next_life, side="left")
    return frame.with_columns(
        life=life,
        life_end_ms=lives["end_ms"].gather(life),
        is_ended=lives["is_ended"].gather(life),
        check=check_keys.search_sorted(place, side="left").cast(pl.Int64),
        end_check=ends.cast(pl.Int64).gather(life),
    )


def _of_copies(frame: pl.DataFrame, cluster: Cluster) -> pl.DataFrame:
    """g, to, and the columns of `Cluster.by_run`. Names are compared once for each copy, and peers by number."""
    by_run = cluster.by_run.with_row_index("run_no")
    nodes = cluster.nodes.select("run", "node", "g").join(by_run, "run")
    copies = (
        frame.filter("new_copy").select("run", "node").join(nodes, ["run", "node"], how="left", maintain_order="left")
    )
    found = copies.drop("run", "node")[frame["copy"]]
    names = pl.Enum(nodes["node"].unique().sort())
    number = c("run_no").cast(pl.Int64) * len(names.categories)
    peers = nodes.select(peer=number + c("node").cast(names).to_physical(), to="g")
    found = found.with_columns(peer=number + frame["peer"].cast(names, strict=False).to_physical())
    return found.join(peers, "peer", how="left", maintain_order="left").drop("run_no", "peer")


def _with_past(rows: pl.DataFrame) -> pl.DataFrame:
    new_life = c("new_copy") | (c("life") != c("life").shift()).fill_null(value=True)
    is_state = c("kind").is_in([kind.value for kind in STATE_KINDS])
    return (
        rows.lazy()
        .with_columns(
            row=pl.int_range(pl.len()),
            is_state=is_state,
            content=pl.when(is_state & ~c("kind").is_in([kind.value for kind in GONE_KINDS])).then("digest"),
            new_life=new_life,
            is_connection=~c("client").str.contains("#", literal=True),
        )
        .with_columns(begin=pl.when("new_life").then("row").forward_fill())
        .with_columns(
            next_begin=pl.when("new_life").then("row").shift(-1).backward_fill().fill_null(pl.len()),
            state=before(c("is_state")),
            own=before(is_own & c("content").is_not_null()),
            gone=before(is_gone),
        )
        .with_columns(
            held=of_row("state", "content"),
            held_revision=pl.when(of_row("state", "content").is_not_null()).then(of_row("state", "revision")),
            is_native=c("own").is_not_null() & (c("own") > c("gone").fill_null(-1)),
        )
        .with_columns(native_from=until(~c("is_native")))
        .drop("new_copy", "new_life")
        .collect()
    )


def sorted_parts(rows: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
    """The rows about clients as they are `SORTED`, cut where a client ends into equal parts of about that size. A file
    has the rows of a node in the order of their numbers, so numbers are compared only where they are not in order."""
    rows = rows.select(COLUMNS).rechunk()  # rows are fetched from one chunk ten times as fast as from many
    client, copy = _numbers(rows, SORTED[:2]), _numbers(rows, SORTED[:3])
    order = copy.to_frame().select(pl.arg_sort_by(copy.name, maintain_order=True)).to_series()[copy.null_count() :]
    begins = (client.gather(order).diff() != 0).arg_true()
    number, cuts = max(1, round(len(order) / size)), [0]
    for begin in begins.to_list() if number > 1 else ():
        if begin - cuts[-1] >= len(order) / number:
            cuts.append(begin)
    for one, end in pairwise([*cuts, len(order)]):
        places = order[one:end]
        part = rows.select(pl.all().gather(places))
        is_out_of_order = (copy.gather(places).diff() == 0) & (part["seq"].diff() < 0)
        yield part.sort(SORTED) if is_out_of_order.any() else part


def _numbers(rows: pl.DataFrame, columns: Iterable[str]) -> pl.Series:
    """For each row a number that is in the order of these columns, null where one of them is."""
    found = pl.Series("number", [0], pl.Int64).new_from_index(0, len(rows))
    for name in columns:
        names = rows[name].drop_nulls().unique().sort()
        found = found * len(names) + rows[name].cast(pl.Enum(names)).to_physical()
    return found
