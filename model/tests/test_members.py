"""Clients of the HTTP API and the members that own them: the rules one by one, then every mutant of the topic."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.events import (
    BeatCheckDue,
    CallEnded,
    Forward,
    HttpAction,
    HttpReceived,
    LeaseCheckDue,
    MembersListed,
    Reply,
    RequestReceived,
    TaskDue,
)
from distro_model.explorer import explore
from distro_model.messages import FAIL, NOT_THE_OWNER, SUCCESS, UNREACHABLE, Change, Report, Verify
from distro_model.node import Action, Client, Member, MemberState, Task, fresh_node
from distro_model.profiles import STRICT
from distro_model.properties.steps import task_alarm
from distro_model.rules.owners import UNHEALTHY, java_hash, owner_among_alive, owner_of, place
from distro_model.step import step

ALIVE = STRICT.with_rules(owner_among_alive)
OF_B = Bounds(ip_clients=1).ip_client_names[0]  # of two nodes, b owns it
WEB = (("web", "10.0.0.2:80 v=1"),)


def node(name, others, down=""):
    made = fresh_node(name, others, 0)
    for other in down:
        made = made.with_member(Member(other, MemberState.DOWN, 4))
    return replace(made, loaded=True)


def registers(client, *, instance="10.0.0.2:80 v=1", forwarded=False, at_ms=0):
    return HttpReceived(at_ms, client, HttpAction.REGISTER, "web", instance, forwarded)


def beats(client, at_ms):
    return HttpReceived(at_ms, client, HttpAction.BEAT, "web", "10.0.0.2:80 v=1")


class TestOwner:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("10.0.0.9:8080", -1414310596), ("10.0.0.7:80", 1106847366), ("192.168.1.10:9001", 189704631), ("", 0)],
    )
    def test_the_hash_is_that_of_java(self, text, value):
        assert java_hash(text) == value

    def test_the_hash_counts_utf_16_code_units(self):
        assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00

    @pytest.mark.parametrize(
        ("remainder", "claim", "tags"),
        [
            (0, "A", "192.168.1.6:8080 192.168.1.13:8080"),
            (1, "BC", "192.168.1.5:8080 192.168.1.14:8080"),
            (2, "", "192.168.1.4:8080 192.168.1.15:8080"),
            (3, "ABC", "192.168.1.3:8080 192.168.1.9:8080"),
            (4, "", "192.168.1.2:8080 192.168.1.8:8080"),
            (5, "BC", "192.168.1.1:8080 192.168.1.7:8080"),
        ],
    )
    def test_a_split_view_has_the_owners_of_the_catalogue(self, remainder, claim, tags):
        """B and C believe each other DOWN."""
        views = [node("A", "BC"), node("B", "AC", down="C"), node("C", "AB", down="B")]
        for tag in tags.split():
            assert place(tag, 6) == remainder
            claimed = [view.name for view in views if owner_of(view, f"{tag}#true", ALIVE) == view.name]
            assert "".join(claimed) == claim

    def test_in_strict_every_client_has_an_owner_and_healthy_views_agree_with_the_releases(self):
        clients = [f"192.168.1.{number}:8080#true" for number in range(1, 30)]
        views = [node("A", "BC"), node("B", "AC", down="C"), node("C", "AB", down="B")]
        assert [each for each in clients if all(owner_of(view, each, STRICT) != view.name for view in views)] == []
        healthy = node("A", "BC")
        assert [each for each in clients if owner_of(healthy, each, STRICT) != owner_of(healthy, each, ALIVE)] == []

    def test_a_member_that_is_down_owns_nothing(self):
        assert owner_of(node("a", "b"), OF_B, STRICT) == "b"
        assert owner_of(node("a", "b", down="b"), OF_B, STRICT) == "a"


class TestRequests:
    def test_a_request_at_the_wrong_node_is_forwarded_once(self):
        assert step(node("a", "b"), registers(OF_B), STRICT).outputs == (Forward("b"),)
        assert step(node("a", "b"), registers(OF_B, forwarded=True), STRICT).outputs == (Reply(NOT_THE_OWNER),)

    def test_the_owner_handles_it_and_sends_it_to_the_others(self):
        result = step(node("b", "a"), registers(OF_B, forwarded=True), STRICT)
        assert result.outputs == (Reply(SUCCESS),)
        assert result.node.client(OF_B).content == WEB
        assert result.node.task(OF_B, "a").action is Action.CHANGE

    def test_a_beat_of_an_unknown_client_registers_it(self):
        assert step(node("b", "a"), beats(OF_B, 0), STRICT).node.client(OF_B).content == WEB

    def test_replaced_content_is_refused_and_its_sender_is_sent_the_later_change(self):
        owner = step(node("b", "a"), registers(OF_B), STRICT).node
        old = owner.client(OF_B)
        owner = step(owner, registers(OF_B, instance="10.0.0.2:80 v=2"), STRICT).node
        new = owner.client(OF_B)
        assert owner.superseded == ((OF_B, old.revision),)
        stale = RequestReceived(0, "a", Change(OF_B, old.revision, old.content))
        assert step(owner, stale, STRICT).outputs == (Reply(FAIL),)
        acknowledged = step(owner, CallEnded(0, "a", Change(OF_B, new.revision, new.content), SUCCESS), STRICT).node
        sent = step(acknowledged, TaskDue(0, OF_B, "a"), STRICT).node
        assert (sent.unacknowledged, sent.tasks) == ((), ())
        refused = step(sent, stale, STRICT)
        assert refused.outputs == (Reply(FAIL),)
        assert refused.node.unacknowledged == ((OF_B, "a"),)
        assert refused.node.task(OF_B, "a").action is Action.CHANGE

    def test_replaced_content_that_has_replaced_the_held_content_is_accepted(self):
        owner = step(node("b", "a"), registers(OF_B), STRICT).node
        old = owner.client(OF_B)
        owner = step(owner, registers(OF_B, instance="10.0.0.2:80 v=2"), STRICT).node
        again = Change(OF_B, old.revision, old.content, (owner.client(OF_B).revision,))
        result = step(owner, RequestReceived(0, "a", again), STRICT)
        assert result.outputs == (Reply(SUCCESS),)
        assert result.node.client(OF_B).content == old.content
        assert result.node.superseded == ((OF_B, owner.client(OF_B).revision),)


def cleaned(at_ms, holder):
    return step(holder, LeaseCheckDue(at_ms), STRICT).node


class TestBeats:
    owner = step(node("b", "a"), registers(OF_B), STRICT).node

    def checked(self, at_ms, holder=None):
        return step(holder or self.owner, BeatCheckDue(at_ms), STRICT).node

    def test_silence_makes_an_instance_unhealthy_then_removes_it_then_the_client(self):
        assert self.checked(14_999) == self.owner
        unhealthy = self.checked(15_000)
        assert unhealthy.client(OF_B).content == (("web", WEB[0][1] + UNHEALTHY),)
        assert unhealthy.client(OF_B).revision != self.owner.client(OF_B).revision
        assert self.checked(29_999, unhealthy) == unhealthy
        empty = self.checked(30_000, unhealthy)
        assert empty.client(OF_B).content == ()
        assert cleaned(30_000, empty) == empty
        gone = cleaned(30_001, empty)
        assert (gone.client(OF_B), gone.task(OF_B, "a").action) == (None, Action.DELETE)

    def test_a_beat_makes_it_healthy_again(self):
        unhealthy = self.checked(15_000)
        assert step(unhealthy, beats(OF_B, 16_000), STRICT).node.client(OF_B).content == WEB

    def test_only_the_owner_checks_and_a_copy_lives_by_its_lease(self):
        copy = node("a", "b").with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),)))
        assert self.checked(180_000, copy) == cleaned(180_000, copy) == copy
        assert cleaned(180_001, copy).client(OF_B) is None

    def test_an_accepted_verify_is_a_beat_but_not_from_one_whom_the_ring_does_not_prefer(self):
        verify = Verify(OF_B, 1)
        copy = node("a", "b").with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),)))
        verified = step(copy, RequestReceived(9, "b", verify), STRICT).node
        assert verified.client(OF_B).beats == (("web", 9),)
        own = node("b", "a").with_client(Client(OF_B, False, 1, WEB, 0, beats=(("web", 0),)))
        assert step(own, RequestReceived(9, "a", verify), STRICT).node.client(OF_B).beats == (("web", 0),)


class TestMembers:
    def test_a_member_that_left_is_forgotten_and_its_task_ends_silently(self):
        left = step(node("a", "bc"), MembersListed(0, ("c",)), STRICT).node.with_task(
            Task("c1", "b", Action.DELETE, 0, 0)
        )
        assert left.others == ("c",)
        result = step(left, TaskDue(0, "c1", "b"), STRICT)
        assert (result.node.tasks, result.outputs) == ((), ())
        assert task_alarm(left, TaskDue(0, "c1", "b"), result.node, (), STRICT) is None

    def test_a_task_that_comes_to_nothing_for_a_member_is_noticed(self):
        """The other direction of B37."""
        before = node("a", "bc").with_task(Task("c1", "b", Action.DELETE, 0, 0))
        after = replace(before, tasks=())
        assert task_alarm(before, TaskDue(0, "c1", "b"), after, (), STRICT).property_id == "INV-RETRY"

    def test_the_reports_of_one_that_left_change_nothing(self):
        alone = step(node("a", "b"), MembersListed(0, ()), STRICT).node
        assert step(alone, RequestReceived(0, "b", Report()), STRICT).node == alone
        assert step(alone, CallEnded(0, "b", Report(), UNREACHABLE), STRICT).node == alone

    def test_a_new_member_is_down_until_it_reports_and_is_sent_what_was_owned(self):
        alone = step(node("a", "b"), MembersListed(0, ()), STRICT).node
        alone = step(alone, registers(OF_B), STRICT).node
        joined = step(alone, MembersListed(0, ("b",)), STRICT).node
        assert joined.member("b").state is MemberState.DOWN
        assert joined.task(OF_B, "b").action is Action.CHANGE
        assert step(joined, RequestReceived(0, "b", Report()), STRICT).node.member("b").state is MemberState.UP

    def test_reading_the_same_list_again_changes_nothing(self):
        knows = node("a", "bc", down="b")
        assert step(knows, MembersListed(0, ("b", "c")), STRICT).node == knows


@cache
def explored(profile, bounds):
    done = explore(bounds, profile)
    assert done.complete
    return {result.name for result in done.results if result.holds is False}


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(clients=0, ip_clients=1, changes=2, flips=2, drops=0, swallows=0, in_flight=1),
        Bounds(clients=0, ip_clients=1, changes=1, lapses=2, in_flight=1),
        Bounds(clients=0, ip_clients=1, changes=2, flips=1, swallows=0, in_flight=1),
        Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, crashes=1, in_flight=1),
    ],
    ids=str,
)
def test_strict_owns_and_replicates_ip_clients(bounds):
    assert explored(STRICT, bounds) == set()


class TestBounds:
    @pytest.mark.parametrize(
        ("bounds", "problem"),
        [
            ({"lapses": 1}, "raise ip_clients"),
            ({"clients": 0, "lapses": 1, "periods": 1}, "raise ip_clients"),
        ],
    )
    def test_bounds_that_contradict_themselves_are_refused(self, bounds, problem):
        with pytest.raises(ValueError, match=problem):
            Bounds(**bounds)

    def test_among_three_nodes_the_first_client_has_no_owner_where_two_do_not_see_each_other(self):
        client = Bounds(nodes=3, ip_clients=1).ip_client_names[0]
        assert place(client.partition("#")[0], 6) in {2, 4}
