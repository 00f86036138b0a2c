"""The one `strict`: a node's record of a change of an ip:port client until every peer has acknowledged it."""

from __future__ import annotations

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.events import BeatCheckDue, CallEnded, MembersListed, RequestReceived, TaskDue
from distro_model.explorer import explore
from distro_model.messages import FAIL, SUCCESS, Change, Delete, Verify
from distro_model.node import Action, Client, Member, MemberState, NodeState, Task, fresh_node
from distro_model.profiles import PROFILES, STRICT, Profile, beside_nodes
from distro_model.properties import ip_checks
from distro_model.properties.steps import task_alarm
from distro_model.rules import ip_clients, members, receive, sync
from distro_model.rules.rule import instead_of
from distro_model.step import step

OF_B = Bounds(ip_clients=1).ip_client_names[0]  # of two nodes, b owns it
WEB = (("web", "10.0.0.2:80 v=1"),)
QUIET = {"clients": 0, "ip_clients": 1, "drops": 0, "swallows": 0, "in_flight": 1}
LOADS_ALONE = Bounds(clients=0, ip_clients=1, changes=1, crashes=1, drops=1, swallows=0, leaves=1, joins=1, in_flight=1)
"""The owner crashes, and while it loads no other node is on its list."""


def broken(profile: Profile, bounds: Bounds) -> set[str]:
    found = explore(bounds, profile)
    assert found.complete
    return {each.name for each in found.results if each.counterexample is not None}


def holder(*, unacknowledged: bool) -> NodeState:
    """A node that accepted a client which is owned by b now."""
    node = fresh_node("a", ("b",), 0).with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),), accepted=True))
    return node.changed(unacknowledged=((OF_B, "b"),)) if unacknowledged else node


def test_nodes_are_compared_with_the_strict_that_is_searched() -> None:
    assert beside_nodes(STRICT) == STRICT


@pytest.mark.parametrize("release", [each for each in PROFILES if each != "strict"])
def test_a_release_remembers_nothing_of_what_peers_have_acknowledged(release: str) -> None:
    profile = PROFILES[release]
    assert profile.has(ip_clients.held_as_a_copy)
    assert profile.has(sync.sent_by_a_former_owner)
    assert profile.has(members.not_handed_over)


# The purpose of each part of it: a search finds the violation without it


@instead_of(ip_clients.is_not_superseded)
def from_any_sender(_node: NodeState, _source: str, _change: Change, _: Profile) -> bool:
    """No request names its sender, so none is refused for it."""
    return True


@instead_of(ip_clients.is_not_superseded)
def from_any_that_acknowledged(node: NodeState, source: str, change: Change, _: Profile) -> bool:
    """A member that has acknowledged a change is believed to send nothing that the change has replaced."""
    is_superseded = (change.client, change.revision) in node.superseded
    return not (is_superseded and node.is_unacknowledged(change.client, source))


@instead_of(sync.is_still_to_send)
def only_by_the_owner(node: NodeState, task: Task, profile: Profile) -> bool:
    """Waiting tasks are dropped once another node owns the client."""
    return not sync.is_ip_client(task.client) or sync.owner_of(node, task.client, profile) == node.name


@pytest.mark.parametrize(
    ("without", "bounds", "breaks"),
    [
        (from_any_sender, Bounds(**QUIET, changes=2, flips=1), "INV-CLIENTACK"),
        (from_any_that_acknowledged, Bounds(**QUIET, changes=2, flips=1, lost_replies=1), "INV-CLIENTACK"),
        (from_any_that_acknowledged, Bounds(**QUIET, changes=2, flips=1, delays=1), "INV-CLIENTACK"),
        (only_by_the_owner, Bounds(**QUIET, changes=2, flips=1), "INV-RETRY"),
    ],
    ids=["the superseded revision", "after a lost reply", "after a late request", "the retry"],
)
def test_each_part_is_needed(without, bounds: Bounds, breaks: str) -> None:
    assert broken(STRICT, bounds) == set()
    assert breaks in broken(STRICT.with_rules(without), bounds)


# Rule by rule


@pytest.mark.parametrize(("unacknowledged", "answer"), [(True, FAIL), (False, SUCCESS)])
def test_a_delete_is_refused_from_a_peer_that_has_not_acknowledged_the_client(unacknowledged, answer) -> None:
    node = holder(unacknowledged=unacknowledged)
    after = step(node, RequestReceived(0, "b", Delete(OF_B)), STRICT)
    assert after.outputs[0].answer == answer
    assert (after.node.client(OF_B) is None) is (answer == SUCCESS)


def test_a_delete_of_a_client_that_is_not_held_is_a_success() -> None:
    node = holder(unacknowledged=True).without_client(OF_B)
    assert step(node, RequestReceived(0, "b", Delete(OF_B)), STRICT).outputs[0].answer == SUCCESS


@pytest.mark.parametrize("action", Action)
def test_a_former_owner_sends_what_it_accepted_and_drops_what_it_concluded(action: Action) -> None:
    task = Task(OF_B, "b", action, 0, 0)
    sent, dropped = (
        step(holder(unacknowledged=each).with_task(task), TaskDue(0, OF_B, "b"), STRICT) for each in (True, False)
    )
    assert len(sent.outputs) == 1
    assert (dropped.outputs, dropped.node.tasks) == ((), ())


def test_the_alarm_of_retries_excuses_only_what_a_former_owner_concluded() -> None:
    task, due = Task(OF_B, "b", Action.CHANGE, 0, 0), TaskDue(0, OF_B, "b")
    accepted, concluded = (holder(unacknowledged=each) for each in (True, False))
    assert task_alarm(concluded.with_task(task), due, concluded, (), STRICT) is None
    assert task_alarm(accepted.with_task(task), due, accepted, (), STRICT).property_id == "INV-RETRY"
    owner = concluded.with_member(Member("b", MemberState.DOWN, 4))
    assert task_alarm(owner.with_task(task), due, owner, (), STRICT).property_id == "INV-RETRY"


@pytest.mark.parametrize("accepted", [True, False])
def test_a_member_that_joins_is_sent_what_was_accepted_here_and_no_copy(accepted: bool) -> None:
    alone = fresh_node("a", (), 0).with_client(Client(OF_B, False, 1, WEB, 0, accepted=accepted))
    joined = step(alone, MembersListed(0, ("b",)), STRICT).node
    assert (joined.task(OF_B, "b") is not None) is accepted
    assert joined.is_unacknowledged(OF_B, "b") is accepted


@pytest.mark.parametrize("accepted", [True, False])
def test_what_a_change_has_replaced_is_refused_only_where_the_client_requested_the_change(accepted: bool) -> None:
    node = fresh_node("a", ("b", "c"), 0).with_client(Client(OF_B, False, 2, WEB, 0, accepted=accepted))
    old = RequestReceived(0, "c", Change(OF_B, 1, WEB))
    after = step(node.superseding(OF_B, (1,), 2), old, STRICT)
    assert after.outputs[0].answer == (FAIL if accepted else SUCCESS)
    assert after.node.is_unacknowledged(OF_B, "c") is accepted


def test_what_is_concluded_from_missing_beats_supersedes_what_the_client_requested() -> None:
    """Otherwise a member that knows this content from before refuses it."""
    node = fresh_node("b", ("a",), 0).with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),), accepted=True))
    node = step(node, BeatCheckDue(STRICT.beat_timeout_ms), STRICT).node
    assert (node.superseded, node.client(OF_B).accepted) == (((OF_B, 1),), False)


def test_a_change_that_is_acknowledged_late_may_be_superseded_by_then() -> None:
    node = holder(unacknowledged=True).superseding(OF_B, (5,), 1)
    late, last = (step(node, CallEnded(0, "b", Change(OF_B, each, WEB), SUCCESS), STRICT).node for each in (5, 1))
    assert [each.is_unacknowledged(OF_B, "b") for each in (late, last)] == [True, False]


@pytest.mark.parametrize(("content", "accepted"), [(WEB, True), ((), False)], ids=["the same", "another"])
def test_it_is_accepted_here_until_a_peer_sends_another_content(content, accepted: bool) -> None:
    node = step(holder(unacknowledged=False), RequestReceived(0, "b", Change(OF_B, 5, content)), STRICT).node
    assert node.client(OF_B).accepted is accepted


def test_a_copy_that_ends_without_its_owner_is_not_deleted_elsewhere() -> None:
    """Its owner has not verified it for a lease: the change accepted here counts no longer."""
    node = receive.deleted(holder(unacknowledged=True), OF_B, 0, STRICT)
    assert (node.client(OF_B), node.unacknowledged, node.tasks) == (None, (), ())


@pytest.mark.parametrize(("name", "counts"), [("a", True), ("b", False)], ids=["after the first", "at the first"])
def test_a_verify_without_a_sender_counts_where_it_may_come_from_the_first_of_the_ring(name: str, counts: bool) -> None:
    other = "b" if name == "a" else "a"
    node = fresh_node(name, (other,), 0).with_member(Member(other, MemberState.DOWN, 4))
    node = node.with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),)))
    verified = step(node, RequestReceived(9, "", Verify(OF_B, 1)), STRICT).node
    assert verified.client(OF_B).beats == (("web", 9 if counts else 0),)


# What can be had when the owner has lost a client


def test_an_owner_that_crashed_and_loaded_alone_holds_the_client_after_its_next_beat() -> None:
    assert broken(STRICT, LOADS_ALONE) == set()


def test_before_that_beat_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ip_checks, "may_be_unknown_to_owner", lambda _: False)
    assert broken(STRICT, LOADS_ALONE) == {"INV-CONV"}


@pytest.mark.parametrize("budget", ["crashes", "leaves"])
def test_an_owner_that_has_not_lost_a_client_has_to_hold_it_without_a_beat(budget: str) -> None:
    assert not ip_checks.may_be_unknown_to_owner(Bounds(**QUIET, **{budget: 1}))
