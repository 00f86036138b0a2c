"""How a change reaches the other nodes, and how it comes again when it did not. docs/protocol #sync-announce to
#sync-only-up."""

from __future__ import annotations

import pytest

from distro_model.actions import (
    Advance,
    Connect,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Release,
    Swallow,
)
from distro_model.clock.cluster import View
from distro_model.messages import CallResult
from distro_model.node import Action, Task, fresh_node
from distro_model.profiles import PROFILES, STRICT
from distro_model.rules.sync import queued

WEB_1 = "10.0.0.1:80 v=1"
WEB_2 = "10.0.0.1:80 v=2"


def test_a_change_arrives_one_sync_delay_later(cluster):
    lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(900)
    assert lab.view("b", "c1") is None
    lab.run(100)
    assert lab.view("b", "c1") == lab.view("c", "c1") == View(1, (("web", WEB_1),))


def test_many_changes_travel_as_one_call_that_holds_the_last_state(cluster):
    """docs/real-servers.md#what-the-sender-does: one CHANGE 1.05 s after the first of six, holding the last state."""
    lab = cluster().do(Connect("c1", "a"))
    for version in range(6):
        lab.do(Register("c1", "web", f"10.0.0.1:80 v={version}")).run(100)
    lab.run(600)
    assert lab.calls("CHANGE a->b") == [(1000, "CHANGE a->b c1 revision 6: success")]
    assert lab.instance("b", "c1") == "10.0.0.1:80 v=5"


def test_a_client_that_leaves_is_deleted_everywhere(cluster):
    lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(1000)
    lab.do(Disconnect("c1"))
    assert lab.view("a", "c1") is None
    assert lab.instance("b", "c1") == WEB_1
    lab.run(1000)
    assert lab.view("b", "c1") is lab.view("c", "c1") is None


def test_deregistering_counts_as_a_change(cluster):
    lab = cluster().do(Connect("c1", "a"), Register("c1", "web", WEB_1), Deregister("c1", "web")).run(1000)
    assert lab.view("b", "c1") == View(2, ())


@pytest.mark.parametrize(("profile", "after_ms"), [("nacos-2.0.4", 2000 + 3000 + 5000), ("strict", 1000 + 3000 + 3000)])
def test_a_lost_change_is_retried_after_time_out_and_retry_delay(cluster, profile, after_ms):
    """docs/real-servers.md#what-the-sender-does: 6.0-6.1 s after the lost call, 8.0 s on 2.0.4."""
    lab = cluster(profile).do(Connect("c1", "a"), Register("c1", "web", WEB_1), Drop("a", "b", "CHANGE"))
    # The verify rounds in between would repair it sooner: they get lost too.
    for _ in range(3):
        lab.do(Drop("a", "b", "VERIFY"))
    lab.run(after_ms)
    assert [at_ms for at_ms, _ in lab.calls("CHANGE a->b")] == [after_ms - PROFILES[profile].retry_delay_ms, after_ms]
    assert lab.outcomes("CHANGE a->b") == [CallResult.TIMEOUT, CallResult.SUCCESS]


def test_nothing_is_sent_to_a_member_that_is_not_up(cluster):
    """docs/protocol #sync-only-up from 2.1.1; the cut is noticed by a report within four seconds."""
    lab = cluster().do(Cut("a", "b"), Cut("b", "a")).run(5000)
    lab.do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(9000)
    assert lab.calls("a->b") == []
    assert lab.instance("c", "c1") == WEB_1


def test_before_2_1_1_it_is_sent_all_the_same(cluster):
    lab = cluster("nacos-2.0.4").do(Cut("a", "b")).run(5000)
    lab.do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(2000)
    assert lab.outcomes("CHANGE a->b") == [CallResult.UNREACHABLE]


@pytest.mark.parametrize("profile", PROFILES)
def test_after_a_cut_is_healed_all_nodes_catch_up(cluster, profile):
    lab = cluster(profile).do(Connect("c1", "a"), Register("c1", "web", WEB_1), Cut("a", "b")).run(20_000)
    assert lab.view("b", "c1") is None
    lab.do(Heal("a", "b")).run(12_000)
    assert lab.instance("b", "c1") == WEB_1


def test_requests_of_a_held_link_arrive_in_order(cluster):
    lab = cluster().do(Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", WEB_1)).run(1500)
    lab.do(Register("c1", "web", WEB_2)).run(1000).do(Release("a", "b"))
    assert [text for _, text in lab.calls("CHANGE a->b")] == [
        "CHANGE a->b c1 revision 1: success",
        "CHANGE a->b c1 revision 2: success",
    ]
    assert lab.instance("b", "c1") == WEB_2


def test_a_swallowed_change_is_a_success_for_its_sender(cluster):
    lab = cluster().do(Connect("c1", "a"), Swallow("a", "b"), Register("c1", "web", WEB_1)).run(1000)
    assert lab.outcomes("CHANGE a->b") == [CallResult.SUCCESS]
    assert lab.view("b", "c1") is None


class TestMergeRule:
    """docs/protocol #sync-merge: the clock runs from the first change; action and delay are those of the last."""

    node = fresh_node("a", ["b"], 0)

    def test_a_later_change_does_not_postpone(self):
        first = queued(self.node, Task("c1", "b", Action.CHANGE, 0, 1000), STRICT)
        (merged,) = queued(first, Task("c1", "b", Action.CHANGE, 900, 1000), STRICT).tasks
        assert merged.due_ms == 1000

    def test_the_action_is_that_of_the_later_one(self):
        first = queued(self.node, Task("c1", "b", Action.CHANGE, 0, 1000), STRICT)
        (merged,) = queued(first, Task("c1", "b", Action.DELETE, 400, 1000), STRICT).tasks
        assert (merged.action, merged.due_ms) == (Action.DELETE, 1000)

    def test_a_retry_counts_its_longer_delay_from_the_first_change(self):
        first = queued(self.node, Task("c1", "b", Action.DELETE, 3500, STRICT.sync_delay_ms), STRICT)
        (merged,) = queued(first, Task("c1", "b", Action.CHANGE, 4000, STRICT.retry_delay_ms), STRICT).tasks
        assert (merged.action, merged.due_ms) == (Action.CHANGE, 6500)  # the figures of B24

    def test_a_failed_verify_makes_a_waiting_change_due_at_once(self):
        first = queued(self.node, Task("c1", "b", Action.CHANGE, 4500, 1000), STRICT)
        (merged,) = queued(first, Task("c1", "b", Action.CHANGE, 5000, 0), STRICT).tasks
        assert merged.due_ms <= 5000

    def test_tasks_of_different_targets_do_not_meet(self):
        node = fresh_node("a", ["b", "c"], 0)
        for target in node.others:
            node = queued(node, Task("c1", target, Action.CHANGE, 0, 1000), STRICT)
        assert len(node.tasks) == 2


def swallowed_delete(lab):
    """B24 with its figures: register, the second CHANGE unanswered, gone in the second before its time-out."""
    lab.do(Connect("c1", "a"), Register("c1", "web", WEB_1)).run(1000)
    lab.do(Drop("a", "b", "CHANGE"), Register("c1", "web", WEB_2)).run(1000)
    return lab.run(2500).do(Disconnect("c1"))


def test_b24_on_a_release_the_retry_swallows_the_delete(cluster):
    lab = swallowed_delete(cluster("nacos-2.2.4")).run(20_000)
    assert lab.outcomes("DELETE a->c") == [CallResult.SUCCESS]
    assert lab.calls("DELETE a->b") == []
    assert lab.view("b", "c1") is not None


def test_b24_in_strict_the_delete_arrives_when_it_was_due(cluster):
    lab = swallowed_delete(cluster("strict")).run(20_000)
    assert lab.calls("DELETE a->b") == [(5500, "DELETE a->b c1: success")]
    assert lab.view("b", "c1") is None


def test_a_zombie_lives_no_longer_than_lease_and_cleaner(cluster):
    """INV-RESURRECT's bound: 180 s lease, 5 s cleaner, one verify period."""
    lab = swallowed_delete(cluster("nacos-2.2.4")).do(Advance(175_000))
    assert lab.view("b", "c1") is not None
    lab.do(Advance(15_000))
    assert lab.view("b", "c1") is None
