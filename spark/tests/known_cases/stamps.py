"""A copy that keeps its revision when its content changes: B10; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import stamps as known
from distro_traces.event import BATCH, Kind
from known_cases.run import EMPTY, Run, case

# B10: the stamp of creation


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_copy_that_keeps_the_stamp_of_its_creation(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_copy_that_keeps_its_stamp_when_the_change_leaves_after_its_client(run: Run) -> None:
    """The content was read before the client left (B05)."""
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.leave()
    last = run.arrives("CHANGE", revision=2, digest="B")
    run.apply("b", 1, "B", last)
    run.answers("CHANGE", last)
    for peer in "bc":
        run.send(peer, "DELETE")
        run.removed(peer)


def a_copy_that_took_over_one_revision_of_two(run: Run, *, batch: bool) -> None:
    run.registered()
    if batch:
        run.change(1, "B", detail=BATCH)  # not counted
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C", detail=BATCH if batch else None)
    run.apply("bc", 2, "C")
    run.change(3, "D")
    run.apply("b", 2, "D")


@case("nacos-2.2.4", INV_REV=["B10", "B18"])
def a_copy_that_keeps_the_stamp_of_its_last_batch(run: Run) -> None:
    a_copy_that_took_over_one_revision_of_two(run, batch=True)


@case("nacos-2.2.4", (known.creation_stamp, "has that revision since"), INV_REV=[None])
def a_copy_that_takes_over_revisions_and_then_one_not(run: Run) -> None:
    a_copy_that_took_over_one_revision_of_two(run, batch=False)


def a_copy_that_took_a_revision_over_with_a_snapshot(run: Run, detail: str | None) -> None:
    run.connect()
    run.apply("bc", 0, EMPTY)
    run.change(1, "A", detail=detail)
    run.apply("b", 1, "A", run.loads("b", "a"))
    run.change(2, "B")
    run.apply("b", 1, "B")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_copy_that_keeps_the_stamp_of_a_snapshot_with_a_batch(run: Run) -> None:
    a_copy_that_took_a_revision_over_with_a_snapshot(run, BATCH)


@case("nacos-2.2.4", (known.creation_stamp, "has that revision since"), INV_REV=[None])
def a_copy_that_keeps_the_stamp_of_a_snapshot_without_a_batch(run: Run) -> None:
    a_copy_that_took_a_revision_over_with_a_snapshot(run, None)


def a_batch_and_a_change_that_are_applied_at_once(run: Run, detail: str | None) -> None:
    """The copy has the revision of the one, the content of the other (B05), and later CHANGEs keep the revision."""
    run.registered()
    run.change(2, "B")
    batch = run.arrives("CHANGE", revision=2, digest="B", detail=detail)
    run.change(3, "C")
    change = run.arrives("CHANGE", revision=3, digest="C")
    run.apply("b", 1, "C", message=change)
    run.apply("b", 2, "C", message=batch)
    run.answers("CHANGE", change)
    run.answers("CHANGE", batch)
    run.change(4, "D")
    last = run.arrives("CHANGE", revision=4, digest="D")
    run.apply("b", 2, "D", message=last)
    run.answers("CHANGE", last)
    run.apply("c", 1, "D")


@case("nacos-2.2.4", INV_REV=["B05", "B10", "B10", "B10"])
def a_copy_that_keeps_the_stamp_of_a_torn_batch(run: Run) -> None:
    a_batch_and_a_change_that_are_applied_at_once(run, BATCH)


@case("nacos-2.2.4", INV_REV=[None, "B05", "B10", "B10"])
def a_copy_that_keeps_the_stamp_of_a_torn_change(run: Run) -> None:
    a_batch_and_a_change_that_are_applied_at_once(run, None)


def sent_on(run: Run, node: str, sent: int = 1, stamp: int = 2) -> None:
    """B under one revision, and b has it under another."""
    call = {
        "message": run.recorder.new_message_id(),
        "operation": "CHANGE",
        "client": "c1",
        "revision": sent,
        "digest": "B",
    }
    run.row(node, Kind.REQUEST_SENT, peer="b", **call)
    run.row("b", Kind.REQUEST_RECEIVED, peer=node, **call)
    run.apply("b", stamp, "B")


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_copy_that_is_sent_on_with_the_stamp_of_its_creation(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 1, "B")
    sent_on(run, "c")


@case("nacos-2.2.4", INV_REV=[None, None, "B10"])
def an_owner_that_sends_a_later_content_under_the_stamp_of_a_copy(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("c", 1, "B")
    sent_on(run, "a")


@case("nacos-2.2.4", INV_REV=[None])
def an_old_content_under_a_new_stamp_though_it_comes_back_later(run: Run) -> None:
    """B05 with the contents A, B, A: the copy moved on with its stamp, then A of revision 1 was written over."""
    run.registered(1, "A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.apply("b", 2, "A")
    run.change(3, "A")
    run.apply("bc", 3, "A")


@case("nacos-2.2.4", (known.creation_stamp, "under a later revision"), INV_REV=[None])
def an_old_content_on_a_copy_that_was_created_late(run: Run) -> None:
    """Its stamp is that of its creation, but what came was older: the owner published A again only afterwards."""
    run.connect()
    run.change(1, "A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.apply("b", 2, "A")
    run.change(3, "A")


@case("nacos-2.2.4", (known.creation_stamp, "under a later revision"), INV_REV=[None, None, None])
def a_later_content_that_only_a_copy_had(run: Run) -> None:
    """c, which is not the owner, sends what its client never published, under a revision that it never had."""
    run.registered()
    sent_on(run, "c", sent=2, stamp=1)


@case("nacos-2.2.4", (known.creation_stamp, "that brought the content"), INV_REV=[None])
def an_old_content_by_a_message_that_says_so(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    old = run.send("b", "CHANGE", revision=1, digest="A")
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.change(3, "A")
    run.apply("b", 2, "A", old)


@case("nacos-2.3.2", INV_REV=[None, None])
def the_stamp_of_creation_where_it_was_repaired(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("bc", 1, "B")


def an_old_copy_over_a_new_one(run: Run, message: str | None = None, content: str = "B") -> None:
    """b was sent C before the content of B came; by a snapshot, where no message is said."""
    run.connect()
    run.change(1, "B")
    run.apply("c", 1, "B")
    run.change(2, "C")
    run.apply("bc", 2, "C")
    run.apply("b", 2, content, message or run.loads("b", "c"))


@case("nacos-2.2.4", INV_REV=["B10"], INV_CONV=["B10"])
def a_late_snapshot_under_the_stamp_of_a_newer_copy(run: Run) -> None:
    an_old_copy_over_a_new_one(run)


def an_empty_copy_over_a_new_one(run: Run, also_sent: str | None = None) -> None:
    """As embedded nodes record it, whose rows do not say which message brought them; c had missed the change."""
    run.connect()
    run.apply("c", 0, EMPTY)
    run.change(1, "B")
    run.send("b", "CHANGE", revision=1, digest="B")
    run.apply("b", 1, "B")
    with run.at_one_instant():
        if also_sent is None:
            run.loads("b", "c")
        else:
            run.send("b", "CHANGE", revision=0, digest=also_sent)
        run.apply("b", 1, EMPTY)
    run.leave()
    run.removed("bc")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_late_snapshot_of_which_no_row_says(run: Run) -> None:
    an_empty_copy_over_a_new_one(run)


def an_earlier_copy_over_a_new_one(run: Run, sent_before_start: bool) -> None:
    """b was sent both contents, the one or both of them since it was started."""
    run.connect()
    run.change(1, "A")
    if sent_before_start:
        run.send("b", "CHANGE", revision=1, digest="A")
        run.apply("b", 1, "A")
    run.row("b", Kind.NODE_STOPPED, detail="crash")
    run.row("b", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("c", 1, "A")
    run.change(2, "B")
    run.send("b", "CHANGE", revision=2, digest="B")
    run.apply("b", 2, "B")
    with run.at_one_instant():
        run.loads("b", "c")
        if not sent_before_start:
            run.send("b", "CHANGE", revision=1, digest="A")
        run.apply("b", 2, "A")
    run.leave()
    run.removed("bc")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_late_snapshot_with_what_was_sent_to_the_node_before_it_started(run: Run) -> None:
    an_earlier_copy_over_a_new_one(run, sent_before_start=True)


@case("nacos-2.2.4", INV_REV=["B10", "B10"])
def a_snapshot_of_who_took_a_late_one_over_a_newer_copy(run: Run) -> None:
    an_old_copy_over_a_new_one(run)
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    run.apply("c", 2, "B", run.loads("c", "b"))


@case("nacos-2.2.4", (known.snapshot_under_stamp, "replaced a copy"), INV_REV=[None])
def a_snapshot_of_who_had_no_late_one(run: Run) -> None:
    run.connect()
    run.change(1, "B")
    run.change(2, "C")
    run.apply("c", 2, "C")
    run.apply("b", 2, "B", run.loads("b", "c"))


@case("nacos-2.2.4", INV_REV=[None])
def a_late_change_which_its_arrival_shows_after_the_node_started(run: Run) -> None:
    an_earlier_copy_over_a_new_one(run, sent_before_start=False)


@case("nacos-2.2.4", INV_REV=[None])
def a_late_change_which_only_its_arrival_shows(run: Run) -> None:
    an_empty_copy_over_a_new_one(run, also_sent=EMPTY)


@case("nacos-2.2.4", (known.snapshot_under_stamp, "came with a snapshot"), INV_REV=[None], INV_CONV=[None])
def a_late_change_under_the_stamp_of_a_newer_copy(run: Run) -> None:
    run.connect()
    run.change(1, "B")
    message = run.send("b", "CHANGE", revision=1, digest="B")
    an_old_copy_over_a_new_one(run, message)


@case("nacos-2.2.4", (known.snapshot_under_stamp, "has its revision since"), INV_REV=[None], INV_CONV=[None])
def a_late_snapshot_on_a_copy_that_moves_on(run: Run) -> None:
    """Its stamp is not the one that it was created with: it takes over revisions."""
    run.registered()
    run.change(2, "B")
    run.apply("c", 2, "B")
    run.change(3, "C")
    run.apply("bc", 3, "C")
    run.apply("b", 3, "B", run.loads("b", "c"))


@case("nacos-2.2.4", INV_REV=["B10", "B18", "B18", "B18"], INV_CONV=["B10"])
def a_late_snapshot_under_the_stamp_that_came_with_a_batch(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    run.change(1, "B", detail=BATCH)
    run.apply("bc", 1, "B")
    run.change(2, "C")
    run.send("b", "CHANGE", revision=2, digest="C", detail=BATCH)
    run.apply("bc", 2, "C")
    run.apply("b", 2, "A", run.loads("b", "c"))


@case("nacos-2.2.4", (known.snapshot_under_stamp, "under an earlier revision"), INV_REV=[None], INV_CONV=[None])
def a_snapshot_with_what_its_client_never_published(run: Run) -> None:
    an_old_copy_over_a_new_one(run, content="X")


@case("nacos-2.3.2", INV_REV=[None], INV_CONV=[None])
def a_late_snapshot_under_a_newer_stamp_where_it_was_repaired(run: Run) -> None:
    an_old_copy_over_a_new_one(run)


# Clients of the HTTP API, whose revision is a hash


def a_copy_of_a_ip_port_client(run: Run, revision: int) -> None:
    """Its owner moves on to a smaller number, and the copy takes over the content only."""
    client = "10.0.1.1:80#true"
    run.connect(client=client)
    run.change(7, "A", client=client)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="A")
    run.change(revision, "B", client=client)
    run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=7, digest="B" if revision < 7 else "C")


@case("nacos-2.2.4", INV_REV=["B10"])
def a_copy_of_a_ip_port_client_that_keeps_the_stamp_of_its_creation(run: Run) -> None:
    a_copy_of_a_ip_port_client(run, -3)


@case("nacos-2.2.4", (known.creation_stamp, "under a later revision"), INV_REV=[None])
def a_copy_of_a_ip_port_client_with_what_no_owner_published(run: Run) -> None:
    a_copy_of_a_ip_port_client(run, 9)


@case("nacos-2.3.2", INV_REV=[None])
def a_copy_of_a_ip_port_client_that_keeps_its_stamp_where_that_was_repaired(run: Run) -> None:
    a_copy_of_a_ip_port_client(run, -3)


# In logs an owner does not say its revisions, and a message says its own where it arrives


IP_PORT_CLIENT = "10.0.1.1:80#true"


def logged(
    run: Run, content: str, detail: str | None = None, kind: Kind = Kind.CLIENT_CHANGED, client: str = IP_PORT_CLIENT
) -> None:
    run.row("a", kind, client=client, owned=True, digest=content, detail=detail)


def brought(run: Run, carried: int, revision: int | None, content: str, client: str = IP_PORT_CLIENT) -> None:
    """A CHANGE of a to b, which has this revision and content afterwards."""
    call = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": client}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call)
    run.row("b", Kind.REQUEST_RECEIVED, peer="a", revision=carried, **call)
    run.row(
        "b",
        Kind.REPLICA_APPLIED,
        client=client,
        owned=False,
        revision=revision,
        digest=content,
        message=call["message"],
    )


def logs_of_a_change(run: Run, carried: int, came: str, *, read: bool = False) -> None:
    logged(run, "A")
    brought(run, 7, 7, "A")
    logged(run, "B")
    brought(run, carried, None if read else 7, came)
    if read:
        run.row("b", Kind.OBSERVED, client=IP_PORT_CLIENT, owned=False, revision=7, digest=came)


@case("nacos-2.2.4", INV_REV=["B10"])
def logs_of_a_copy_that_keeps_the_stamp_of_its_creation(run: Run) -> None:
    logs_of_a_change(run, 9, "B")


@case("nacos-2.2.4", INV_REV=["B10"])
def logs_of_a_copy_whose_stamp_a_failed_verify_shows(run: Run) -> None:
    logs_of_a_change(run, 9, "B", read=True)


@case("nacos-2.2.4", INV_REV=[None])
def logs_of_a_content_that_its_owner_did_not_have_when_it_sent_it(run: Run) -> None:
    logs_of_a_change(run, 9, "X")


@case("nacos-2.2.4", INV_REV=[None])
def logs_of_a_content_that_its_owner_did_not_have_and_a_failed_verify(run: Run) -> None:
    logs_of_a_change(run, 9, "X", read=True)


@case("nacos-2.2.4", (known.creation_stamp, "that brought the content"), INV_REV=[None])
def logs_of_another_content_by_a_message_of_the_same_revision(run: Run) -> None:
    logs_of_a_change(run, 7, "B")
