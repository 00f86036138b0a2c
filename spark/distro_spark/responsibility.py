"""The members responsible for each client, over time.

A member claims a client while it holds it as its own, until it holds it no more, holds it as a copy, or is started or
stopped; and for two rounds of verification after it has sent a request that only an owner sends. Only such requests
count for the clients by `ip:port#…`, which change their owner without a message (docs/protocol #owner-place). A
client's time begins with the first claim and ends when no member holds it any more.

    a  ├── claims ──┤            ├ claims …      one claimer, none (no owner renews copies), one,
    b                       ├────────┤           two for a while, one
       one          none    one  two  one

Each node computes the owner of such a client from its hash and its own member list. The trace shows the list (the
node's own `node_started` and `members_changed`), but not the members that the node lists as DOWN. These are certain
only in *settled* time: no list changed, no node started or stopped, and no link or node was broken, for `SETTLED_MS`.
Until then responsibility may be handed over, and nothing is judged:

    a stops           a starts             a-b cut    healed
    ──┼── hand-over ──┼── hand-over ──┬────┼──────────┼── hand-over ──┬──────
                                      └────┘ settled                  └ settled
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from distro_model.release import STRICT
from distro_model.rules.owners import MODULUS, java_hash, tag_of
from distro_spark.cluster import Cluster
from distro_spark.expressions import c, is_change, is_gone, is_verify, sent
from distro_spark.history import MENDS, NEVER, Row
from distro_spark.needs import Needs
from distro_spark.result import ClaimedInterval, Responsibility
from distro_spark.timeline import Timeline, first_of, swept
from distro_traces.content import NOTHING_PUBLISHED
from distro_traces.event import RESET_KINDS, Kind

SETTLED_MS = 60_000
"""Four failing reports until a member is DOWN, or one until it is UP again, then two rounds of verification."""

LISTS = (Kind.NODE_STARTED, Kind.MEMBERS_CHANGED)

VIEWS = {
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
    """In `VIEWS`, of the nodes whose lists name no node that the trace does not know."""
    rows = [row for run in runs for row in _of_run(cluster, run)]
    return pl.DataFrame(rows, VIEWS, orient="row")


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


ROUNDS_MS = 11_000
"""Two rounds of verification, 5 s apart, and a tolerance."""

INTERVALS_MAX = 200
CONNECTION, IP_PORT = "claims of a connection", "claims by ip:port"
BY_CONNECTION, BY_HASH = "owners by connection", "owners by hash"
MEASURED = {
    CONNECTION: Needs(state=True, owned=True),
    IP_PORT: Needs(state=True, owned=True, sent=("CHANGE", "VERIFY")),
    BY_CONNECTION: Needs(state=True, reported=True, owned=True, lossless=True),
    BY_HASH: Needs(state=True, reported=True, owned=True, sent=("VERIFY",), lossless=True),
}
"""The facts needed to find the claimers of a client of a connection, and of one by `ip:port#…`; and their owners."""

COLUMNS = {
    **{name: pl.String() for name in ("run", "client", "nodes")},
    **{name: pl.Int64() for name in ("from_ms", "until_ms", "claimers")},
}
"""`claimers`: the number of claiming members; -1: unknown for this client. `nodes`: two of them at most."""


def claims_of(t: Timeline) -> pl.DataFrame:
    """client_no, g, from_ms, until_ms: each time in which a node claimed a client."""
    has_own = c("is_state") & c("content").is_not_null() & c("owned").fill_null(value=False)
    acts = sent & (is_change | is_verify)
    columns = ("client_no", "g", "at_ms", "is_connection", "is_state")
    claims = t.lasting(has_own | acts, c("is_state") & ~has_own, *columns)
    lasts = pl.when(c("is_state") & c("is_connection")).then(NEVER).otherwise(c("at_ms") + ROUNDS_MS)
    return _merged(claims.select("client_no", "g", from_ms="at_ms", until_ms=pl.min_horizontal(lasts, "end_ms")))


def claims_by_hash(t: Timeline) -> pl.DataFrame:
    """Members that verified a client by `ip:port#…` in a settled time: its columns (`VIEWS`), client_no,
    owner (by the member's own list), the first such row with its time, claimed_ms, and how many claims."""
    verifies = t.having(sent & is_verify & ~c("is_connection"), "client_no", "run", "g", "row", "at_ms")
    views = _with_owner(t, verifies.select("client_no", "run", "g").unique())
    found = verifies.join(views, ["client_no", "g"]).filter(c("at_ms").is_between("from_ms", "until_ms"))
    by_view = found.sort("row").group_by("client_no", "g", "from_ms", "until_ms", "owner", "members", "alive")
    return by_view.agg(c("row").first(), claimed_ms=c("at_ms").first(), claims=pl.len())


def holdings_by_hash(t: Timeline) -> pl.DataFrame:
    """When a member held instances of a client by `ip:port#…` in a settled time and was loaded: client_no, g, row,
    owner (by its own list), from_ms (of the settled time), since_ms and until_ms."""
    holds = ~c("is_connection") & c("content").is_not_null() & (c("content") != NOTHING_PUBLISHED)
    columns = ("client_no", "run", "g", "row", "at_ms", "life")
    held = t.lasting(holds, is_gone | (c("content") == NOTHING_PUBLISHED), *columns)
    held = held.join(t.cluster.lives.select("life", "loaded_by_ms"), "life")
    views = _with_owner(t, held.select("client_no", "run", "g").unique())
    held = held.join(views, ["client_no", "g"]).with_columns(
        since_ms=pl.max_horizontal("from_ms", "at_ms", c("loaded_by_ms") + ROUNDS_MS),
        until_ms=pl.min_horizontal("until_ms", "end_ms"),
    )
    return first_of(held, ["client_no", "g", "from_ms", "end"], "row")


def _with_owner(t: Timeline, clients: pl.DataFrame) -> pl.DataFrame:
    """For each (client_no, run, g) the settled times of that node, and the owner by its list in each."""
    found = clients.join(views(t.cluster, clients["run"].unique().to_list()), ["run", "g"]).drop("run")
    hashes = pl.Series([hash_of(t.clients[number]) for number in found["client_no"]], dtype=pl.Int64)
    found = found.with_columns(place=hashes % found["owners"].list.len())
    return found.with_columns(owner=c("owners").list.get(c("place"))).drop("owners", "place")


def _merged(spans: pl.DataFrame) -> pl.DataFrame:
    """Merge overlaps within a (client, node)."""
    spans = spans.filter(c("until_ms") > c("from_ms")).sort("client_no", "g", "from_ms")
    reach = c("until_ms").cum_max().shift(1).over("client_no", "g")
    spans = spans.with_columns(part=(c("from_ms") > reach).fill_null(value=True).cum_sum())
    return spans.group_by("client_no", "g", "part").agg(c("from_ms").min(), c("until_ms").max()).drop("part")


def intervals(t: Timeline) -> pl.DataFrame:
    """Each time in which a client was claimed by the same number of members, in `COLUMNS`."""
    claims = claims_of(t)
    held = t.lasting(c("content").is_not_null(), c("is_state"), "client_no", "g", "at_ms")
    held = _merged(held.select("client_no", "g", from_ms="at_ms", until_ms="end_ms"))
    steps = [
        spans.select("client_no", ms=end, claimers=pl.lit(claim * step), holders=pl.lit((1 - claim) * step))
        for spans, claim in ((claims, 1), (held, 0))
        for end, step in (("from_ms", 1), ("until_ms", -1))
    ]
    points = swept(pl.concat(steps), ("client_no",), "ms", "claimers", "holders")
    has_begun = c("claimers").cum_max().over("client_no") > 0
    found = points.filter(has_begun & (c("claimers") + c("holders") > 0) & c("until").is_not_null())
    new = (
        (c("client_no") != c("client_no").shift())
        | (c("claimers") != c("claimers").shift())
        | (c("ms") != c("until").shift())
    )
    found = (
        found.with_columns(part=new.fill_null(value=True).cum_sum())
        .group_by("part", maintain_order=True)
        .agg(c("client_no", "claimers").first(), from_ms=c("ms").first(), until_ms=c("until").last())
    )
    return _named(t, found, claims)


def _named(t: Timeline, found: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    by = found.filter(c("claimers") != 1).join(claims, "client_no", suffix="_claim")
    by = by.filter((c("from_ms_claim") < c("until_ms")) & (c("until_ms_claim") > c("from_ms")))
    names = (
        by.with_columns(name=t.name("g")).group_by("part").agg(nodes=c("name").unique().sort().head(2).str.join(","))
    )
    begins = pl.Series([begin for begin, _ in t.spans], dtype=pl.Int64)
    found = found.join(names, "part", how="left").with_columns(row=pl.lit(begins).gather(c("client_no")))
    found = t.of(found, "row", "run", "client", "is_connection")
    of_kind = [c("run").is_in(t.cluster.whole(kind)) for kind in (CONNECTION, IP_PORT)]
    is_known = pl.when("is_connection").then(of_kind[0]).otherwise(of_kind[1])
    known = {name: pl.when(is_known).then(name) for name in ("nodes", "from_ms", "until_ms", "claimers")}
    found = found.select("run", "client", **known).unique()
    found = found.with_columns(
        c("nodes").fill_null(""), c("claimers").fill_null(-1), c("from_ms", "until_ms").fill_null(0)
    )
    return found.select(c(name).cast(kind) for name, kind in COLUMNS.items())


def responsibility_of(parts: Iterable[pl.DataFrame]) -> Responsibility:
    """For how long none, one and several members claimed a client, and the longest times in which it was not one. Each
    part is of whole clients."""
    sums, listed = Counter[str](), pl.DataFrame(schema={**COLUMNS, "ms": pl.Int64()})
    for part in parts:
        found = part.select(*COLUMNS, ms=c("until_ms") - c("from_ms"))
        known, odd = found.filter(c("claimers") >= 0), found.filter(~c("claimers").is_in([-1, 1]))
        times = known.group_by(pl.min_horizontal("claimers", 2).cast(pl.String)).agg(c("ms").sum())
        sums.update(dict(times.iter_rows()))
        sums.update(
            clients=known.select("run", "client").n_unique(), undecided=found.height - known.height, odd=odd.height
        )
        by, descending = ("ms", "run", "client", "from_ms"), (True, False, False, False)
        listed = pl.concat([listed, odd]).sort(by, descending=descending).head(INTERVALS_MAX)
    return Responsibility(
        clients=sums["clients"],
        undecided=sums["undecided"],
        none_ms=sums["0"],
        one_ms=sums["1"],
        several_ms=sums["2"],
        intervals=tuple(
            ClaimedInterval(run, client, from_ms, until_ms, claimers, tuple(nodes.split(",")) if nodes else ())
            for run, client, nodes, from_ms, until_ms, claimers, _ in listed.iter_rows()
        ),
        intervals_left_out=sums["odd"] - listed.height,
    )
