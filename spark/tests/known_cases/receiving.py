"""What a node does with what it is sent and asked: B01, B02, B27, B33; with near misses."""

from __future__ import annotations

from distro_spark.history import LEASE
from distro_spark.symptoms import receiving as known
from distro_traces.event import Kind, Outcome
from known_cases.run import EMPTY, STEP_MS, Run, case

# B33: a snapshot before the load


def a_snapshot_before_the_own_load(run: Run, *, asked: bool = True, waits_ms: int = 0) -> None:
    own, given = ({"operation": "SNAPSHOT", "message": message} for message in ("m1", "m2"))
    run.row("a", Kind.REQUEST_SENT, peer="b", **own)
    run.after(waits_ms)
    if asked:
        run.row("a", Kind.REQUEST_RECEIVED, peer="c", **given)
    run.row("a", Kind.REPLY_SENT, peer="c", **given, outcome=Outcome.SUCCESS)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **own, outcome=Outcome.SUCCESS)


@case("nacos-2.5.1", INV_INIT=["B33"])
def a_snapshot_from_a_node_that_waits_for_its_own(run: Run) -> None:
    a_snapshot_before_the_own_load(run)


@case("nacos-2.5.1", (known.gave_a_snapshot, "had asked it"), INV_INIT=[None])
def a_snapshot_that_no_member_has_asked_for(run: Run) -> None:
    a_snapshot_before_the_own_load(run, asked=False)


def a_snapshot_before_the_own_request(run: Run, waits_ms: int) -> None:
    run.after(waits_ms)
    given = {"operation": "SNAPSHOT", "message": "m2"}
    run.row("a", Kind.REQUEST_RECEIVED, peer="c", **given)
    run.row("a", Kind.REPLY_SENT, peer="c", **given, outcome=Outcome.SUCCESS)
    run.loads("a", "b")


@case("nacos-2.2.0", INV_INIT=["B33"])
def a_snapshot_from_a_node_whose_own_load_is_due_later(run: Run) -> None:
    a_snapshot_before_the_own_request(run, 55_000)


@case("nacos-2.2.0", (known.gave_a_snapshot, "its own load"), INV_INIT=[None])
def a_snapshot_from_a_node_whose_own_load_is_overdue(run: Run) -> None:
    a_snapshot_before_the_own_request(run, 65_000)


@case("nacos-2.5.1", (known.gave_a_snapshot, "its own load"), INV_INIT=[None])
def a_snapshot_from_a_node_that_has_given_up_its_own(run: Run) -> None:
    a_snapshot_before_the_own_load(run, waits_ms=300_000)


def a_snapshot_after_minutes(run: Run, *reached: str) -> None:
    """c is down, and the link to b is cut, but for a minute in the middle for those that are reached."""
    run.row("a", Kind.LINK_FAULT, peer="b", detail="cut")
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.after(120_000)
    if "b" in reached:
        run.row("a", Kind.LINK_FAULT, peer="b", detail="healed")
    if "c" in reached:
        run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    run.after(60_000)
    run.row("a", Kind.LINK_FAULT, peer="b", detail="cut")
    run.row("c", Kind.NODE_STOPPED, detail="crash")
    run.after(120_000)
    run.row("c", Kind.NODE_STARTED, detail="a,b,c")
    given = {"operation": "SNAPSHOT", "message": "m2"}
    run.row("a", Kind.REQUEST_RECEIVED, peer="c", **given)
    run.row("a", Kind.REPLY_SENT, peer="c", **given, outcome=Outcome.SUCCESS)
    run.loads("a", "c")


@case("nacos-2.5.1", INV_INIT=["B33"])
def a_snapshot_from_a_node_that_has_reached_no_member_for_minutes(run: Run) -> None:
    a_snapshot_after_minutes(run)


@case("nacos-2.5.1", (known.gave_a_snapshot, "its own load"), INV_INIT=[None])
def a_snapshot_from_a_node_that_has_not_asked_the_member_of_a_mended_link(run: Run) -> None:
    a_snapshot_after_minutes(run, "b")


@case("nacos-2.5.1", (known.gave_a_snapshot, "its own load"), INV_INIT=[None])
def a_snapshot_from_a_node_that_has_not_asked_a_member_that_was_back(run: Run) -> None:
    a_snapshot_after_minutes(run, "c")


@case("nacos-2.5.1", (known.gave_a_snapshot, "its own load"), INV_INIT=[None])
def a_verify_from_a_node_that_waits_for_its_snapshot(run: Run) -> None:
    call = {"operation": "SNAPSHOT", "message": "m1"}
    run.row("a", Kind.REQUEST_SENT, peer="b", **call)
    run.registered()
    run.send("b", "VERIFY", revision=1)
    run.row("a", Kind.REPLY_RECEIVED, peer="b", **call, outcome=Outcome.SUCCESS)


# B27: a snapshot that comes late


def an_owner_that_loads_late(run: Run, revision: int = 1, content: str = "A") -> None:
    run.registered()
    run.leave()
    run.apply("a", revision, content, run.loads("a", "b"))
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", INV_CONV=["B27"])
def an_owner_that_loads_late_what_has_left_it(run: Run) -> None:
    an_owner_that_loads_late(run)


@case("nacos-2.2.4", INV_CONV=["B27"])
def a_node_that_loads_late_what_has_left_already(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.leave()
    run.send("c", "DELETE")
    run.apply("c", 1, "A", run.loads("c", "b"))
    run.send("b", "DELETE")
    run.removed("b")


@case("nacos-2.2.4", INV_CONV=["B27"])
def an_owner_that_does_not_say_that_it_loads_what_has_left_it(run: Run) -> None:
    """Rows of embedded nodes do not say which message brought a copy; it comes in the instant of the answer."""
    has_what_has_left_it(run, after_ms=0)


@case("nacos-2.2.4", (known.came_back, "came with a snapshot"), INV_CONV=[None])
def an_owner_that_has_what_has_left_it_later_than_its_load(run: Run) -> None:
    has_what_has_left_it(run, after_ms=100)


@case("nacos-2.2.4", (known.came_back, "came with a snapshot"), INV_CONV=[None])
def an_owner_in_which_a_probe_reads_something_else_than_the_snapshot_brought(run: Run) -> None:
    an_owner_that_loads_late_what_has_left_it(run)
    run.row("a", Kind.OBSERVED, client="c1", revision=1, digest="X")


@case("nacos-2.2.4", (known.came_back, "still held the client"), INV_CONV=[None])
def a_snapshot_from_a_node_that_had_confirmed_the_delete(run: Run) -> None:
    run.registered()
    run.leave()
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")
    run.after(60_000)
    run.apply("a", 1, "A", run.loads("a", "b"))


def has_what_has_left_it(run: Run, after_ms: int) -> None:
    run.registered()
    run.leave()
    run.loads("a", "b")
    run.at_ms += after_ms - STEP_MS
    run.apply("a", 1, "A")
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", (known.came_back, "came with a snapshot"), INV_CONV=[None])
def a_node_that_is_sent_what_has_left_after_it_has_loaded(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.leave()
    run.loads("c", "b")
    run.send("c", "CHANGE", revision=1, digest="A")
    run.apply("c", 1, "A")
    run.send("b", "DELETE")
    run.removed("b")


@case("nacos-2.2.4", (known.came_back, "came with a snapshot"), INV_CONV=[None])
def an_owner_that_takes_back_what_has_left_it_with_no_snapshot(run: Run) -> None:
    run.registered()
    run.leave()
    run.apply("a", 1, "A")
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("bc")


@case("nacos-2.2.4", (known.came_back, "had left its owner"), INV_CONV=[None])
def a_copy_that_came_with_a_snapshot_while_its_client_was_there(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.apply("c", 1, "A", run.loads("c", "b"))
    run.leave()
    run.send("b", "DELETE")
    run.removed("b")


@case("nacos-2.2.4", (known.came_back, "confirmed no DELETE since"), INV_CONV=[None])
def a_copy_that_came_late_and_stays_when_it_is_deleted(run: Run) -> None:
    run.connect()
    run.change(1, "A")
    run.apply("b", 1, "A")
    run.leave()
    run.apply("c", 1, "A", run.loads("c", "b"))
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("b")


@case("nacos-3.0.3", (known.came_back, "published by its client"), INV_CONV=[None])
def an_owner_that_loads_late_what_was_never_published(run: Run) -> None:
    an_owner_that_loads_late(run, 7, "X")


@case("nacos-2.2.4", (known.came_back, "its lease"), INV_CONV=[None])
def a_copy_that_came_late_and_stays_when_its_lease_is_over(run: Run) -> None:
    an_owner_that_loads_late_what_has_left_it(run)
    run.after(200_000)


@case("nacos-2.2.4", INV_CONV=[None])
def a_copy_that_stays_at_one_node_and_its_owner_is_started_again_later(run: Run) -> None:
    """What the owner holds at the checkpoint is nothing, whatever becomes of it afterwards."""
    run.registered()
    run.leave()
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("c")
    run.after(20_000)
    run.checkpoint()
    run.row("a", Kind.NODE_STOPPED, detail="crash")
    run.row("a", Kind.NODE_STARTED, detail="a,b,c")
    run.is_over = True


# B02: a verify that looks at nothing


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_that_a_verify_confirms(run: Run) -> None:
    run.registered(0)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", (known.confirmed_unread, "published by its client"), INV_CONV=[None])
def a_lost_change_and_a_copy_that_has_what_was_never_published(run: Run) -> None:
    run.registered(0)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")
    run.apply("b", 0, "X")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_of_a_client_that_leaves_in_the_millisecond_of_the_checkpoint(run: Run) -> None:
    a_lost_change_that_a_verify_confirms(run)
    run.checkpoint()
    run.at_ms -= 200  # that of the checkpoint of b, which is later than that of a
    run.leave()
    run.is_over = True


def a_lost_change_to_nothing(run: Run) -> None:
    run.registered(0)
    run.change(0, EMPTY)
    run.send("b", "CHANGE", revision=0, digest=EMPTY)
    run.apply("c", 0, EMPTY)
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_of_a_client_that_publishes_nothing_any_more(run: Run) -> None:
    a_lost_change_to_nothing(run)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_to_nothing_of_a_client_that_leaves_in_the_millisecond_of_the_checkpoint(run: Run) -> None:
    a_lost_change_to_nothing(run)
    run.checkpoint()
    run.at_ms -= 200
    run.leave()
    run.is_over = True


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_lost_change_to_nothing_of_a_client_that_its_former_owner_lets_go(run: Run) -> None:
    a_lost_change_to_nothing(run)
    for node in "ac":
        run.row(node, Kind.REPLICA_REMOVED, client="c1", owned=False, detail=LEASE)


def a_stale_copy_by_a_snapshot(
    run: Run, content: str = "A", *, had: str = "A", loads: bool = True, verifies: bool = True
) -> None:
    """c missed a change, and sends b its copy later."""
    run.registered(0)
    if had != "A":
        run.change(0, had)
        for peer in "bc":
            run.send(peer, "CHANGE", revision=0, digest=had)
        run.apply("bc", 0, had)
    run.change(0, "B")
    for peer in "bc":
        run.send(peer, "CHANGE", revision=0, digest="B")
    run.apply("b", 0, "B")
    run.send("c", "VERIFY", revision=0)
    run.apply("b", 0, content, run.loads("b", "c") if loads else None)
    if verifies:
        run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02", "B02"])
def a_snapshot_with_a_copy_that_missed_a_change(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run)


@case("nacos-2.0.4", INV_CONV=["B02", "B02"])
def a_snapshot_with_a_copy_without_instances_that_missed_a_change(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run, EMPTY, had=EMPTY)


@case("nacos-2.0.4", (known.confirmed_since_loaded, "the node that sent the snapshot held"), INV_CONV=[None, "B02"])
def a_snapshot_with_a_content_that_its_sender_does_not_hold(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run, "X")


@case("nacos-2.0.4", (known.confirmed_since_loaded, "they differ since"), INV_CONV=[None, "B02"])
def a_stale_copy_that_came_with_no_snapshot(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run, loads=False)


@case("nacos-2.0.4", (known.confirmed_since_loaded, "a verify has confirmed"), INV_CONV=[None, "B02"])
def a_snapshot_with_a_stale_copy_that_no_verify_confirms(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run, verifies=False)


@case("nacos-2.0.4", INV_CONV=[None, None])
def a_snapshot_with_a_stale_copy_of_a_client_that_has_left(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run)
    run.leave()


@case("nacos-2.3.2", INV_CONV=[None, None])
def a_snapshot_with_a_stale_copy_where_a_verify_asks_for_more(run: Run) -> None:
    a_stale_copy_by_a_snapshot(run)


@case("nacos-2.0.4", (known.confirmed_unread, "has not left"), INV_CONV=[None])
def a_client_that_has_left_and_is_held_though_a_verify_confirmed_it(run: Run) -> None:
    a_lost_change_to_nothing(run)
    run.leave()


@case("nacos-2.0.4", (known.confirmed_unread, "a verify has confirmed"), INV_CONV=[None])
def a_lost_change_that_no_verify_confirms(run: Run) -> None:
    run.registered(0)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")


@case("nacos-2.0.4", (known.confirmed_unread, "a verify has confirmed"), INV_CONV=[None])
def a_lost_change_that_a_verify_came_before(run: Run) -> None:
    run.registered(0)
    run.send("b", "VERIFY", revision=0)
    run.after(1_000)
    run.change(0, "B")
    run.send("b", "CHANGE", revision=0, digest="B")
    run.apply("c", 0, "B")


@case("nacos-2.0.4", (known.confirmed_unread, "acknowledged and not applied"), INV_CONV=[None])
def a_change_that_is_never_sent_after_one_that_was_applied(run: Run) -> None:
    run.registered(0)
    run.send("b", "CHANGE", revision=0, digest="A")
    run.change(0, "B")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", (known.confirmed_unread, "acknowledged and not applied"), INV_CONV=[None])
def a_change_that_fails_and_is_not_sent_again(run: Run) -> None:
    run.registered(0)
    run.change(0, "B")
    run.fails(run.send("b", "CHANGE", None, revision=0, digest="B"), "b")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


def a_change_while_b_is_listed(run: Run, members: str, *, after_another: bool = False) -> None:
    run.registered(0)
    if after_another:
        run.change(0, "C")
        run.send("b", "CHANGE", revision=0, digest="C")
        run.apply("bc", 0, "C")
    run.row("a", Kind.MEMBERS_CHANGED, detail=members)
    run.change(0, "B")
    run.apply("c", 0, "B")
    run.after(8_000)
    run.row("a", Kind.MEMBERS_CHANGED, detail="a,b,c")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_change_that_is_due_for_who_is_no_member_and_comes_back(run: Run) -> None:
    a_change_while_b_is_listed(run, "a,c")


@case("nacos-2.0.4", INV_CONV=["B02"])
def a_second_change_that_is_due_for_who_is_no_member_and_comes_back(run: Run) -> None:
    a_change_while_b_is_listed(run, "a,c", after_another=True)


@case("nacos-2.0.4", (known.confirmed_unread, "acknowledged and not applied"), INV_CONV=[None])
def a_second_change_that_is_due_for_who_is_a_member_and_is_never_sent(run: Run) -> None:
    a_change_while_b_is_listed(run, "a,b", after_another=True)


@case("nacos-2.3.2", INV_CONV=[None])
def a_change_that_is_due_for_who_is_no_member_where_a_verify_asks_for_more(run: Run) -> None:
    a_change_while_b_is_listed(run, "a,c")


@case("nacos-2.0.4", (known.confirmed_unread, "acknowledged and not applied"), INV_CONV=[None])
def a_change_that_is_due_for_who_is_a_member_and_is_never_sent(run: Run) -> None:
    a_change_while_b_is_listed(run, "a,b")


@case("nacos-2.0.4", (known.confirmed_unread, "acknowledged and not applied"), INV_CONV=[None])
def a_change_that_was_never_sent(run: Run) -> None:
    run.registered(0)
    run.change(0, "B")
    run.apply("c", 0, "B")
    run.send("b", "VERIFY", revision=0)


@case("nacos-2.1.2", INV_CONV=[None])
def a_lost_change_that_a_verify_of_its_revision_confirms(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.send("b", "CHANGE", revision=2, digest="B")
    run.apply("c", 2, "B")
    run.send("b", "VERIFY", revision=2)


# B01: a message applied to a client of one's own


def a_revision_that_is_used_twice(run: Run, *, replaced: bool = True, garbage: bool = False) -> None:
    """What c sends takes the client back to revision 1, after which it publishes C under a revision that it has used.
    Or an hour later b has under that revision what the client never published."""
    run.registered()
    run.change(2, "B")
    run.apply("bc", 2, "B")
    run.brought("a", 1 if replaced else 2, "A" if replaced else "B")
    if garbage:
        run.after(3_600_000)
        run.apply("b", 2, "X")
    else:
        run.change(2, "C")
        run.apply("bc", 2, "C")


@case("nacos-2.5.1", INV_REV=["B01", "B01", "B01"], INV_NATIVE=["B01"])
def a_revision_used_twice_after_a_change_took_the_client_back(run: Run) -> None:
    a_revision_that_is_used_twice(run)


@case("nacos-2.5.1", INV_REV=["B01"], INV_NATIVE=["B01"])
def a_revision_used_twice_after_a_snapshot_took_the_client_back(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.apply("a", 1, "A", run.loads("a", "b"), owned=True)
    run.change(2, "C")


@case("nacos-2.5.1", (known.reused_since_overwritten, "had replaced the client"), INV_REV=[None, None, None])
def a_revision_used_twice_after_the_same_content_came(run: Run) -> None:
    a_revision_that_is_used_twice(run, replaced=False)


@case("nacos-2.5.1", (known.reused_since_overwritten, "had replaced the client"), INV_REV=[None])
def garbage_an_hour_after_the_same_content_came(run: Run) -> None:
    a_revision_that_is_used_twice(run, replaced=False, garbage=True)


@case("nacos-2.5.1", (known.reused_since_overwritten, "held both contents"), INV_REV=[None], INV_NATIVE=["B01"])
def garbage_at_another_node_an_hour_after_a_change_took_the_client_back(run: Run) -> None:
    a_revision_that_is_used_twice(run, garbage=True)


@case("nacos-2.5.1", (known.reused_since_overwritten, "had replaced the client"), INV_REV=[None])
def a_revision_used_twice_by_an_owner_that_no_message_touched(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.change(2, "C")


@case(
    "nacos-2.5.1",
    (known.reused_since_overwritten, "held both contents"),
    INV_REV=[None, None, None, None],
    INV_NATIVE=[None, "B01"],
)
def a_revision_used_twice_before_the_snapshot_came(run: Run) -> None:
    run.registered()
    run.change(2, "B")
    run.change(2, "C")
    run.brought("a", 2, "D")
    run.apply("b", 2, "C")


@case("nacos-2.5.1", (known.overwritten, "brought that"), INV_NATIVE=[None])
def a_client_that_changes_with_no_message(run: Run) -> None:
    run.registered()
    run.apply("a", 2, "B", owned=True)


@case("nacos-2.5.1", (known.overwritten, "a copy was applied"), INV_NATIVE=[None])
def a_client_that_is_removed_while_it_is_connected(run: Run) -> None:
    run.registered()
    run.removed("a")


def an_owner_that_takes_the_content_of_before(
    run: Run,
    revision: int,
    *,
    is_verified: bool = True,
    verified_before: bool = False,
    is_brought: bool = True,
    garbage: bool = False,
) -> None:
    """By a CHANGE of c, and what it sends of that b acknowledges without having got it. Or b comes to hold what was
    never published."""
    run.registered()
    run.change(2, "B")
    run.apply("bc", 2, "B")
    if verified_before:
        run.send("b", "VERIFY", revision=2)
    if is_brought:
        run.brought("a", revision, "A")
    else:
        run.change(revision, "A")
    run.apply("c", revision, "A")
    run.send("b", "CHANGE", revision=revision, digest="A")
    if garbage:
        run.apply("b", revision, "X")
    if is_verified:
        run.send("b", "VERIFY", revision=revision)


@case("nacos-2.5.1", INV_CONV=["B01"])
def a_copy_that_is_confirmed_since_its_owner_took_another_under_the_same_revision(run: Run) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2)


@case("nacos-2.5.1", (known.confirmed_since_overwritten, "published by its client"), INV_CONV=[None])
def a_copy_that_has_what_was_never_published_since_its_owner_took_another(run: Run) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2, garbage=True)


@case("nacos-2.5.1", (known.confirmed_since_overwritten, "left its revision"), INV_CONV=[None])
def a_copy_that_is_confirmed_although_its_owner_took_another_revision(run: Run) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=1)


@case("nacos-2.5.1", (known.confirmed_since_overwritten, "a verify has confirmed"), INV_CONV=[None])
def a_copy_that_no_verify_confirmed_since_its_owner_took_another(run: Run) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2, is_verified=False, verified_before=True)


@case("nacos-2.5.1", (known.confirmed_since_overwritten, "they differ since"), INV_CONV=[None])
def a_copy_that_is_confirmed_since_its_client_published_another_under_the_same_revision(run: Run) -> None:
    an_owner_that_takes_the_content_of_before(run, revision=2, is_brought=False)
