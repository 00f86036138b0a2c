"""INV-INIT and INV-LOAD: a node acts for no client before it is loaded, and it does get loaded.

A node that requests a snapshot after its start, and has received no answer yet, has an incomplete table: it must not
verify, and must not send that table to a member that loads (B33). By the next checkpoint, if others are up, it must
have received an answer (B11, B32), or must still repeat its requests if all of them were lost. A refusal is an answer
too: a node that receives only refusals is loaded. A node that never requests one violates INV-LOAD, not INV-INIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from distro_spark.history import Row
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, c, is_verify, sent
from distro_traces.event import RESET_KINDS, Kind, Outcome

ASKS_AGAIN_MS = 62_000
"""A failed load is repeated after 30 s, up to 2.0 after a minute; a request may take 30 s; with some margin."""

_FOUND = {"g": pl.Int64, "first": pl.Int64, "last": pl.Int64}
Marks = Sequence[tuple[int, Row]]
"""The rows of one node, each with its reference number."""


def verified_early(t: Timeline) -> pl.DataFrame:
    early = c("seq") < pl.lit(t.lives["loaded_seq"]).gather(c("life"))
    found = t.having(sent & is_verify & early, "g", "peer", "client_no", "life", "row")
    found = found.join(t.lives.select("life", "begin_mark"), "life", maintain_order="left")
    found = found.unique(["client_no", "life"], keep="first", maintain_order=True)
    return found.select("g", "peer", first="begin_mark", last="row")


def gave_early(t: Timeline) -> pl.DataFrame:
    """Snapshots sent by a node that waits for its own."""
    found = [each for g in t.cluster.judged["INV-INIT"] for each in _given(g, _marks(t, g))]
    return pl.DataFrame(found, {**_FOUND, "peer": pl.String}, orient="row")


def _given(g: int, marks: Marks) -> Iterator[tuple[Any, ...]]:
    """The first one of each life, of a node that asks for its own then or later."""
    started: int | None = None
    early: tuple[Any, ...] | None = None
    asks = loaded = False
    for number, row in marks:
        if row.kind in RESET_KINDS:
            started, early, asks, loaded = number, None, False, False
        elif is_answer(row):
            loaded = True
        elif row.kind == Kind.REPLY_SENT and row.outcome == Outcome.SUCCESS and started is not None and not loaded:
            early = early or (g, started, number, row.peer)
        asks = asks or row.kind == Kind.REQUEST_SENT
        if early is not None and asks:
            yield early
            started = early = None


def never_loaded(t: Timeline) -> pl.DataFrame:
    """Nodes that are not loaded at their first checkpoint after a start, when others have that checkpoint too."""
    checked = t.checks.filter(t.judged("INV-LOAD"))
    shared = set(checked.filter(pl.len().over("run", "ordinal") > 1)["mark"])
    found = [each for g in t.cluster.judged["INV-LOAD"] for each in _not_loaded(g, _marks(t, g), shared)]
    texts = dict.fromkeys(("after", "asked", "_number", "_asked"), pl.String)
    return pl.DataFrame(found, {**_FOUND, **texts}, orient="row")


def _not_loaded(g: int, marks: Marks, shared: set[int]) -> Iterator[tuple[Any, ...]]:
    started: int | None = None
    calls: list[Row] = []
    for number, row in marks:
        if row.kind in RESET_KINDS:
            started, calls = (number if row.kind == Kind.NODE_STARTED else None), []
        elif is_answer(row):
            started = None
        elif row.kind in (Kind.REQUEST_SENT, Kind.REPLY_RECEIVED):
            calls.append(row)
        elif row.kind == Kind.CHECKPOINT and started is not None:
            if number in shared and not goes_on_asking(calls, row):
                asked = next((call for call in reversed(calls) if call.kind == Kind.REQUEST_SENT), None)
                words = f"; the last one asked was {asked.peer} in {asked}" if asked else ""
                yield g, started, number, asked and asked.message, asked and asked.peer, row.detail, words
            started = None


def goes_on_asking(calls: Sequence[Row], checkpoint: Row) -> bool:
    """Whether every request of the node was lost, and the next one is under way or not due yet."""
    ended = [row for row in calls if row.kind == Kind.REPLY_RECEIVED]
    is_late = not calls or checkpoint.at_ms - calls[-1].at_ms > ASKS_AGAIN_MS
    return not is_late and all(row.outcome in (Outcome.TIMEOUT, Outcome.UNREACHABLE) for row in ended)


def is_answer(row: Row) -> bool:
    return row.kind == Kind.REPLY_RECEIVED and row.outcome in (Outcome.SUCCESS, Outcome.FAIL)


def _marks(t: Timeline, g: int) -> Marks:
    places = t.cluster.marks.select(pl.arg_where(c("g") == g)).to_series().to_list()
    return [(-1 - place, t.cluster.mark_rows[place]) for place in places]


INIT = Invariant(
    "INV-INIT",
    "A node that is not loaded neither verifies nor sends a snapshot.",
    verified_early,
    "{node} verifies {client} with {peer} in {last}, and has received no answer to its load since {first}",
    "{node} verifies no client before it is loaded",
    needs=Needs(sent=("SNAPSHOT", "VERIFY"), lossless=True),
    of_nodes=gave_early,
    of_nodes_says="{node} sends {peer} a snapshot in {last}, and has received no answer to its own load since {first}",
    of_nodes_expects="{node} refuses a snapshot before it is loaded",
)
LOAD = Invariant(
    "INV-LOAD",
    "A node that starts while another is up repeats its load until that one has answered, and is loaded then.",
    needs=Needs(sent=("SNAPSHOT",), lossless=True),
    needs_checkpoint=True,
    of_nodes=never_loaded,
    of_nodes_says="{node} is not loaded at checkpoint {_number}: no member has answered a load since {first}{_asked}",
    of_nodes_expects="{node} asks the members that are up until one of them answers",
)
