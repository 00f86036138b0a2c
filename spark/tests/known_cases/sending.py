"""What an owner never sends: B24, D7; with near misses."""

from __future__ import annotations

from distro_spark.symptoms import sending as known
from distro_traces.event import Kind, Outcome
from known_cases.run import STEP_MS, Run, case

# B24: a DELETE that the retry of a CHANGE replaced


@case("nacos-2.2.4", INV_CONV=["B24"])
def a_change_that_fails_before_the_delete_is_due(run: Run) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.5.1", INV_CONV=["B24"])
def the_same_in_a_release_that_no_target_is_of(run: Run) -> None:
    a_change_that_fails_before_the_delete_is_due(run)


@case("nacos-3.0.3", (known.swallowed, "published by its client"), INV_CONV=[None], INV_DELETE=["B24"])
def a_change_that_fails_before_the_delete_is_due_to_a_copy_that_was_never_published(run: Run) -> None:
    a_change_that_fails_before_the_delete_is_due(run)
    run.apply("b", 7, "X")


def a_delete_that_failed_and(run: Run, *, change_fails_ms: int | None) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(1_000)
    run.send("b", "DELETE", Outcome.FAIL)
    if change_fails_ms is not None:
        run.after(change_fails_ms)
        run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", INV_CONV=["B24"])
def a_change_that_fails_before_the_delete_is_due_again(run: Run) -> None:
    a_delete_that_failed_and(run, change_fails_ms=1_000)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_change_that_fails_long_after_the_delete_was_due_again(run: Run) -> None:
    a_delete_that_failed_and(run, change_fails_ms=5_000)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_delete_that_failed_and_is_not_sent_again(run: Run) -> None:
    a_delete_that_failed_and(run, change_fails_ms=None)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_change_that_fails_long_after_the_delete_was_due(run: Run) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(2_000)
    run.fails(change, "b")
    run.send("c", "DELETE")
    run.removed("c")


def a_change_that_fails_after_the_delete_could_not_be_sent(run: Run, *, peer: str = "b", healed: bool = False) -> None:
    """The owner believes b to be down when the DELETE is due, which then fails without a request, as does its retry."""
    run.registered()
    run.row("a", Kind.LINK_FAULT, peer=peer, detail="held")
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(1_000)
    run.send("c", "DELETE")
    run.removed("c")
    run.after(500)
    if healed:
        run.row("a", Kind.LINK_FAULT, peer=peer, detail="released")
    run.fails(change, "b")
    if not healed:
        run.row("a", Kind.LINK_FAULT, peer=peer, detail="released")


@case("nacos-2.2.4", INV_CONV=["B24"])
def a_change_that_fails_before_the_link_works_again(run: Run) -> None:
    a_change_that_fails_after_the_delete_could_not_be_sent(run)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_change_that_fails_when_the_link_works_again(run: Run) -> None:
    a_change_that_fails_after_the_delete_could_not_be_sent(run, healed=True)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_change_that_fails_while_another_link_is_broken(run: Run) -> None:
    a_change_that_fails_after_the_delete_could_not_be_sent(run, peer="c")


def a_change_that_is_owed(run: Run, *, cut: bool) -> None:
    """The owner discards what it cannot send."""
    run.registered()
    if cut:
        run.row("a", Kind.LINK_FAULT, peer="b", detail="cut")
    run.change(2, "B")
    run.send("c", "CHANGE", revision=2, digest="B")
    run.apply("c", 2, "B")
    run.leave()
    if cut:
        run.row("a", Kind.LINK_FAULT, peer="b", detail="healed")
    run.after(500)
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_is_owed_and_never_fails_while_the_link_is_cut(run: Run) -> None:
    a_change_that_is_owed(run, cut=True)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_is_owed_and_never_sent_over_a_sound_link(run: Run) -> None:
    a_change_that_is_owed(run, cut=False)


def a_change_that_is_repeated(run: Run, *, leaves_after_ms: int, mended_ms: int = 0) -> None:
    """Its retries fail without a request, 3 s after each other; after the second change 1 s after the first failure.
    `mended_ms`: so long before the client leaves."""
    run.registered()
    run.row("a", Kind.LINK_FAULT, peer="b", detail="cut")
    run.change(2, "B")
    run.after(1_000)
    run.send("b", "CHANGE", Outcome.UNREACHABLE, revision=2, digest="B")
    run.after(500 - STEP_MS)
    run.change(3, "C")
    run.after(leaves_after_ms - 500 - mended_ms - STEP_MS)
    if mended_ms:
        run.row("a", Kind.LINK_FAULT, peer="b", detail="healed")
        run.after(mended_ms - 2 * STEP_MS)
    run.leave()
    run.after(1_000)
    if not mended_ms:
        run.row("a", Kind.LINK_FAULT, peer="b", detail="healed")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", INV_CONV=["B24"], INV_DELETE=["B24"])
def a_change_that_fails_without_a_request_when_the_client_leaves(run: Run) -> None:
    a_change_that_is_repeated(run, leaves_after_ms=4_000)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_fails_without_a_request_before_the_client_leaves(run: Run) -> None:
    a_change_that_is_repeated(run, leaves_after_ms=4_500)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_would_fail_without_a_request_after_the_client_leaves(run: Run) -> None:
    a_change_that_is_repeated(run, leaves_after_ms=3_500)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_is_due_over_a_mended_link_when_the_client_leaves(run: Run) -> None:
    a_change_that_is_repeated(run, leaves_after_ms=10_000, mended_ms=6_000)


@case("nacos-2.2.4", INV_CONV=["B24"], INV_DELETE=["B24"])
def a_change_that_is_due_before_the_owner_has_noticed_that_the_link_is_mended(run: Run) -> None:
    a_change_that_is_repeated(run, leaves_after_ms=4_000, mended_ms=2_000)


def a_change_that_no_request_is_made_for(run: Run, *, leaves_after_ms: int) -> None:
    """It is due 1 s after the change and 3 s after that, while the owner believes b to be down all the time."""
    run.registered()
    run.row("a", Kind.LINK_FAULT, peer="b", detail="cut")
    run.change(2, "B")
    run.after(leaves_after_ms - STEP_MS)
    run.leave()
    run.after(1_000)
    run.row("a", Kind.LINK_FAULT, peer="b", detail="healed")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", INV_CONV=["B24"], INV_DELETE=["B24"])
def a_change_that_fails_without_any_request_when_the_client_leaves(run: Run) -> None:
    a_change_that_no_request_is_made_for(run, leaves_after_ms=4_000)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_fails_without_any_request_before_the_client_leaves(run: Run) -> None:
    a_change_that_no_request_is_made_for(run, leaves_after_ms=4_500)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_that_has_failed_too_often_without_any_request(run: Run) -> None:
    a_change_that_no_request_is_made_for(run, leaves_after_ms=22_000)


@case("nacos-2.2.4", (known.swallowed, "sends DELETEs"), INV_CONV=[None])
def a_node_that_never_sends_a_delete(run: Run) -> None:
    """One CHANGE happened to fail after the client had left; c is sent no DELETE either, and loses it otherwise."""
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "b")
    run.removed("c")


@case("nacos-2.2.4", target="one that sends DELETEs elsewhere", INV_CONV=["B24"])
def a_delete_swallowed_in_a_run_that_has_no_other(run: Run) -> None:
    a_node_that_never_sends_a_delete(run)


@case("nacos-2.2.4", target="one that sends DELETEs elsewhere")
def a_delete_in_another_run_of_the_same_nodes(run: Run) -> None:
    run.registered()
    run.leave()
    run.after(500)
    for peer in "bc":
        run.send(peer, "DELETE")
        run.removed(peer)


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None])
def a_verify_that_fails_after_the_client_left(run: Run) -> None:
    run.registered()
    verify = run.send("b", "VERIFY", None, revision=1)
    run.leave()
    run.after(500)
    run.fails(verify, "b", "VERIFY")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", (known.swallowed, "a CHANGE to the node failed"), INV_CONV=[None], INV_DELETE=[None])
def a_change_to_another_member_that_fails_before_the_delete_is_due(run: Run) -> None:
    run.registered()
    change = run.send("c", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "c")
    run.send("c", "DELETE")
    run.removed("c")


@case("nacos-2.2.4", (known.swallowed, "no DELETE since"), INV_CONV=[None])
def a_delete_that_is_confirmed_and_removes_nothing(run: Run) -> None:
    run.registered()
    change = run.send("b", "CHANGE", None, revision=1, digest="A")
    run.leave()
    run.after(500)
    run.fails(change, "b")
    for peer in "bc":
        run.send(peer, "DELETE")
    run.removed("c")


@case("nacos-2.2.4", (known.swallowed, "has left its owner"), INV_CONV=[None])
def a_change_that_fails_and_is_not_sent_again_while_its_client_is_there(run: Run) -> None:
    for client in ("c1", "c2"):
        run.connect(client=client)
    run.change(1, "A")
    run.apply("c", 1, "A")
    run.leave("c2")
    run.send("c", "DELETE", client="c2")
    run.fails(run.send("b", "CHANGE", None, revision=1, digest="A"), "b")


# D7: a request by version 2 of the HTTP API


def changed_at_who_is_not_the_owner(run: Run, *, sends: bool = False, client: str = "10.0.0.1:80#true") -> None:
    run.change(1, "A", client=client)
    run.row("a", Kind.CLIENT_DISCONNECTED, client=client, owned=True)
    run.change(1, "B", node="b", client=client)
    if sends:
        about = {"message": run.recorder.new_message_id(), "operation": "CHANGE", "client": client}
        run.row("b", Kind.REQUEST_SENT, peer="c", **about, revision=1, digest="B")
        run.row("b", Kind.REPLY_RECEIVED, peer="c", **about, outcome=Outcome.SUCCESS)


@case("nacos-2.2.4", INV_CONV=["D7", "D7"])
def what_is_registered_by_version_2_where_it_stays(run: Run) -> None:
    changed_at_who_is_not_the_owner(run)


@case("nacos-3.0.3", (known.not_passed_on, "published by its client"), INV_CONV=[None, "D7"])
def what_is_registered_by_version_2_while_another_node_has_what_was_never_published(run: Run) -> None:
    changed_at_who_is_not_the_owner(run)
    run.row("c", Kind.REPLICA_APPLIED, client="10.0.0.1:80#true", owned=False, revision=7, digest="X")


@case("nacos-2.1.2", INV_CONV=[None, None])
def the_same_before_there_was_a_version_2(run: Run) -> None:
    changed_at_who_is_not_the_owner(run)


@case("nacos-2.2.4", (known.not_passed_on, "sent nothing"), INV_CONV=[None, None])
def what_a_node_sends_to_others_and_never_to_one(run: Run) -> None:
    changed_at_who_is_not_the_owner(run, sends=True)


@case("nacos-3.0.3", (known.not_passed_on, "names another one"), INV_CONV=[None, None])
def what_its_own_owner_by_hash_sends_to_no_node(run: Run) -> None:
    """Of the members a, b and c the hash names b."""
    changed_at_who_is_not_the_owner(run, client="10.0.0.2:80#true")


@case("nacos-2.2.4", (known.not_passed_on, "of the HTTP API"), INV_CONV=[None])
def the_same_of_a_client_with_a_connection(run: Run) -> None:
    changed_at_who_is_not_the_owner(run, client="c2")


@case("nacos-2.2.4", (known.not_passed_on, "changed at a node"), INV_CONV=[None])
def what_came_to_a_node_that_is_not_the_owner_from_nowhere(run: Run) -> None:
    client = "10.0.0.1:80#true"
    run.change(1, "B", client=client)
    run.change(2, "A", client=client)
    for content in ("A", "B"):
        run.row("b", Kind.REPLICA_APPLIED, client=client, owned=False, revision=1, digest=content)
    run.row("c", Kind.REPLICA_APPLIED, client=client, owned=False, revision=1, digest="A")
