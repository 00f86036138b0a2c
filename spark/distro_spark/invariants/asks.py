"""INV-ASKS: a verify creates no client.

A node that does not hold the client of a verify answers with FAIL, and waits for the owner to send it. A node that has
a copy between that request and its answer, while no sync of the client is under way there, has invented it
(`m-query-creates`): no owner will ever delete it.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_applied, is_change, is_verify, received
from distro_spark.invariants.answers import answered
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline

INVARIANT = Invariant(
    "INV-ASKS",
    "A verify creates no client.",
    needs=Needs(state=True, reported=True, sent=("SNAPSHOT",), received=("CHANGE", "VERIFY"), lossless=True),
)


@INVARIANT.found_by(
    "{node} has {client} since {last}, created by the verify of {first.peer} in {first}, which carries no content",
    "{node} answers {after} with FAIL and does not create {client}",
)
def made_up(t: Timeline) -> pl.DataFrame:
    """Of several verifies the latest request counts. A snapshot may have brought the client: its answer is about no
    client, so it has no row among these."""
    made = t.having(is_applied & c("held").is_null(), "copy", "begin", "g", "seq", "row")
    made = made.join(_under_way(t, made, is_change), "row", how="anti")
    if made.is_empty():
        return NOTHING
    found = _under_way(t, made, is_verify).filter(c("answer").is_not_null())
    found = t.of(found.group_by("g", "seq", "row").agg(c("asked").max()), "asked", by="message", asked_seq="seq")
    loads = t.cluster.marks.filter(kind="reply_received", outcome="success").select("g", load_seq="seq")
    came = found.join(loads, "g").filter(c("load_seq").is_between("asked_seq", "seq"))
    found = found.join(came, "row", how="anti")
    return found.select("g", first="asked", last="row", after="by")


def _under_way(t: Timeline, made: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """`made` with each request about the copy, of that life, that had been received by then and was not answered yet:
    `asked`, and `answer`, null where it never was."""
    answers = answered(t, condition).select("asked", answer="row")
    requests = t.having(received & condition, "copy", "begin", asked="row").join(answers, "asked", how="left")
    found = made.join(requests, ["copy", "begin"]).filter(c("asked") < c("row"))
    return found.filter(c("answer").is_null() | (c("answer") > c("row")))
