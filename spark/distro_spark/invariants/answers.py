"""INV-ACK, INV-VERIFY, INV-GONE, INV-ASKS: a node's answers agree with its copies.

All are judged at the receiver, by its copy when the request arrived and when it answered.

* INV-ACK: a node that answers a CHANGE with SUCCESS has applied its content between request and answer, or held it
  before; after a DELETE it does not hold the client any more (B16, B19). What it refuses it does not apply, but for a
  CHANGE whose revision cannot be read (docs/protocol #receive-revision).
* INV-VERIFY: the verify carries the owner's revision when it was sent, and the rows about the copy carry its own. A
  copy that is missing, or older than the verified revision, cannot have had the owner's content between send and answer
  (B02); a newer one can, since the owner may have changed. Before 2.1.2 messages carry no revision: those verifies are
  not judged. Revision 0 is confirmed by a copy of any revision (docs/protocol #defect-d11), but not without a copy. A
  copy of the verified revision, at request and answer, is confirmed.
* INV-GONE: a DELETE of a client that is not held succeeds. A DELETE that fails is retried for ever
  (`m-unknown-delete-fails`).
* INV-ASKS: a node that does not hold the client of a verify answers with FAIL, and waits for the owner to send it. A
  node that has a copy between that request and its answer, while no sync of the client is under way there, has invented
  it (`m-query-creates`): no owner will ever delete it.
"""

from __future__ import annotations

import polars as pl

from distro_spark.expressions import (
    c,
    is_applied,
    is_change,
    is_delete,
    is_removed,
    is_sync,
    is_verify,
    received,
    replied,
    stamped,
    succeeded,
)
from distro_spark.invariants.registry import Invariant
from distro_spark.needs import Needs
from distro_spark.timeline import NOTHING, Timeline
from distro_traces.header import WITHOUT_REVISIONS

REVISION_MAX = 2**31 - 1

ACK = Invariant(
    "INV-ACK",
    "A CHANGE or DELETE that is answered with SUCCESS has been applied, and one that fails has not.",
    needs=Needs(state=True, reported=True, received=("CHANGE", "DELETE")),
)
VERIFY = Invariant(
    "INV-VERIFY",
    "A confirmed verify means that the copy had the owner's content between send and answer, and one that fails that "
    "it had another revision or was not there.",
    needs=Needs(state=True, reported=True, received=("VERIFY",), revision=True),
    not_on=WITHOUT_REVISIONS,
    differ_by="last_seq",
)
GONE = Invariant(
    "INV-GONE",
    "A DELETE of a client that is not held succeeds.",
    needs=Needs(state=True, reported=True, received=("DELETE",)),
)


def answered(t: Timeline, condition: pl.Expr) -> pl.DataFrame:
    """The answers for which the condition holds, each with its request: `asked` (row), asked_revision, wanted (digest),
    and the content held at the request (`asked_held`)."""
    columns = ("copy", "message", "g", "client_no", "seq", "row", "op", "held", "held_revision", "is_connection")
    answers = t.having(replied & condition, *columns)
    requests = t.having(received, "copy", "message", asked="row")
    found = answers.join_asof(
        requests, left_on="row", right_on="asked", by=["copy", "message"], check_sortedness=False, coalesce=False
    )
    found = found.filter(c("asked").is_not_null())
    return t.of(found, "asked", asked_revision="revision", wanted="digest", asked_held="held")


@ACK.found_by(
    "{node} answered the {operation} of {client} from {first.peer} with SUCCESS in {last} and did not apply it: it "
    "holds {actual}",
    "{node} answers {after} with SUCCESS, once it holds [content {_wanted}|no such client]",
)
def unapplied(t: Timeline) -> pl.DataFrame:
    found = answered(t, succeeded & is_sync)
    kept = is_delete & c("held").is_not_null()
    lacks = c("wanted").ne_missing(c("asked_held")) & c("wanted").ne_missing(c("held"))
    found = found.filter(kept | (~is_delete & c("wanted").is_not_null() & lacks))
    if found.is_empty():
        return NOTHING
    states = t.having(c("is_state"), "copy", "kind", "content", state="row", by="message")
    between = found.join(states, "copy").filter(c("state").is_between("asked", "row"))
    done = between.filter(pl.when(is_delete).then(is_removed).otherwise(c("content") == c("wanted")))
    found = found.join(done, "row", how="anti")
    holds = t.latest(found, c("digest").is_not_null() & c("owned").is_not_null())
    found = t.of(found.with_columns(holds=holds), "holds", actual="digest")
    found = t.of(found, "asked", "operation").with_columns(c("actual").fill_null("nothing"))
    return found.select(
        "g",
        "operation",
        "actual",
        first="asked",
        last="row",
        expected="wanted",
        _wanted=stamped("wanted", "asked_revision"),
    )


@ACK.found_by(
    "{node} answered the {operation} of {client} from {first.peer} with FAIL in {last}, and has applied it",
    "{node} answers {after} with FAIL and does not apply it, or applies it and answers with SUCCESS",
)
def applied_and_refused(t: Timeline) -> pl.DataFrame:
    found = answered(t, (c("outcome") == "fail") & is_sync)
    found = found.filter((c("asked_revision") <= REVISION_MAX).fill_null(value=True))
    states = t.having(is_applied | is_removed, "copy", "message", state="row")
    found = found.join(states, ["copy", "message"], maintain_order="left").filter(c("state").is_between("asked", "row"))
    return t.of(found, "asked", "operation").select("g", "operation", first="asked", last="row")


@VERIFY.found_by(
    "{node} confirmed revision {asked_revision} of {client} to {_peer} in {last}; it holds [revision {_revision} since "
    "{_state}|nothing]",
    "{node} answers {after} with FAIL, and {_peer} sends the client again",
)
def confirmed_wrongly(t: Timeline) -> pl.DataFrame:
    found = answered(t, succeeded & is_verify & c("has_revisions")).filter(c("asked_revision").is_not_null())
    absent = c("held").is_null() & c("asked_held").is_null()
    older = (
        pl.when("is_connection")
        .then(c("held_revision") < c("asked_revision"))
        .otherwise(c("held_revision") != c("asked_revision"))
    )
    older &= c("held").is_not_null() & c("asked_held").is_not_null() & (c("asked_revision") != 0)
    found = found.filter(absent | older.fill_null(value=False))
    if found.is_empty():
        return NOTHING
    state = t.latest(found, is_applied | is_removed)
    found = t.of(found, "asked", "peer").with_columns(state=state)
    found = t.of(found, "state", state_digest="digest", state_revision="revision")
    held = c("state_digest").is_not_null()
    return found.select(
        "g",
        "asked_revision",
        first=pl.coalesce("state", "asked"),
        last="row",
        held_revision=pl.when(held).then("state_revision"),
        _peer="peer",
        _revision=c("state_revision").cast(pl.String).fill_null("None"),
        _state_row=pl.when(held).then("state"),
    )


@VERIFY.found_by(
    "{node} refused revision {asked_revision} of {client} to {_peer} in {last}; it holds that revision since {first}",
    "{node} answers {after} with SUCCESS",
)
def refused_wrongly(t: Timeline) -> pl.DataFrame:
    """Verifies that fail though the copy has had that revision since before the request."""
    found = answered(t, (c("outcome") == "fail") & is_verify & c("has_revisions") & c("held").is_not_null())
    found = t.of(found, "row", "state").filter(c("asked_revision") == c("held_revision"), c("state") < c("asked"))
    found = t.of(found, "asked", "peer")
    return found.select(
        "g",
        "asked_revision",
        "held_revision",
        first="state",
        last="row",
        _peer="peer",
    )


@GONE.found_by(
    "{node} answered the DELETE of {client} from {first.peer} with FAIL in {last} and does not hold that client",
    "{node} answers a DELETE of a client that it does not hold with SUCCESS",
)
def refused(t: Timeline) -> pl.DataFrame:
    found = answered(t, (c("outcome") == "fail") & is_delete)
    return found.filter(c("held").is_null() & c("asked_held").is_null()).select("g", first="asked", last="row")


ASKS = Invariant(
    "INV-ASKS",
    "A verify creates no client.",
    needs=Needs(state=True, reported=True, sent=("SNAPSHOT",), received=("CHANGE", "VERIFY"), lossless=True),
)


@ASKS.found_by(
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
