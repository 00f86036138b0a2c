"""Deleted clients stay deleted: tombstones. B26 and B27.

Links do not reorder, so a CHANGE that comes after its DELETE is given to one node directly.
"""

from __future__ import annotations

import pytest

from distro_model.actions import Advance, Connect, Disconnect, Hold, Register, Release
from distro_model.events import CallEnded, ClientDisconnected, LeaseCheckDue, RequestReceived, TaskDue
from distro_model.messages import FAIL, SUCCESS, Answer, CallResult, Change, Delete, Snapshot, Verify
from distro_model.node import Client, fresh_node
from distro_model.profiles import NACOS_2_2_4, PROFILES, STRICT, beside_nodes, profile_named
from distro_model.step import step

WEB = (("web", "10.0.0.1:80"),)
RELEASES = [name for name in PROFILES if name != "strict"]


def after(node, request, profile=STRICT, at_ms=0):
    """The node after the request, and its answer."""
    after = step(node, RequestReceived(at_ms, "a", request), profile)
    return after.node, after.outputs[0].answer


@pytest.mark.parametrize("known", [True, False])
def test_b26_a_change_after_the_delete(known):
    """A release applies it, with success."""
    found = {}
    for name in (*RELEASES, "strict"):
        profile = beside_nodes(profile_named(name))  # which apply a CHANGE at once (B05 has its own tests)
        node = fresh_node("b", ["a"], 0)
        node = node.with_client(Client("c1", False, 1, WEB, 0)) if known else node
        node, deleted = after(node, Delete("c1"), profile)
        node, changed = after(node, Change("c1", 1, WEB), profile)
        found[name] = (deleted, node.client("c1") is not None, changed)
    assert found == {**dict.fromkeys(RELEASES, (SUCCESS, True, SUCCESS)), "strict": (SUCCESS, False, FAIL)}


def test_the_sender_of_a_late_change_finds_its_client_gone_and_deletes(cluster):
    lab = cluster(nodes="ab").do(
        Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80"), Hold("a", "b"), Advance(1000)
    )
    (call,) = lab.state.link("a", "b").calls
    lab.do(Disconnect("c1"), Release("a", "b"), Advance(1000))
    assert call.request == Change("c1", 1, WEB)
    assert lab.state.node("b").is_gone("c1")
    late, answer = after(lab.state.node("b"), call.request, at_ms=lab.state.now_ms)
    owner = step(lab.state.node("a"), CallEnded(lab.state.now_ms, "b", call.request, answer), STRICT).node
    task = owner.task("c1", "b")
    assert late.client("c1") is None
    assert task.action == "CHANGE"
    retried_ms = lab.state.now_ms + STRICT.retry_delay_ms
    assert [str(sent.request) for sent in step(owner, TaskDue(retried_ms, "c1", "b"), STRICT).outputs] == ["DELETE c1"]


def test_b27_a_delete_while_the_snapshot_is_on_its_way():
    """A release takes the whole snapshot, strict the rest of it, and the load is complete."""
    snapshot = Answer(CallResult.SUCCESS, (Change("c1", 1, WEB), Change("c2", 1, WEB)))
    found = {}
    for name in (*RELEASES, "strict"):
        node, _ = after(fresh_node("b", ["a"], 0), Delete("c1"), profile_named(name))
        node = step(node, CallEnded(7, "a", Snapshot(), snapshot), profile_named(name)).node
        found[name] = ([client.name for client in node.clients], node.loaded)
    assert found == {**dict.fromkeys(RELEASES, (["c1", "c2"], True)), "strict": (["c2"], True)}


def test_a_verify_of_it_fails_as_of_anything_unknown():
    node, _ = after(fresh_node("b", ["a"], 0), Delete("c1"))
    assert after(node, Verify("c1", 0)) == (node, FAIL)


def test_the_owner_does_not_take_its_own_echo():
    node = fresh_node("b", ["a"], 0).with_client(Client("c1", True, 1, WEB, 0))
    node = step(node, ClientDisconnected(0, "c1"), STRICT).node
    assert after(node, Change("c1", 1, WEB)) == (node, FAIL)


def test_it_is_remembered_for_one_lease():
    node, _ = after(fresh_node("b", ["a"], 0), Delete("c1"))
    kept = step(node, LeaseCheckDue(180_000), STRICT).node
    assert after(kept, Change("c1", 1, WEB), at_ms=180_000)[1] == FAIL
    assert step(node, LeaseCheckDue(180_001), STRICT).node.gone == ()


def test_a_second_delete_starts_the_time_again():
    node, _ = after(fresh_node("b", ["a"], 0), Delete("c1"))
    node, _ = after(node, Delete("c1"), at_ms=100_000)
    assert node.gone == (("c1", 100_000),)


def test_a_lease_that_ends_is_no_deletion():
    """The owner may be alive behind a cut link, and its next verify brings the client back."""
    node = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 1, WEB, 0))
    node = step(node, LeaseCheckDue(180_001), STRICT).node
    assert after(node, Change("c1", 1, WEB))[0].client("c1") is not None


def test_time_ends_it_at_the_first_check_after_the_lease(cluster):
    lab = cluster(nodes="ab").do(Connect("c1", "a"), Advance(500), Disconnect("c1"))
    lab.do(Advance(180_000))
    assert lab.state.node("a").is_gone("c1")
    lab.do(Advance(5000))
    assert lab.state.node("a").gone == ()


def test_a_release_remembers_no_deletion():
    node, _ = after(fresh_node("b", ["a"], 0), Delete("c1"), NACOS_2_2_4)
    assert node == fresh_node("b", ["a"], 0)
