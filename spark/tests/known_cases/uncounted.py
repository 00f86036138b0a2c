"""Changes that leave the revision as it was: B06, B18; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import uncounted as known
from distro_traces.event import BATCH, Kind
from known_cases.run import EMPTY, Run, case
from known_cases.stamps import IP_PORT_CLIENT, brought, logged

# B06: health and expiry


def an_instance_that_falls_ill(
    run: Run, client: str, *, came: str = "B", why: str | None = "unhealthy", late: bool = False
) -> None:
    run.connect(client=client)
    run.change(7, "A", client=client)
    if not late:
        run.change(7, "B", client=client, detail=why)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest=came)
    if late:
        run.change(7, "B", client=client, detail=why)


@case("nacos-2.3.2", INV_REV=["B06", "B06"])
def health_under_the_revision_of_the_registration(run: Run) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true")


@case("nacos-2.3.2", (known.uncounted_beats, "of the HTTP API"), INV_REV=[None, None])
def two_contents_of_a_connection_under_one_revision(run: Run) -> None:
    an_instance_that_falls_ill(run, "c1")


@case("nacos-2.3.2", (known.uncounted_beats, "beats alone had made"), INV_REV=[None, "B06"])
def a_content_that_no_owner_had_under_that_revision(run: Run) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true", came="C")


@case("nacos-2.3.2", (known.uncounted_beats, "beats alone had made"), INV_REV=[None, "B06"])
def a_content_that_a_copy_had_before_its_owner(run: Run) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true", late=True)


@case("nacos-2.3.2", (known.uncounted_beats, "beats alone had made"), INV_REV=[None, None])
def a_registration_under_the_revision_of_the_one_before(run: Run) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true", why=None)


def another_owner_takes_over(run: Run, *, counts: bool = False) -> None:
    """a makes B of A; b gets that from it, becomes the owner, and makes C of it."""
    client = "10.0.1.1:80#true"
    run.connect(client=client)
    run.change(7, "A", client=client)
    run.change(7, "B", client=client, detail="unhealthy")
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="B")
    run.change(7, "C", node="b", client=client, detail=None if counts else "expired")
    run.is_over = True  # no checkpoint: they differ


@case("nacos-2.3.2", INV_REV=["B06", "B06", "B06"])
def beats_that_stay_out_at_two_owners_one_after_the_other(run: Run) -> None:
    another_owner_takes_over(run)


@case(
    "nacos-2.3.2",
    (known.uncounted_beats, "beats alone had made"),
    INV_REV=[None, "B06", "B06"],
)
def a_registration_at_the_next_owner_under_the_revision_of_before(run: Run) -> None:
    another_owner_takes_over(run, counts=True)


def a_copy_with_an_old_revision_becomes_the_owner(run: Run, *, counts: bool = False) -> None:
    """The copy of b keeps revision 7 with the content of 8 (B10); b becomes the owner, and makes C of that."""
    client = "10.0.1.1:80#true"
    run.connect(client=client)
    for revision, content in ((7, "A"), (8, "B")):
        run.change(revision, content, client=client)
        run.send("b", "CHANGE", client=client, revision=revision, digest=content)
        run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest=content)
    run.change(7, "C", node="b", client=client, detail=None if counts else "expired")
    run.is_over = True


@case("nacos-2.2.4", INV_REV=["B06", "B10"])
def beats_that_stay_out_at_the_owner_of_a_copy_with_an_old_revision(run: Run) -> None:
    a_copy_with_an_old_revision_becomes_the_owner(run)


@case("nacos-2.2.4", (known.uncounted_beats, "beats alone had made"), INV_REV=[None, "B10"])
def a_registration_at_the_owner_of_a_copy_with_an_old_revision(run: Run) -> None:
    a_copy_with_an_old_revision_becomes_the_owner(run, counts=True)


@case("nacos-2.1.1")
def health_where_no_revision_travels(run: Run) -> None:
    an_instance_that_falls_ill(run, "10.0.1.1:80#true")


def logs_of_an_expiry(
    run: Run,
    *,
    detail: str | None = "… in s expired",
    carried: int = 7,
    came: str = "B",
    client: str = IP_PORT_CLIENT,
) -> None:
    logged(run, EMPTY, kind=Kind.CLIENT_CONNECTED, client=client)
    logged(run, "A", client=client)
    brought(run, 7, 7, "A", client=client)
    logged(run, "A", "… in s is unhealthy", client=client)
    logged(run, "B", detail, client=client)
    brought(run, carried, 7, came, client=client)


@case("nacos-2.3.2", INV_REV=["B06"])
def logs_of_an_expiry_that_is_sent_under_the_revision_of_before(run: Run) -> None:
    logs_of_an_expiry(run)


@case("nacos-2.3.2", INV_REV=["B06"])
def logs_of_two_expiries_that_are_sent_as_one(run: Run) -> None:
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B", "… in s expired")
    logged(run, EMPTY, "… in t expired")
    brought(run, 7, 7, EMPTY)


@case("nacos-2.3.2", (known.expired_at_owner, "an instance expired"), INV_REV=[None])
def logs_of_a_withdrawal_that_is_sent_under_the_revision_of_before(run: Run) -> None:
    logs_of_an_expiry(run, detail=None)


@case("nacos-2.3.2", (known.expired_at_owner, "came from its owner"), INV_REV=[None])
def logs_of_an_expiry_that_is_sent_under_another_revision(run: Run) -> None:
    logs_of_an_expiry(run, carried=9)


@case("nacos-2.3.2", (known.expired_at_owner, "came from its owner"), INV_REV=[None])
def logs_of_an_expiry_after_which_a_copy_has_what_its_owner_never_had(run: Run) -> None:
    logs_of_an_expiry(run, came="X")


@case("nacos-2.3.2", (known.expired_at_owner, "changed it there"), INV_REV=[None])
def logs_of_an_expiry_after_a_withdrawal(run: Run) -> None:
    """That was the client's own, and should have moved the revision."""
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B")
    logged(run, EMPTY, "… in s expired")
    brought(run, 7, 7, EMPTY)


@case("nacos-2.3.2", (known.expired_at_owner, "of the HTTP API"), INV_REV=[None])
def logs_of_an_expiry_of_a_client_with_a_connection(run: Run) -> None:
    logs_of_an_expiry(run, client="c1")


# B18: a batch that is not counted


def a_batch_that_one_member_misses(run: Run, revision: int = 1, detail: str | None = BATCH) -> None:
    run.registered()
    run.change(revision, "B", detail=detail)
    run.send("b", "CHANGE", revision=revision, digest="B", detail=detail)
    run.apply("c", revision, "B")
    run.send("b", "VERIFY", revision=revision)


@case("nacos-2.2.4", INV_CONV=["B18"], INV_REV=["B18", "B18", "B18"])
def a_batch_under_the_revision_of_what_it_replaced(run: Run) -> None:
    a_batch_that_one_member_misses(run)


@case("nacos-2.2.4", (known.uncounted_batch, "a batch came between"), INV_REV=[None, None, None])
def a_change_that_is_not_counted_and_is_no_batch(run: Run) -> None:
    """As the message shows that carries it."""
    run.registered()
    run.change(1, "B")
    message = run.arrives("CHANGE", revision=1, digest="B")
    run.apply("b", 1, "B", message)
    run.answers("CHANGE", message)
    run.apply("c", 1, "B")


def a_first_batch_that_one_member_misses(run: Run) -> None:
    run.connect()
    run.apply("bc", 0, EMPTY)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B", detail=BATCH)
    run.apply("c", 0, "B")


@case("nacos-2.2.4", INV_CONV=["B18"])
def a_first_batch_under_the_revision_of_nothing(run: Run) -> None:
    a_first_batch_that_one_member_misses(run)
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.2.4", INV_CONV=[None])
def a_first_batch_and_a_copy_that_is_gone(run: Run) -> None:
    a_first_batch_that_one_member_misses(run)
    run.removed("b")


@case("nacos-2.2.4", (known.uncounted_batch, "published both"), INV_CONV=[None])
def a_batch_under_a_revision_of_its_own(run: Run) -> None:
    a_batch_that_one_member_misses(run, revision=2, detail=None)


@case("nacos-2.2.4", (known.uncounted_batch, "published both"), INV_CONV=[None])
def a_change_that_is_lost_after_a_batch_that_was_not_counted(run: Run) -> None:
    """b has neither of the two contents of that revision, but what came before them."""
    run.registered()
    run.change(2, "B")
    run.change(2, "C", detail=BATCH)
    run.apply("c", 2, "C")


@case("nacos-2.2.4", (known.uncounted_batch, "a batch came between"), INV_REV=[None, None])
def a_change_that_is_not_counted_and_that_no_message_carries(run: Run) -> None:
    run.registered()
    run.change(1, "B")
    run.apply("c", 1, "B")


@case("nacos-2.2.4", (known.uncounted_batch, "published both"), INV_REV=[None, "B18"])
def what_no_owner_published_under_the_revision_of_a_batch(run: Run) -> None:
    run.registered()
    run.change(1, "B", detail=BATCH)
    run.apply("b", 1, "X")


@case("nacos-2.2.4", (known.uncounted_batch, "has a connection"), INV_CONV=[None])
def a_batch_of_a_client_of_the_http_api(run: Run) -> None:
    client = "10.0.1.1:80#true"
    run.connect(client=client)
    run.change(7, "A", client=client)
    for node in "bc":
        run.row(node, Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="A")
    run.change(7, "B", client=client, detail=BATCH)
    run.send("c", "CHANGE", client=client, revision=7, digest="B", detail=BATCH)
    run.row("c", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="B")


@case("nacos-2.3.2", INV_CONV=[None])
def a_batch_that_is_not_counted_where_it_was_repaired(run: Run) -> None:
    a_batch_that_one_member_misses(run)


# What is about revisions says nothing of releases that have none


def sent_twice(run: Run) -> None:
    run.registered()
    for _ in range(2):
        run.send("b", "CHANGE", revision=1, digest="A")


@case("nacos-2.3.2", INV_AIM=[None])
def a_content_that_is_sent_again_though_it_was_confirmed(run: Run) -> None:
    sent_twice(run)


@case("nacos-2.0.4", INV_AIM=[])
def a_content_that_is_sent_again_where_one_revision_stands_for_all(run: Run) -> None:
    sent_twice(run)


@case("strict", INV_REV=[None, None])
def what_is_known_of_releases_is_news_in_strict(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")
