"""INV-ASKS: a verify creates no client.

A node that does not hold the client of a verify answers with FAIL, and waits for the owner to send it. A node that has
a copy between that request and its answer has invented it (`m-query-creates`): no owner will ever delete it.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import c, is_applied, is_verify, neighbour, received, replied
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline


def made_up(t: Timeline) -> pl.DataFrame:
    """Only adjacent rows of request, copy and answer prove that no sync came in between. A snapshot may still have
    come: its answer is about no client, so it has no row among these."""
    asked, answered = neighbour(received & is_verify, 1, "copy"), neighbour(replied, -1, "copy")
    rows = t.rows.with_columns(asked_seq=c("seq").shift(1), by=c("message").shift(1), answer=c("message").shift(-1))
    found = rows.filter(is_applied & c("held").is_null(), asked, answered, c("answer") == c("by"))
    loads = t.cluster.marks.filter(kind="reply_received", outcome="success").select("g", load_seq="seq")
    came = found.join(loads, "g").filter(c("load_seq").is_between("asked_seq", "seq"))
    found = found.join(came, "row", how="anti")
    return found.select("g", first=c("row") - 1, last="row", after="by")


INVARIANT = Invariant(
    "INV-ASKS",
    "A verify creates no client.",
    made_up,
    "{node} has {client} since {last}, created by the verify of {first.peer} in {first}, which carries no content",
    "{node} answers {after} with FAIL and does not create {client}",
    needs=Needs(state=True, reported=True, sent=("SNAPSHOT",), received=("CHANGE", "VERIFY"), lossless=True),
)
