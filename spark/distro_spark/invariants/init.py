"""INV-INIT and INV-LOAD: a node acts for no client before it is loaded, and it does get loaded.

A node that requests a snapshot after its start, and has received no answer yet, has an incomplete table: it must not
verify, and must not send that table to a member that loads (B33). By the next checkpoint, if others are up, it must
have received an answer (B11, B32), or must still repeat its requests if all of them were lost. A refusal is an answer
too: a node that receives only refusals is loaded. A node that never requests one violates INV-LOAD, not INV-INIT.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, ended, is_verify, sent, succeeded, words
from distro_spark.history import ASKS_AGAIN_MS
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, first_of


def verified_early(t: Timeline) -> pl.DataFrame:
    early = c("seq") < pl.lit(t.cluster.lives["loaded_seq"]).gather(c("life"))
    found = t.having(sent & is_verify & early, "g", "peer", "client_no", "life", "row")
    found = first_of(found.join(t.cluster.lives.select("life", "begin_mark"), "life"), ["client_no", "life"], "row")
    return found.select("g", "peer", first="begin_mark", last="row")


def snapshots_before_load(t: Timeline) -> pl.DataFrame:
    """Snapshots sent by a node that waits for its own, the first one of each life."""
    loads = t.cluster.lives.select("life", "loaded_seq")
    given = _marks(t, "INV-INIT").filter(c("kind") == "reply_sent", succeeded).join(loads, "life")
    given = given.filter(c("seq") < c("loaded_seq"), c("begin_mark").is_not_null())
    found = first_of(given, "life", "seq")
    return found.select("g", "peer", first="begin_mark", last="mark")


def never_loaded(t: Timeline) -> pl.DataFrame:
    """Nodes that are not loaded at their first checkpoint after a start, when others have that checkpoint too. One
    whose requests were all lost may still wait for the next one."""
    marks = _marks(t, "INV-LOAD").filter(begin_kind="node_started")
    shared = t.cluster.checks.filter(t.judged("INV-LOAD")).filter(pl.len().over("run", "ordinal") > 1)
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
            _asked=words.filter(sent).last(),
        )
    )
    found = checks.join(calls, "life", how="left")
    waits = c("are_lost") & (c("check_ms") - c("last_ms") <= ASKS_AGAIN_MS)
    found = found.filter(~c("is_loaded").fill_null(value=False), ~waits.fill_null(value=False))
    asked = pl.format("; the last one asked was {} in {}", "asked", "_asked").fill_null("")
    return found.select("g", "after", "asked", first="begin_mark", last="mark", _number="detail", _asked=asked)


def _marks(t: Timeline, name: str) -> pl.DataFrame:
    """The nodes' own rows that are judged, each with the life of its node."""
    return t.cluster.in_lives(t.cluster.marks.filter(t.judged(name)))


INIT = Invariant(
    "INV-INIT",
    "A node that is not loaded neither verifies nor sends a snapshot.",
    verified_early,
    "{node} verifies {client} with {peer} in {last}, and has received no answer to its load since {first}",
    "{node} verifies no client before it is loaded",
    needs=Needs(sent=("SNAPSHOT", "VERIFY"), lossless=True),
    of_nodes=snapshots_before_load,
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
