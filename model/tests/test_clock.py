"""Each kind of event of a cluster also happens with a clock: clients of the HTTP API, batches, silence, held requests,
pauses, member lists."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest

from distro_model.actions import (
    Advance,
    AnswerAgain,
    AnswerLate,
    Connect,
    Crash,
    Cut,
    Deliver,
    Deregister,
    Disconnect,
    Drop,
    Duplicate,
    FallSilent,
    Garble,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    ListMembers,
    LoseReply,
    Mistype,
    Move,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Reply,
    Restart,
    Resume,
    Swallow,
)
from distro_model.clock import mutable_cluster
from distro_model.clock.cluster import observe, prologue, start
from distro_model.events import Event
from distro_model.mutants import with_mutant
from distro_model.node import MemberState
from distro_model.possible import PossibleStates
from distro_model.profiles import PROFILES, STRICT

ONE, OTHER = "10.0.0.1:80", "10.0.0.2:80"
CLIENT = f"{ONE}#true"


class Cluster:
    """All possible states, and the calls that ended in them."""

    def __init__(self, profile=STRICT, nodes="ab", spare=""):
        self.possible = PossibleStates.of(start(nodes, profile, spare=spare))
        self.do(*prologue(nodes, profile))

    def do(self, *actions):
        self.ended = []
        for action in actions:
            self.possible = self.possible.after(action)
            self.ended += [str(call) for call in self.possible.outcomes[0].traffic]
        return self

    def shown(self, client, node):
        """The node's view of the client in each possible state."""
        seen = {observe(state)[node].get(client) for state in self.possible.states}
        return {None if view is None else dict(view.content).get("web", "") for view in seen}

    @property
    def state(self):
        return self.possible.outcomes[0].state


class TestHttpClients:
    def test_a_registration_reaches_the_owner_wherever_it_is_sent_and_all_nodes_from_there(self):
        for asked in "ab":
            cluster = Cluster().do(HttpRegister("web", ONE, asked), Advance(2000))
            assert cluster.shown(CLIENT, "a") == cluster.shown(CLIENT, "b") == {ONE}

    def test_beats_keep_it_and_silence_makes_it_unhealthy_and_then_gone(self):
        cluster = Cluster().do(HttpRegister("web", ONE, "a"))
        for _ in range(6):
            cluster.do(Advance(5000), HttpBeat("web", ONE, "b"))
        assert cluster.shown(CLIENT, "a") == {ONE}
        assert cluster.do(Advance(21_000)).shown(CLIENT, "a") == {f"{ONE} (unhealthy)"}
        assert cluster.do(Advance(20_000)).shown(CLIENT, "a") == {None}

    def test_a_deregistration_is_sent_to_all_nodes(self):
        cluster = Cluster().do(
            HttpRegister("web", ONE, "a"), Advance(2000), HttpDeregister("web", ONE, "b"), Advance(2000)
        )
        assert cluster.shown(CLIENT, "b") <= {"", None}

    def test_where_changes_are_announced_by_event_they_are_announced_at_once(self):
        cluster = Cluster(PROFILES["nacos-2.3.2"]).do(HttpRegister("web", ONE, "a"), Advance(2000))
        assert cluster.shown(CLIENT, "b") == {ONE}

    def test_a_forward_passes_a_cut_link_and_is_lost_where_its_owner_is_down(self):
        owner = "a" if Cluster().do(HttpRegister("web", ONE, "b"), Cut("b", "a")).shown(CLIENT, "a") == {ONE} else "b"
        other = "b" if owner == "a" else "a"
        cluster = Cluster().do(Cut(other, owner), HttpRegister("web", ONE, other))
        assert cluster.shown(CLIENT, owner) == {ONE}
        cluster = Cluster().do(Crash(owner), HttpRegister("web", ONE, other), Restart(owner))
        assert cluster.shown(CLIENT, owner) == {None}


def test_a_batch_is_one_entry_of_its_client_and_travels_like_any_other():
    cluster = Cluster().do(Connect("c1", "a"), RegisterBatch("c1", "web", (ONE, OTHER)), Advance(2000))
    assert cluster.shown("c1", "b") == {f"batch of {ONE} and {OTHER}"}


def test_a_node_starts_with_the_last_member_list_that_it_got():
    cluster = Cluster(nodes="abc").do(ListMembers("a", ("a", "b")), Crash("a"), Restart("a"), Advance(2_000))
    cluster.do(Connect("c1", "a"), Register("c1", "web", ONE), Advance(6_000))
    assert (cluster.shown("c1", "b"), cluster.shown("c1", "c")) == ({ONE}, {None})


class TestAnotherAddress:
    def moved(self) -> Cluster:
        cluster = Cluster(nodes="abc", spare="d").do(Connect("c1", "a"), Register("c1", "web", ONE), Advance(2_000))
        return cluster.do(Crash("b"), Move("b", "d"), Advance(1_000))

    def test_it_loads_from_those_that_it_lists(self):
        assert self.moved().shown("c1", "d") == {ONE}

    def test_a_node_that_does_not_list_it_sends_it_nothing(self):
        cluster = self.moved().do(Register("c1", "web", OTHER), Advance(7_000))
        assert (cluster.shown("c1", "c"), cluster.shown("c1", "d")) == ({OTHER}, {ONE})
        cluster.do(ListMembers("a", "acd"), ListMembers("c", "acd"), Advance(7_000))
        assert cluster.shown("c1", "d") == {OTHER}

    def test_it_needs_a_node_that_is_down_and_a_free_address(self):
        possible = self.moved().possible
        assert possible.guard(Move("a", "b")) == "a is running"
        assert possible.guard(Move("b", "d")) == "it is running"
        assert possible.guard(Move("b", "x")) == "there is no node x"


class TestSilence:
    def test_a_silent_client_is_asked_and_its_connection_closed(self):
        cluster = Cluster().do(Connect("c1", "a"), Register("c1", "web", ONE), Advance(2000), FallSilent("c1"))
        assert cluster.do(Advance(19_000)).shown("c1", "b") == {ONE}
        assert cluster.do(Advance(11_000)).shown("c1", "b") == {None}

    def test_a_client_that_was_asked_stays_if_it_answers_before_the_wait_is_over(self):
        for answers, left in ((True, {ONE}), (False, {None})):
            cluster = Cluster().do(Connect("c1", "a"), Register("c1", "web", ONE), FallSilent("c1"), Advance(24_000))
            cluster.do(*([AnswerAgain("c1")] if answers else []), Advance(2_000))
            assert cluster.shown("c1", "a") == left

    def test_a_release_waits_for_a_second_and_then_checks_in_phase_with_its_last_check(self):
        cluster = Cluster(PROFILES["nacos-2.0.4"]).do(Connect("c1", "a"), Connect("c2", "a"), FallSilent("c1"))
        assert cluster.do(Advance(1_500), FallSilent("c2"), Advance(20_500)).shown("c1", "a") == {None}
        assert cluster.do(Advance(3_500)).shown("c2", "a") == {""}
        assert cluster.do(Advance(500)).shown("c2", "a") == {None}

    def test_a_client_that_answers_again_in_time_stays(self):
        cluster = Cluster().do(Connect("c1", "a"), Register("c1", "web", ONE), FallSilent("c1"), Advance(15_000))
        assert cluster.do(AnswerAgain("c1"), Advance(30_000)).shown("c1", "b") == {ONE}

    def test_a_silent_client_registers_nothing(self):
        cluster = Cluster().do(Connect("c1", "a"), FallSilent("c1"))
        assert cluster.possible.guard(Register("c1", "web", ONE)) == "c1 is silent"

    def test_b03_never_closes_it(self):
        cluster = Cluster(with_mutant(STRICT, "B03")).do(Connect("c1", "a"), FallSilent("c1"), Advance(120_000))
        assert cluster.shown("c1", "a") == {""}


class TestOneRequest:
    def held(self):
        return Cluster().do(Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", ONE), Advance(1000))

    def test_a_held_request_arrives_alone(self):
        cluster = self.held().do(
            Connect("c2", "a"), Register("c2", "web", OTHER), Advance(1000), Deliver("a", "b", "CHANGE", "c2")
        )
        assert (cluster.shown("c2", "b"), cluster.shown("c1", "b")) == ({OTHER}, {None})

    def test_or_is_lost_or_acknowledged_without_being_delivered(self):
        assert self.held().do(Drop("a", "b", held=True), Release("a", "b"), Advance(3000)).ended[0].endswith("timeout")
        swallowed = self.held().do(Swallow("a", "b", "CHANGE", held=True))
        assert swallowed.ended == ["CHANGE a->b c1 revision 1: success"]
        assert swallowed.shown("c1", "b") == {None}

    def test_its_reply_may_come_late_or_never(self):
        late = self.held().do(AnswerLate("a", "b"))
        assert (late.ended, late.shown("c1", "b")) == ([], {ONE})
        assert late.do(Advance(500), Reply("a", "b")).ended == ["CHANGE a->b c1 revision 1: success"]
        lost = self.held().do(AnswerLate("a", "b"), Advance(3000))
        assert lost.ended == ["CHANGE a->b c1 revision 1: timeout"]

    def test_where_only_distro_requests_are_held_reports_pass(self):
        def held(**how):
            holds = (Hold("a", "b", **how), Hold("b", "a", **how))
            return Cluster(PROFILES["nacos-2.0.4"]).do(
                Connect("c1", "a"), *holds, Register("c1", "web", ONE), Advance(20_000)
            )

        assert held(distro=True).shown("c1", "b") == held().shown("c1", "b") == {None}
        assert held(distro=True).state.node("a").member("b").state is MemberState.UP
        assert held().state.node("a").member("b").state is not MemberState.UP

    def test_a_request_that_is_not_held_cannot_be_decided(self):
        assert Cluster().possible.guard(Deliver("a", "b")) == "no such request waits"
        assert self.held().possible.guard(Reply("a", "b")) == "no such reply waits"

    def test_the_next_one_may_lose_its_reply_or_come_twice(self):
        change = (Register("c1", "web", ONE), Advance(1000))
        lost = Cluster().do(Connect("c1", "a"), LoseReply("a", "b", "CHANGE"), *change)
        assert (lost.ended, lost.shown("c1", "b")) == ([], {ONE})
        assert "CHANGE a->b c1 revision 1: timeout" in lost.do(Advance(3000)).ended
        twice = Cluster().do(Connect("c1", "a"), Duplicate("a", "b", "CHANGE"), *change)
        assert twice.ended == ["CHANGE a->b c1 revision 1: success"]

    def test_a_fault_meets_the_request_that_it_names_and_not_only_the_first(self):
        cluster = Cluster().do(Connect("c1", "a"), Connect("c2", "a"), Swallow("a", "b", "CHANGE", "c2"))
        cluster.do(Register("c1", "web", ONE), Register("c2", "web", OTHER), Advance(1000))
        assert (cluster.shown("c1", "b"), cluster.shown("c2", "b")) == ({ONE}, {None})


class TestPauses:
    def test_a_request_to_a_paused_node_times_out_and_arrives_in_the_end(self):
        cluster = Cluster().do(Connect("c1", "a"), Pause("b"), Register("c1", "web", ONE), Advance(4500))
        assert "CHANGE a->b c1 revision 1: timeout" in cluster.ended
        assert cluster.shown("c1", "b") == {None}
        assert cluster.do(Resume("b")).shown("c1", "b") == {ONE}

    def test_its_timers_stand_still_too(self):
        cluster = Cluster().do(Connect("c1", "a"), Register("c1", "web", ONE), Pause("a"), Advance(10_000))
        assert (cluster.ended, cluster.shown("c1", "b")) == ([], {None})
        assert cluster.do(Resume("a"), Advance(1000)).shown("c1", "b") == {ONE}

    def test_no_node_connects_to_it(self):
        cluster = Cluster().do(Connect("c1", "a"), Pause("a"))
        assert cluster.possible.guard(Register("c1", "web", ONE)) == "a stands still"
        assert cluster.do(Crash("a"), Restart("a")).possible.guard(Resume("a")) == "a does not stand still"


class TestMemberLists:
    def test_a_member_that_left_the_list_is_sent_nothing_and_one_that_is_back_everything(self):
        cluster = Cluster(nodes="abc").do(ListMembers("a", ("a", "b")), Connect("c1", "a"), Register("c1", "web", ONE))
        assert cluster.do(Advance(7000)).shown("c1", "c") == {None}
        assert cluster.do(ListMembers("a", ("a", "b", "c")), Advance(30_000)).shown("c1", "c") == {ONE}

    def test_a_node_stays_a_member_by_a_list_without_it(self):
        with_it, without = (Cluster(nodes="abc").do(ListMembers("a", each)) for each in (("a", "b"), ("b",)))
        assert without.state == with_it.state

    def test_a_list_names_nodes(self):
        assert Cluster().possible.guard(ListMembers("a", ("a", "z"))) == "there is no node z"


class TestPartsOfWhatANodeDoes:
    def test_a_change_that_is_made_and_applied_in_parts_arrives(self):
        for mutant in ("B05", "B05-sender"):
            cluster = Cluster(with_mutant(STRICT, mutant)).do(Connect("c1", "a"), Register("c1", "web", ONE))
            cluster.do(Advance(2000))
            assert "CHANGE a->b c1 revision 1: success" in cluster.ended
            assert ONE in cluster.shown("c1", "b")

    def test_a_new_owner_of_a_copy_that_came_in_parts_checks_its_beats(self):
        for owner, heir in ("ab", "ba"):
            cluster = Cluster(PROFILES["nacos-2.2.4"]).do(HttpRegister("web", ONE, owner), Advance(2000), Crash(owner))
            assert cluster.shown(CLIENT, heir) == {ONE}
            assert cluster.do(Advance(21_000)).shown(CLIENT, heir) == {f"{ONE} (unhealthy)"}
            assert cluster.do(Advance(20_000)).shown(CLIENT, heir) <= {"", None}

    def test_local_events_are_handled_in_the_instant_in_which_they_are_published(self):
        cluster = Cluster(replace(STRICT, event_queue=2, keeps_index=True)).do(
            Connect("c1", "a"), Register("c1", "web", ONE)
        )
        assert not cluster.state.node("a").local.events
        assert cluster.state.node("a").local.index == (("web", "c1"),)


OF_SEARCHES = {
    *("SetupStarted", "SetupFinished", "RequestStarted", "RequestFinished", "HttpEntered", "HttpFinished"),
    *("HandlingRaised", "LoadInterrupted", "OperatorSet", "MetadataDeleted"),
}
"""Events that no action and no timer causes. Set-ups and requests are handled in one step. No driver makes the code of
a node raise. Metadata is replicated by raft, which no node here implements."""


def test_every_other_event_happens_on_a_clock(monkeypatch):
    observed = set()

    def handle(cluster, position, event, call=None, original=mutable_cluster.MutableCluster.handle):
        observed.add(type(event).__name__)
        return original(cluster, position, event, call)

    monkeypatch.setattr(mutable_cluster.MutableCluster, "handle", handle)
    TestHttpClients().test_beats_keep_it_and_silence_makes_it_unhealthy_and_then_gone()
    TestHttpClients().test_where_changes_are_announced_by_event_they_are_announced_at_once()
    TestSilence().test_a_silent_client_is_asked_and_its_connection_closed()
    TestSilence().test_a_client_that_was_asked_stays_if_it_answers_before_the_wait_is_over()
    TestMemberLists().test_a_member_that_left_the_list_is_sent_nothing_and_one_that_is_back_everything()
    TestPartsOfWhatANodeDoes().test_a_change_that_is_made_and_applied_in_parts_arrives()
    TestPartsOfWhatANodeDoes().test_local_events_are_handled_in_the_instant_in_which_they_are_published()
    test_a_batch_is_one_entry_of_its_client_and_travels_like_any_other()
    cluster = Cluster().do(
        Connect("c1", "a"), Register("c1", "web", ONE), Advance(2000), Cut("a", "b"), Advance(200_000)
    )
    assert cluster.shown("c1", "b") == {None}  # its lease has ended
    assert cluster.state.node("a").member("b").state is MemberState.DOWN
    mistyped = (Mistype("a", "b", "DELETE", "c1"), Disconnect("c1"), Advance(2000))
    cluster.do(Heal("a", "b"), Deregister("c1", "web"), Advance(20_000), *mistyped)
    assert {each.__name__ for each in typing.get_args(Event)} - observed == OF_SEARCHES


def test_a_round_that_asks_one_member_asks_one():
    """With a clock, the mutant m-verify-to-one once had no effect."""
    cluster = Cluster(with_mutant(STRICT, "m-verify-to-one"), "abc").do(Connect("c1", "a"), Register("c1", "web", ONE))
    cluster.do(Advance(2000), Advance(5000))
    assert [call for call in cluster.ended if "VERIFY" in call] == ["VERIFY a->b c1 revision 1: success"]


def test_a_lease_check_that_takes_natives_for_copies_runs_when_they_are_old_enough():
    """With a clock, the mutant m-cleaner-drops-native once had no effect."""
    acts = (Connect("c1", "a"), Register("c1", "web", ONE), Advance(190_000))
    assert Cluster(with_mutant(STRICT, "m-cleaner-drops-native")).do(*acts).shown("c1", "a") == {None}
    assert Cluster().do(*acts).shown("c1", "a") == {ONE}


@pytest.mark.parametrize("kind", [LoseReply, Duplicate, Garble, Mistype])
@pytest.mark.parametrize(("begin", "end"), [(Hold("a", "b"), Release("a", "b")), (Pause("b"), Resume("b"))])
def test_a_request_that_will_meet_a_fault_waits_on_a_held_link_as_any_other(kind, begin, end):
    cluster = Cluster().do(Connect("c1", "a"), begin, kind("a", "b", "CHANGE", "c1"), Register("c1", "web", ONE))
    assert cluster.do(Advance(2000)).shown("c1", "b") == {None}
    assert cluster.do(end).shown("c1", "b") == {None if kind is Mistype else ONE}
