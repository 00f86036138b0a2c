"""The answers that complete a load, and a cluster without any client: the first load in strict (B33)."""

from __future__ import annotations

import pytest

from distro_model.actions import Advance, Connect, Crash, Cut, Drop, Heal, Hold, Register, Restart
from distro_model.clock.cluster import View, observe, prologue, start
from distro_model.events import CallEnded, LoadDue, RequestReceived, Send
from distro_model.messages import FAIL, TIMEOUT, UNREACHABLE, Answer, CallResult, Change, Snapshot
from distro_model.mutants import with_mutant
from distro_model.node import Client, Member, MemberState, fresh_node
from distro_model.possible import PossibleStates
from distro_model.profiles import NACOS_2_2_4, STRICT, profile_named
from distro_model.step import step

WEB = (("web", "10.0.0.1:80"),)


def after_answers(*answers, profile=STRICT, node=None):
    """A node that loads from b and c, after it has received their answers."""
    node = step(node or fresh_node("a", ["b", "c"], 0), LoadDue(0), profile).node
    for answer in answers:
        node = step(node, CallEnded(0, node.asking, Snapshot(), answer), profile).node
    return node


@pytest.mark.parametrize(("profile", "refuses"), [("nacos-2.0.4", False), ("nacos-2.2.4", False), ("strict", True)])
def test_a_node_that_is_not_loaded_gives_no_snapshot(profile, refuses):
    node = fresh_node("b", ["a"], 0).with_client(Client("c1", False, 1, WEB, 0))
    (reply,) = step(node, RequestReceived(0, "a", Snapshot()), profile_named(profile)).outputs
    assert reply.answer.result is (CallResult.FAIL if refuses else CallResult.SUCCESS)
    assert bool(reply.answer.copies) is not refuses


def test_after_a_refusal_the_next_member_is_asked_at_once():
    node = after_answers()
    assert step(node, CallEnded(0, "b", Snapshot(), FAIL), STRICT).outputs == (Send("c", Snapshot()),)


def test_refused_by_all_it_is_loaded_with_nothing():
    node = after_answers(FAIL, FAIL)
    assert (node.loaded, node.asking, node.load_at_ms, node.clients) == (True, None, None, ())


def test_a_release_knows_no_refusal_and_tries_again():
    assert after_answers(FAIL, FAIL, profile=NACOS_2_2_4).load_at_ms == 30_000


@pytest.mark.parametrize("lost", [TIMEOUT, UNREACHABLE, Answer(CallResult.ERROR)], ids=lambda lost: lost.result.value)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_member_that_did_not_answer_may_hold_the_clients(lost, is_first):
    node = after_answers(*((lost, FAIL) if is_first else (FAIL, lost)))
    assert (node.loaded, node.load_at_ms) == (False, 30_000)


def node_with_members(**states):
    node = fresh_node("a", sorted(states), 0)
    for name, state in states.items():
        node = node.with_member(Member(name, state))
    return node


UP, SUSPICIOUS, DOWN = MemberState


@pytest.mark.parametrize("states", [{"b": UP, "c": DOWN}, {"b": DOWN, "c": UP}], ids=str)
def test_down_members_are_skipped(states):
    assert after_answers(FAIL, node=node_with_members(**states)).loaded


@pytest.mark.parametrize("states", [{"b": UP, "c": SUSPICIOUS}, {"b": SUSPICIOUS, "c": UP}], ids=str)
def test_a_suspicious_member_may_hold_the_clients(states):
    node = after_answers(FAIL, node=node_with_members(**states))
    assert (node.loaded, node.load_at_ms) == (False, 30_000)


def test_a_node_without_answers_waits():
    node = after_answers(node=node_with_members(b=DOWN, c=DOWN))
    assert (node.loaded, node.load_at_ms) == (False, 30_000)


def test_an_answer_that_was_lost_is_no_refusal_though_the_others_are_down():
    node = after_answers(UNREACHABLE, node=node_with_members(b=UP, c=DOWN))
    assert (node.loaded, node.load_at_ms) == (False, 30_000)


def test_a_member_that_is_back_is_asked_again():
    node = after_answers(UNREACHABLE, node=node_with_members(b=DOWN, c=UP)).with_member(Member("b"))
    assert step(node, LoadDue(30_000), STRICT).outputs == (Send("b", Snapshot()),)


def test_every_round_counts_for_itself():
    assert after_answers(FAIL, FAIL, node=after_answers(UNREACHABLE, FAIL)).loaded


def test_a_success_counts_for_any_answers_of_the_others():
    assert after_answers(FAIL, Answer(CallResult.SUCCESS, (Change("c1", 1, WEB),))).client("c1") is not None


def loaded(state):
    return "".join(node.name for node in state.nodes if node is not None and node.loaded)


class TestTogether:
    """No node waits for ever, and no node counts as loaded while another one holds more."""

    def test_nodes_that_start_one_after_the_other(self):
        """The last one finds all members unloaded; the others, which missed it, ask again after half a minute."""
        possible = PossibleStates.of(start("abc", STRICT))
        seen = []
        for action in (
            Restart("a"),
            Advance(10),
            Restart("b"),
            Advance(10),
            Restart("c"),
            Advance(29_980),
            Advance(10),
        ):
            possible = possible.after(action)
            seen.append({loaded(state) for state in possible.states})
        assert seen == [{""}] * 4 + [{"c"}, {"ac"}, {"abc"}]

    def test_two_nodes_that_restart_together(self, cluster):
        lab = cluster(nodes="ab").do(Crash("a"), Crash("b"), Restart("a"), Restart("b"))
        assert loaded(lab.state) == "b"
        assert loaded(lab.run(30_000).state) == "ab"

    def test_neither_of_two_nodes_that_come_back_forgets_the_third(self, cluster):
        lab = cluster().do(Connect("c1", "c"), Register("c1", "web", "10.0.0.1:80")).run(2000)
        lab.do(Crash("a"), Crash("b"), Cut("a", "c"), Cut("b", "c"), Restart("a"), Restart("b"))
        assert loaded(lab.state) == "c"
        lab.do(Heal("a", "c"), Heal("b", "c")).run(30_000)
        assert loaded(lab.state) == "abc"

    @pytest.mark.parametrize(("mutant", "ready"), [(None, "ab"), ("m-load-waits-for-down", "")])
    def test_two_that_come_back_do_not_wait_for_a_third_that_stays_down(self, cluster, mutant, ready):
        profile = STRICT if mutant is None else with_mutant(STRICT, mutant)
        lab = cluster(profile).do(Crash("a"), Crash("b"), Crash("c"), Restart("a"), Restart("b"))
        assert loaded(lab.run(29_000).state) == ""
        lab.do(Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80")).run(200_000)
        assert loaded(lab.state) == ready
        assert lab.view("b", "c1") == (View(1, WEB) if ready else None), "without verifies the copy ends with its lease"

    def test_a_third_node_that_was_only_cut_off_replicates_its_clients(self, cluster):
        """The two have taken it for DOWN and are loaded with nothing."""
        lab = cluster().do(Connect("c1", "c"), Register("c1", "web", "10.0.0.1:80")).run(2000)
        far = [link for near in "ab" for link in ((near, "c"), ("c", near))]
        lab.do(Crash("a"), Crash("b"), *(Cut(*link) for link in far), Restart("a"), Restart("b"))
        lab.do(Connect("c2", "a"), Register("c2", "web", "10.0.0.2:80")).run(60_000)
        assert (loaded(lab.state), lab.view("a", "c1"), lab.view("b", "c1")) == ("abc", None, None)
        lab.do(*(Heal(*link) for link in far)).run(15_000)
        assert [lab.view(node, "c1") for node in "ab"] == [View(1, WEB)] * 2
        assert lab.view("c", "c2") == lab.view("a", "c2")

    def test_a_node_that_starts_late_takes_the_third_for_down_too(self, cluster):
        """A snapshot of a node that loaded without a member is incomplete, and unmarked: the verify repairs it."""
        lab = cluster().do(Connect("c1", "c"), Register("c1", "web", "10.0.0.1:80")).run(2000)
        lab.do(Crash("a"), Crash("b"), Cut("a", "c"), Cut("c", "a"), Cut("b", "c"), Restart("a"), Restart("b"))
        lab.run(40_000).do(Crash("b"), Heal("b", "c"), Restart("b"))
        assert (loaded(lab.state), lab.view("b", "c1")) == ("abc", None), "the first answer is believed"
        assert lab.run(15_000).view("b", "c1") == View(1, WEB)

    @pytest.mark.parametrize(("profile", "view"), [("nacos-2.2.4", None), ("strict", View(1, WEB))])
    def test_b33_loading_from_one_that_knows_nothing(self, cluster, profile, view):
        lab = cluster(profile).do(Connect("c1", "c"), Register("c1", "web", "10.0.0.1:80")).run(2000)
        lab.do(Crash("a"), Crash("b"), Cut("b", "c"), Restart("b"), Restart("a"))
        assert lab.view("a", "c1") == view

    def test_two_loads_that_go_on_in_one_instant_come_in_either_order(self, cluster):
        """Both waited in vain. Whether a is refused by c depends on whether c has asked b in the meantime."""
        lab = cluster().do(Crash("a"), Crash("c"), Drop("a", "b", "SNAPSHOT"), Drop("c", "a", "SNAPSHOT"))
        possible = lab.do(Restart("a"), Restart("c")).possible.after(Advance(30_000))
        assert {loaded(state) for state in possible.states} == {"abc", "bc"}


def test_two_nodes_that_lose_their_source_ask_each_other_in_either_order_or_at_once():
    """The copy at b is older than what c1 has said since; a release writes that over it (B01)."""
    possible = PossibleStates.of(start("abc", NACOS_2_2_4))
    old, new = "10.0.0.1:80", "10.0.0.1:81"
    for action in (
        *prologue("abc", NACOS_2_2_4),
        *(Crash("b"), Crash("c"), Hold("b", "a"), Hold("c", "a"), Restart("b"), Restart("c"), Connect("c1", "c")),
        *(Register("c1", "web", old), Advance(1100), Register("c1", "web", new), Crash("a")),
    ):
        possible = possible.after(action)
    views = [observe(state) for state in possible.states]
    held = {tuple(dict(view[node]["c1"].content)["web"] for node in "bc") for view in views}
    assert held == {(old, old), (new, new), (new, old)}
