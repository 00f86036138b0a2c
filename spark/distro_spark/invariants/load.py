"""INV-LOAD and INV-INIT: a node that starts gets loaded as it should, and acts for no client before.

INV-LOAD: a node that starts gets loaded, asks in the right order and at the right times, and takes what it is given. By
the next checkpoint, if others are up, it must have received an answer (B11, B32), or must still repeat its requests if
all of them were lost. A refusal is an answer too: a node that receives only refusals is loaded.

It asks the members in ascending order, the next one at once after a failure, none after a success, and all again when
the retry delay is over (docs/protocol #load-asks). A member that is not UP counts as a failure without a request, so
one whose connection may have failed lately may be left out; in the seconds after its start a node believes that all are
UP. Judged in virtual time, where the names of nodes are in the order of their addresses, and not up to 2.1, which
loads two kinds of data.

After a snapshot it holds every client that its source held (#load-snapshot, #load-takes), save those that left
meanwhile; judged where both report their changes.

INV-INIT: a node that requests a snapshot after its start, and has received no answer yet, has an incomplete table: it
must not verify, and must not send that table to a member that loads (B33). A refusal is an answer too. A node that
never requests one violates INV-LOAD, not INV-INIT.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from distro_spark.cluster import SLOW
from distro_spark.expressions import c, ended, is_applied, is_delete, is_gone, is_verify, received, sent, succeeded
from distro_spark.history import ASKS_AGAIN_MS, AT_MS, LEASE_MS, Row
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline, first_of
from distro_traces.event import RESET_KINDS, Kind, Outcome
from distro_traces.header import Header

NAME = "INV-LOAD"
RETRY_MS = 30_000
AT_ONCE_MS = 300
BELIEVED_UP_MS = 4_900
"""After the start of a node, until its first report."""
TIME_MAX = 2**42
"""Times are below, those since 1970 too."""
CONNECTED_MS = 5_000
FOUND_UP_MS = 15_000
"""When a connection to a member that is back runs again, and when reports have found it."""


LOAD = Invariant(
    NAME,
    "A node that starts while another is up repeats its load until that one has answered, and is loaded then, with all "
    "that it was given.",
    needs=Needs(sent=("SNAPSHOT",), lossless=True),
    needs_checkpoint=True,
    differ_by="last_seq",
)


@LOAD.found_by(
    "{node} is not loaded at checkpoint {_checkpoint}: no member has answered a load since {first}[; the last one "
    "asked was {asked} in {_asked}]",
    "{node} asks the members that are up until one of them answers",
    of_nodes=True,
)
def never_loaded(t: Timeline) -> pl.DataFrame:
    """Nodes that are not loaded at their first checkpoint after a start, when others have that checkpoint too. One
    whose requests were all lost may still wait for the next one."""
    marks = t.cluster.in_lives(t.cluster.marks.filter(t.judged(NAME))).filter(begin_kind="node_started")
    shared = t.cluster.checks.filter(t.judged(NAME)).filter(pl.len().over("run", "ordinal") > 1)
    checks = first_of(marks.filter(kind="checkpoint"), "life", "seq")
    checks = checks.join(shared, "mark", how="semi").select(
        "g", "life", "mark", "begin_mark", "detail", check_ms="at_ms"
    )
    calls = marks.filter(sent | ended).join(checks.select("life", check="mark"), "life").filter(c("mark") > c("check"))
    is_lost = c("outcome").is_in(["timeout", "unreachable"]).fill_null(value=False)
    calls = (
        calls.sort("seq")
        .group_by("life")
        .agg(
            is_loaded=(ended & c("outcome").is_in(["success", "fail"])).any(),
            are_lost=(sent | is_lost).all(),
            last_ms=c("at_ms").last(),
            asked=c("peer").filter(sent).last(),
            after=c("message").filter(sent).last(),
            asked_mark=c("mark").filter(sent).last(),
        )
    )
    found = checks.join(calls, "life", how="left")
    waits = c("are_lost") & (c("check_ms") - c("last_ms") <= ASKS_AGAIN_MS)
    found = found.filter(~c("is_loaded").fill_null(value=False), ~waits.fill_null(value=False))
    return found.select(
        *("g", "after", "asked"),
        first="begin_mark",
        last="mark",
        _checkpoint="detail",
        _asked_row="asked_mark",
    )


@LOAD.found_by("{node} {_how}", "{node} {_expected}", of_nodes=True)
def misasked(t: Timeline) -> pl.DataFrame:
    """Requests for a snapshot to the wrong member, or at the wrong time."""
    found = []
    for g in sorted(t.cluster.judged[NAME]):
        header = t.cluster.headers[t.cluster.runs[g]]
        names = {t.cluster.names[each] for each in t.cluster.of_run[header.run]}
        if header.clock == "virtual" and names <= {*header.nodes} and not header.profile.startswith(SLOW):
            found += [{"g": g, **each} for each in _wrong_requests(t, g)]
    return pl.DataFrame(found, schema=_COLUMNS) if found else NOTHING


_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("g", "first", "last"), pl.Int64()),
    **dict.fromkeys(("after", "asked", "_how", "_expected"), pl.String()),
}


def _wrong_requests(t: Timeline, g: int) -> Iterator[dict[str, object]]:
    """Until the member list changes, or the node is suspended: then its timers are late, and members may be missing."""
    start: Row | None = None
    before: tuple[Row, int] | None = None
    for row, place in zip(t.cluster.of_node[g].rows, t.cluster.marks.filter(g=g)["mark"], strict=True):
        if row.kind in (*RESET_KINDS, Kind.MEMBERS_CHANGED) or (row.kind == Kind.LINK_FAULT and row.peer is None):
            start, before = (row if row.kind == Kind.NODE_STARTED else None), None
        elif start is not None and row.kind == Kind.REPLY_RECEIVED:
            before = row, place
        elif start is not None and row.kind == Kind.REQUEST_SENT:
            wrong = _wrong(t, g, start, before and before[0], row)
            if wrong is not None:
                about = {"after": row.message, "asked": row.peer, "_how": wrong[0], "_expected": wrong[1]}
                yield {"first": place if before is None else before[1], "last": place, **about}


def _wrong(t: Timeline, g: int, start: Row, before: Row | None, row: Row) -> tuple[str, str] | None:
    """What is wrong with a request, and what is expected instead. `before`: the end of the one before."""
    gap_ms = None if before is None else row.at_ms - before.at_ms
    if before is not None and gap_ms is not None:
        if before.outcome == Outcome.SUCCESS:
            is_over = before.detail is None and not _may_have_raised(t.cluster.headers[t.cluster.runs[g]])
            return (f"asks {row.peer} in {row}, after the snapshot in {before}", "asks no more") if is_over else None
        if gap_ms > AT_ONCE_MS and (skipped := _due(t, g, start, before.peer, before.at_ms)) is not None:
            return f"does not ask {skipped} when {before.peer} has failed in {before}", f"asks {skipped} at once"
        rounds, late_ms = divmod(gap_ms, RETRY_MS)
        is_missed = rounds > 1 and _due(t, g, start, None, before.at_ms + RETRY_MS) is not None
        if gap_ms > AT_ONCE_MS and (not rounds or late_ms > AT_ONCE_MS or is_missed):
            return f"begins the load again in {row}, {gap_ms} ms after {before}", f"begins again after {RETRY_MS} ms"
    last = before.peer if before is not None and gap_ms is not None and gap_ms <= AT_ONCE_MS else None
    due = _due(t, g, start, last, row.at_ms)
    is_behind = last is not None and str(row.peer) <= last
    if is_behind or (due is not None and due < str(row.peer)):
        return f"asks {row.peer} in {row} and not {due or 'later'}", "asks its members in ascending order"
    return None


def _may_have_raised(header: Header) -> bool:
    """At a batch for a service with a single instance (B19), which only simulations record."""
    return header.profile.startswith(("nacos-2.2.", "nacos-2.3.0")) and not header.target.startswith("model")


def _due(t: Timeline, g: int, start: Row, last: str | None, at_ms: int) -> str | None:
    """The next member after that one that certainly is believed UP, and can be reached."""
    listed = {*(start.detail or "").split(",")} - {t.cluster.names[g]}
    members = {t.cluster.names[each]: each for each in t.cluster.of_run[t.cluster.runs[g]]}
    for_ms = CONNECTED_MS if at_ms - start.at_ms <= BELIEVED_UP_MS else FOUND_UP_MS
    for name in sorted(listed & members.keys()):
        if (last is None or name > last) and _works(t, g, members[name], at_ms - for_ms, at_ms):
            return name
    return None


def _works(t: Timeline, g: int, peer: int, since_ms: int, at_ms: int) -> bool:
    """The peer runs since then, and no link between the two has been broken."""
    node = t.cluster.of_node[peer]
    if not node.is_up(at_ms) or any(since_ms < row.at_ms <= at_ms for row in node.resets):
        return False
    for link in ((g, peer), (peer, g), (peer, peer)):
        faults = t.cluster.faults.get(link, ())
        count = bisect_right(faults, at_ms, key=AT_MS)
        if count and (faults[count - 1].is_broken or faults[count - 1].at_ms > since_ms):
            return False
    return True


@LOAD.found_by(
    "{node} does not hold {client} after the snapshot {after} of {asked}, which has held it since {first}",
    "{node} holds {client} after the snapshot",
)
def incomplete(t: Timeline) -> pl.DataFrame:
    """Clients that the source of a snapshot held, and that the node which loaded it does not hold."""
    reports = [g for g, does in enumerate(t.cluster.reports) if does and _records_deletes(t, g)]
    marks = t.cluster.in_lives(t.cluster.marks.filter(c("g").is_in(reports), operation="SNAPSHOT"))
    marks = marks.filter(succeeded, c("detail").is_null())
    given = marks.filter(c("kind") == "reply_sent").select(
        "run", "message", source="g", given_seq="seq", given_ms="at_ms"
    )
    loads = marks.filter(ended).sort("seq").unique("life", keep="last")
    columns = ("run", "g", "seq", "at_ms", "message", "life", "mark", "is_ended", "end_ms")
    loads = loads.select(columns).join(given, ["run", "message"])
    numbers = {run: number for number, run in enumerate(t.cluster.of_run)}
    clients = t.rows.group_by("client_no").agg(
        c("run").first(), c("late_ms").first(), from_ms=c("at_ms").min(), until_ms=c("at_ms").max() + LEASE_MS
    )
    clients = clients.with_columns(from_ms=_of_run("from_ms", numbers), until_ms=_of_run("until_ms", numbers))
    loads = loads.with_columns(given_then=_of_run("given_ms", numbers))
    then = (c("given_then") >= c("from_ms"), c("given_then") <= c("until_ms"))
    asked = loads.join_where(clients.drop("run"), *then).drop("from_ms", "until_ms", "given_then")
    asked = asked.sort("client_no", "seq")
    given = _held_at(t, asked.select("client_no", g="source", seq="given_seq"))
    asked = asked.with_columns(given=given["held_row"], is_given=given["is_held"])
    asked = t.of(asked, "given", since_ms="at_ms").filter("is_given", c("given_ms") - c("since_ms") > c("late_ms"))
    found = asked.filter(~_is_there(t, asked))
    return found.select("g", first="given", last="mark", after="message", asked=t.name("source"))


def _of_run(ms: str, numbers: Mapping[str, int]) -> pl.Expr:
    """The time and its run as one number. A condition of its own for the run would join each load with all clients of
    the run before their times are compared."""
    return c("run").replace_strict(numbers, return_dtype=pl.Int64) * TIME_MAX + c(ms)


def _held_at(t: Timeline, asked: pl.DataFrame) -> pl.DataFrame:
    """For each client_no, g and seq: `is_held`, whether the node held the client then, and `held_row`, since when."""
    asked = asked.with_columns(held_row=t.latest(asked, c("is_state")), begin_seq=t.begin_seq(asked))
    asked = t.of(asked, "held_row", held_content="content", held_seq="seq")
    is_held = c("held_content").is_not_null() & (c("held_seq") >= c("begin_seq"))
    return asked.select("held_row", is_held=is_held.fill_null(value=False))


def _records_deletes(t: Timeline, g: int) -> bool:
    """A client that a DELETE ended meanwhile is missing rightly."""
    return "DELETE" in t.cluster.headers[t.cluster.runs[g]].observed.operations


def _is_there(t: Timeline, asked: pl.DataFrame) -> pl.Series:
    """Whether the node held the client when the snapshot came, applied it soon, or knew that it had left; or stopped
    at once."""
    is_end = is_gone | (received & is_delete)
    rows = t.having(is_applied | is_end, "client_no", "life", row_seq="seq", row_ms="at_ms", is_end=is_end)
    wanted = asked.with_row_index("place").with_columns(until_ms=c("at_ms") + c("late_ms"))
    near = wanted.join(rows, ["client_no", "life"]).filter(c("row_ms") <= c("until_ms"))
    near = near.filter(c("is_end") | (c("row_seq") > c("seq")))
    holds = _held_at(t, asked.select("client_no", "g", "seq"))["is_held"]
    stops = c("is_ended") & (c("end_ms") <= c("until_ms"))
    found = wanted.with_columns(holds=holds)
    return found.select(c("holds") | stops | c("place").is_in(near["place"].implode())).to_series()


INIT = Invariant(
    "INV-INIT",
    "A node that is not loaded neither verifies nor sends a snapshot.",
    needs=Needs(sent=("SNAPSHOT", "VERIFY"), lossless=True),
)


@INIT.found_by(
    "{node} verifies {client} with {peer} in {last}, and has received no answer to its load since {first}",
    "{node} verifies no client before it is loaded",
)
def verified_early(t: Timeline) -> pl.DataFrame:
    early = c("seq") < pl.lit(t.cluster.lives["loaded_seq"]).gather(c("life"))
    found = t.having(sent & is_verify & early, "g", "peer", "client_no", "life", "row")
    found = first_of(found.join(t.cluster.lives.select("life", "begin_mark"), "life"), ["client_no", "life"], "row")
    return found.select("g", "peer", first="begin_mark", last="row")


@INIT.found_by(
    "{node} sends {peer} a snapshot in {last}, and has received no answer to its own load since {first}",
    "{node} refuses a snapshot before it is loaded",
    of_nodes=True,
)
def snapshots_before_load(t: Timeline) -> pl.DataFrame:
    """Snapshots sent by a node that waits for its own, the first one of each life."""
    loads = t.cluster.lives.select("life", "loaded_seq")
    marks = t.cluster.in_lives(t.cluster.marks.filter(t.judged("INV-INIT")))
    given = marks.filter(c("kind") == "reply_sent", succeeded).join(loads, "life")
    given = given.filter(c("seq") < c("loaded_seq"), c("begin_mark").is_not_null())
    found = first_of(given, "life", "seq")
    return found.select("g", "peer", first="begin_mark", last="mark")
