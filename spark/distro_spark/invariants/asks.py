"""INV-ASKS: a verify asks, and brings no client into being.

A node that does not know the client of a verify answers with FAIL, and waits for the owner to send it. A node that has
a copy between that request and its answer has made it up (`m-query-creates`): nobody will ever delete it.
"""

from __future__ import annotations

import polars as pl

from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import Timeline, c, is_applied, is_verify, received, replied


def made_up(t: Timeline) -> pl.DataFrame:
    """Only where the three rows stand side by side is it certain that no sync came in between; a snapshot may have,
    whose answer is about no client and so none of the three rows."""
    asked = (received & is_verify & (c("copy") == c("copy").shift(-1))).shift(1).fill_null(value=False)
    answered = (replied & (c("copy") == c("copy").shift(1)) & (c("message") == c("message").shift(2))).shift(-1)
    rows = t.rows.with_columns(asked_seq=c("seq").shift(1), peer=c("peer").shift(1), by=c("message").shift(1))
    found = rows.filter(is_applied & c("held").is_null() & asked & answered.fill_null(value=False))
    loads = t.cluster.marks.filter(kind="reply_received", outcome="success").select("g", load_seq="seq")
    came = found.join(loads, "g").filter(c("load_seq").is_between("asked_seq", "seq"))
    found = found.join(came, "row", how="anti")
    return found.select("g", first=c("row") - 1, last="row", after="by")


INVARIANT = Invariant(
    "INV-ASKS",
    "A verify brings no client into being.",
    made_up,
    "{node} has {client} since {last}, made from the verify of {first.peer} in {first}, which carries no content",
    "{node} answers {after} with FAIL and goes on without {client}",
    needs=Needs(state=True, reported=True, sent=("SNAPSHOT",), received=("CHANGE", "VERIFY"), lossless=True),
)
