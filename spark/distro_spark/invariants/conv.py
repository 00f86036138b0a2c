"""INV-CONV: at rest every member has the same view of every service.

A CHECKPOINT row on each live node means that faults are healed, enough time has passed, and all nodes should agree. The
expected view is the owner's; it is empty once the client has disconnected. When the owner is gone (stopped, or started
again without its connections), the expected view is empty too; but no DELETE is sent then, so each node may keep its
copy until its own lease ends. A snapshot that contains the copy begins a new lease. A client of the HTTP API is of the
node to which its last request came.

First event: the views of both nodes are compared over time. The last *agreement* is the latest view of the owner that
this node shared while or after the owner had it. If that is the owner's present view, the node has left it since, and
the row with which it left is the first event; otherwise the first event is the owner's next row, the first content that
the node never reached. Times are compared across nodes only here, to distinguish a view from an equal later one.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_left, is_own, is_sync, received, renews, replied, sent
from distro_spark.history import LEASE_CHECK_MS, LEASE_MS, NEVER
from distro_spark.invariants.delete import SWALLOWED, swallowed
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline
from distro_traces.content import NOTHING_PUBLISHED

NAME = "INV-CONV"
VIEW = ("client_no", "g")
EVIDENCE = [
    *("owner", "checkpoints", "expected", "expected_revision", "actual", "actual_revision", "last_message"),
    *("last_operation", "last_outcome", "last_verify", "lost_message", "signature"),
]


INVARIANT = Invariant(
    NAME,
    "At rest every member's view of every service is the same set of instances.",
    needs=Needs(state=True, owned=True, lossless=True),
    needs_checkpoint=True,
)


@INVARIANT.found_by(
    "{node} holds {actual}[ (revision {actual_revision})] of {client} at checkpoint {checkpoints} while [{_others}|its "
    "owner {owner} holds {expected}]; they differ since {first}[; the last content message that reached it is "
    "{last_message} ({_asked})][; {lost_message} ({_lost_operation}) of {owner} never reached it]",
    "{node} holds {expected} of {client} at checkpoint {checkpoints}",
)
def diverged(t: Timeline) -> pl.DataFrame:
    """Each node that differs from the owner at a checkpoint, once for all checkpoints since the first event."""
    clients = differing(t)
    if clients.is_empty():
        return NOTHING
    views = views_of(t, clients)
    checks = shown(t, views)
    truth = truths(t, views, checks)
    checks = checks.join(truth, ["client_no", "ordinal"])
    checks = checks.filter(c("view").n_unique().over("client_no", "ordinal") > 1)
    checks = t.of(checks.with_columns(renewed=t.latest(checks, renews)), "renewed", renewed_ms="at_ms")
    is_leased = (c("at_ms") - c("renewed_ms") <= LEASE_MS + LEASE_CHECK_MS).fill_null(value=False)
    excused = c("truth").is_null() & c("owner").is_not_null() & is_leased
    wrong = checks.filter(~excused & c("view").ne_missing(c("expected")))
    wrong = wrong.with_columns(first=since(wrong, views)).sort(*VIEW, "seq")
    numbers = c("number").unique(maintain_order=True).str.join(", ")
    found = wrong.with_columns(checkpoints=numbers.over(*VIEW, "first"))
    return with_calls(t, found.unique([*VIEW, "first"], keep="last", maintain_order=True))


def differing(t: Timeline) -> pl.DataFrame:
    """The clients of which the judged nodes have not all one view at some checkpoint: client_no, run."""
    checks = t.cluster.checks.filter(t.judged(NAME)).select("check", "run", "ordinal")
    live = checks.group_by("run", "ordinal").len("live")
    views = t.stretches.filter(c("view").is_not_null() & (c("check") < c("next_check")))
    views = views.select("client_no", "view", check=pl.int_ranges("check", "next_check")).explode("check")
    at_check = views.join(checks, "check").group_by("client_no", "run", "ordinal")
    found = at_check.agg(c("view").n_unique(), holding=pl.len()).join(live, ["run", "ordinal"])
    return found.filter((c("view") > 1) | (c("holding") < c("live"))).select("client_no", "run").unique()


def views_of(t: Timeline, clients: pl.DataFrame) -> pl.DataFrame:
    """The views of each node of these clients' runs, each from its first row: client_no, g, seq, at_ms, ref (the row;
    null before the first), view, revision, is_native (the node reported in this life, and before the client's
    connection there ended, that it holds the client as its own), next_ref, next_ms."""
    states = t.having(
        c("is_state") & c("client_no").is_in(clients["client_no"].to_list()),
        *VIEW,
        "seq",
        "at_ms",
        "owned",
        "revision",
        ref="row",
        view=pl.when(c("content") != NOTHING_PUBLISHED).then("content"),
        left=is_left & c("is_connection"),
    )
    lives = clients.join(t.cluster.nodes.select("run", "g"), "run").join(t.cluster.lives, "g")
    lives = lives.select(
        *VIEW,
        seq="begin_seq",
        at_ms=pl.when(c("begin_seq") > 0).then("begin_ms").otherwise(-NEVER),
        ref="begin_mark",
        begins=pl.lit(value=True),
    )
    rows = pl.concat([states, lives], how="diagonal").sort(*VIEW, "seq")
    begins = c("begins").fill_null(value=False) | c("left").shift().fill_null(value=False)
    new = (c("view").ne_missing(c("view").shift()) | (c("seq") == 0)).cum_sum()
    rows = rows.with_columns(stay=begins.cum_sum(), new=new)
    rows = rows.with_columns(is_native=(c("owned").fill_null(value=False)).any().over("stay"))
    first = [c(name).first() for name in ("seq", "at_ms", "ref", "view")]
    views = rows.group_by(*VIEW, "new", maintain_order=True).agg(
        *first, c("is_native").any(), c("revision").drop_nulls().last()
    )
    return views.with_columns(next_ref=c("ref").shift(-1).over(VIEW), next_ms=c("at_ms").shift(-1).over(VIEW)).drop(
        "new"
    )


def shown(t: Timeline, views: pl.DataFrame) -> pl.DataFrame:
    """The view of each judged node at each of its checkpoints: the columns of both, and `held_seq`, `held_ref` of the
    view."""
    judged = t.cluster.checks.filter(t.judged(NAME))
    checks = views.select(VIEW).unique().join(judged, "g").sort("seq")
    held = views.select(*VIEW, "view", "revision", "seq", held_seq="seq", held_ref="ref").sort("seq")
    return checks.join_asof(held, on="seq", by=VIEW, check_sortedness=False)


def truths(t: Timeline, views: pl.DataFrame, checks: pl.DataFrame) -> pl.DataFrame:
    """By client and checkpoint the owner's view by the client's own connection: client_no, ordinal, owner, truth (`seq`
    of that view; null: there is none), expected (the view), expected_revision. Clients whose owner cannot be judged are
    left out."""
    owners = t.owners.filter(rank=0).select("client_no", owner="g")
    clients = checks.select("client_no", "run", "ordinal").unique().join(owners, "client_no", how="left")
    moved = clients.join(_last_published(t, checks), ["client_no", "ordinal"], how="left", maintain_order="left")
    clients = moved.with_columns(owner=pl.coalesce("by", "owner")).drop("by")
    is_seen = c("owner").is_in(list(t.cluster.judged[NAME])).fill_null(value=False)
    clients = clients.filter(c("run").is_in(t.cluster.whole(NAME)) | is_seen).drop("run")
    native = views.filter("is_native").select(*VIEW, "seq", truth="seq", expected="view", expected_revision="revision")
    there = (
        checks.join(
            clients, left_on=["client_no", "ordinal", "g"], right_on=["client_no", "ordinal", "owner"], how="semi"
        )
        .select(*VIEW, "seq", "ordinal")
        .sort("seq")
        .join_asof(native.sort("seq"), on="seq", by=VIEW, check_sortedness=False)
    )
    there = there.filter(c("truth") >= t.begin_seq(there))
    there = there.select("client_no", "ordinal", "truth", "expected", "expected_revision")
    return clients.join(there, ["client_no", "ordinal"], how="left")


def _last_published(t: Timeline, checks: pl.DataFrame) -> pl.DataFrame:
    """By client of the HTTP API and checkpoint the node `by` to which its last request came, of those that have the
    checkpoint and ran until then."""
    own = checks.select("client_no", "ordinal", "seq", by="g", g="g").with_columns(row=t.latest(checks, is_own))
    own = t.of(own.filter(c("row").is_not_null()), "row", "is_connection", own_seq="seq", own_ms="at_ms")
    own = own.filter(~c("is_connection") & (c("own_seq") > t.begin_seq(own)))
    return own.sort("own_ms").unique(["client_no", "ordinal"], keep="last").select("client_no", "ordinal", "by")


def since(wrong: pl.DataFrame, views: pl.DataFrame) -> pl.Series:
    """The first event of each violation: the row since which the node differs from the owner."""
    wrong = wrong.with_row_index("place")
    owners = wrong.select("client_no", "owner").unique()
    true = views.join(owners, left_on=VIEW, right_on=["client_no", "owner"], how="semi")
    true = true.filter(c("is_native") | c("view").is_null()).select(
        "client_no", "view", true_seq="seq", true_ms="at_ms", true_next="next_ref"
    )
    same = wrong.join(true, ["client_no", "view"], nulls_equal=True)
    begun = pl.when(c("truth").is_not_null()).then(c("true_seq") <= c("truth")).otherwise(c("true_ms") <= c("at_ms"))
    now = (
        same.filter(begun)
        .sort("true_seq")
        .group_by("place")
        .last()
        .select("place", now="true_seq", now_next="true_next")
    )
    earlier = wrong.select("place", *VIEW, "held_seq").join(views, VIEW).filter(c("seq") < c("held_seq"))
    shared = earlier.join(true, ["client_no", "view"], nulls_equal=True)
    shared = shared.filter(c("true_ms") < c("next_ms")).sort("true_ms").group_by("place", "seq").last()
    best = shared.sort("true_seq", "seq").group_by("place").last()
    best = best.select("place", before="true_seq", before_next="true_next", left="next_ref")
    both = wrong.join(now, "place", how="left").join(best, "place", how="left").sort("place")
    is_now = c("now").fill_null(-1) >= c("before").fill_null(-1)
    agreed = pl.when(is_now).then("now").otherwise("before")
    following = pl.when(is_now).then("now_next").otherwise("before_next")
    turned = pl.when(agreed.eq_missing(c("truth"))).then("left").otherwise(following)
    return both.select(first=pl.coalesce(turned, "held_ref", "mark")).to_series()


def with_calls(t: Timeline, found: pl.DataFrame) -> pl.DataFrame:
    """Add the node's last requests, and the owner's last sync that did not reach it, before the checkpoint."""
    rows = {
        "request": t.latest(found, received & is_sync),
        "reply": t.latest(found, replied & is_sync),
        "verify": t.latest(found, replied & c("operation").is_not_null() & ~is_sync),
        "lost": lost(t, found),
    }
    found = found.with_columns(**rows)
    found = t.of(found, "request", last_message="message", last_operation="operation")
    found = t.of(found, "reply", "outcome", reply_message="message")
    found = t.of(found, "verify", last_verify="outcome")
    found = t.of(found, "lost", lost_message="message", lost_operation="operation")
    has_ended = c("expected").is_null()
    found = found.with_columns(
        owner_g="owner",
        owner=t.name("owner"),
        expected=c("expected").fill_null("nothing"),
        actual=c("view").fill_null("nothing"),
        actual_revision=pl.when(c("view").is_not_null()).then("revision"),
        last_outcome=pl.when(c("last_message") == c("reply_message")).then(c("outcome").cast(pl.String)),
        lost_message=pl.when(c("request").is_not_null()).then("lost_message"),
        signature=pl.when(has_ended & swallowed(t, found)).then(pl.lit(SWALLOWED)),
    )
    asked = pl.concat_str("last_operation", "last_outcome", separator=", ", ignore_nulls=True)
    others = (
        pl.when(c("truth").is_null())
        .then(pl.lit("no live node owns it and others hold nothing"))
        .when(c("g") == c("owner_g"))
        .then(pl.lit("its connection there has ended"))
    )
    return found.select(
        *("g", "client_no", "first"),
        pl.col(EVIDENCE),
        last="mark",
        after="last_message",
        _others=others,
        _asked=asked,
        _lost_operation="lost_operation",
    )


def lost(t: Timeline, found: pl.DataFrame) -> pl.Series:
    """The last sync that the owner sent to the node before the checkpoint, if it did not arrive."""
    syncs = t.having(sent & is_sync, "client_no", "message", "at_ms", owner="g", g="to", lost="row")
    arrived = t.having(received & is_sync, "client_no", "g", "message")
    wanted = found.select("client_no", "g", "owner", check_ms="at_ms").with_row_index("place")
    last = wanted.join(syncs, ["client_no", "owner", "g"]).filter(c("at_ms") <= c("check_ms")).sort("lost")
    last = last.group_by("place").last().join(arrived, ["client_no", "g", "message"], how="anti")
    return wanted.join(last.select("place", "lost"), "place", how="left").sort("place")["lost"]
