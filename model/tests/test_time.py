"""The schedule: the time of each timer, and the orders that are left open within one instant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    Refuse,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.clock import instants
from distro_model.clock.cluster import IllegalActionError, Outcome, View, apply, enabled, observe, prologue, start
from distro_model.clock.traffic import Ended, Traffic
from distro_model.messages import CallResult, Operation
from distro_model.node import MemberState
from distro_model.possible import PossibleStates, Rejection
from distro_model.profiles import NACOS_2_0_4, NACOS_2_2_4, STRICT, Profile

WEB_1 = "10.0.0.1:80 v=1"
WEB_2 = "10.0.0.1:80 v=2"
WEBS = ("10.0.1.1:80", "10.0.1.2:80")
"""Each node owns one."""
DECISIVE = (96, 122)
"""Seeds of walks in which a report changes an owner in the instant of a check, while a task waits for a client of
another owner."""


def running(profile=STRICT, nodes="ab") -> PossibleStates:
    possible = PossibleStates.of(start(nodes, profile))
    for action in prologue(nodes, profile):
        possible = possible.after(action)
    return possible


def after(possible: PossibleStates, *actions) -> PossibleStates:
    for action in actions:
        possible = possible.after(action)
    return possible


def test_one_long_wait_is_the_same_as_many_short_ones():
    begun = after(running(nodes="abc"), Connect("c1", "a"), Register("c1", "web", WEB_1), Crash("c"), Cut("a", "b"))
    in_one = after(begun, Advance(23_450))
    in_many = after(begun, *[Advance(50)] * 469)
    assert in_one.states == in_many.states


def test_nothing_happens_in_no_time():
    possible = after(running(), Connect("c1", "a"), Register("c1", "web", WEB_1))
    assert after(possible, Advance(0)).states == possible.states


def test_a_change_and_a_verify_of_one_instant_come_in_either_order():
    """The change is due exactly when the owner verifies: the copy is asked about a revision it may not have yet."""
    possible = after(running(NACOS_2_2_4), Advance(3000), Connect("c1", "a"), Register("c1", "web", WEB_1))
    calls = {frozenset(str(call) for call in o.traffic) for o in after(possible, Advance(1000)).outcomes}
    assert calls == {
        frozenset({"CHANGE a->b c1 revision 1: success", "VERIFY a->b c1 revision 1: success"}),
        frozenset({"VERIFY a->b c1 revision 1: fail", "CHANGE a->b c1 revision 1: success"}),
    }


def test_a_repair_may_wait_for_the_next_tick_and_no_longer():
    possible = after(running(), Connect("c1", "a"), Advance(4000))
    held = {observe(state)["b"].get("c1") for state in possible.states}
    assert held == {None, View(0, ())}
    assert {observe(state)["b"].get("c1") for state in after(possible, Advance(100)).states} == {View(0, ())}


def test_a_load_and_a_verify_of_one_instant_come_in_either_order():
    """Node a, started alone, loads again after 30 s: an instant at which its verify is due as well."""
    possible = after(
        PossibleStates.of(start("ab", STRICT)),
        Restart("a"),
        Advance(10),
        Restart("b"),
        Connect("c1", "a"),
        Advance(29_990),
    )
    verified = {any(call.operation is Operation.VERIFY for call in o.traffic) for o in possible.outcomes}
    assert verified == {True, False}


class TestNodesThatStartedTogether:
    """Their timers tie for ever. Most of those shared decide nothing, and then the order is not even tried."""

    def running(self, nodes: str) -> PossibleStates:
        return after(PossibleStates.of(start(nodes, STRICT)), *map(Restart, nodes), Advance(31_000))

    def test_a_lease_check_here_and_a_verify_from_there_come_in_either_order(self):
        """The copy's lease has run out when the owner's first verify for three minutes arrives."""
        possible = after(self.running("ab"), Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(2000))
        possible = after(possible, Hold("a", "b"), Advance(181_900), Release("a", "b"), Advance(100))
        assert {"c1" in (observe(state)["b"] or {}) for state in possible.states} == {True, False}

    @pytest.mark.parametrize(
        "cut", [[], [("a", "b")], pytest.param([("a", "b"), ("b", "a"), ("c", "a")], marks=pytest.mark.slow)]
    )
    def test_trying_every_order_of_all_nodes_would_find_nothing_more(self, monkeypatch, cut: list[tuple[str, str]]):
        begun = after(self.running("abc"), *(Cut(*ends) for ends in cut))
        for client, node in (("c1", "a"), ("c2", "b"), ("c3", "c")):
            begun = after(begun, Connect(client, node), Register(client, "web", WEB_1))
        begun = after(begun, Drop("a", "b", "CHANGE"), Hold("b", "c"))
        grouped = after(begun, Advance(7000))
        try_every_order(monkeypatch)
        assert after(begun, Advance(7000)).states == grouped.states

    @pytest.mark.parametrize("profile", [STRICT, NACOS_2_2_4], ids=lambda profile: profile.name)
    def test_another_order_gives_no_other_state_where_a_client_reaches_its_owner_at_a_verify_round(
        self, monkeypatch, profile: Profile
    ):
        """b owns the client by its hash, and receives it when a repeats its CHANGE, in the instant of a round of b."""
        possible = after(PossibleStates.of(start("ab", profile)), *map(Restart, "ab"), Advance(20_000))
        possible = after(possible, Cut("a", "b"), Cut("b", "a"), Advance(18_000), HttpRegister("web", WEBS[0], "a"))
        possible = after(possible, Drop("a", "b", "CHANGE"), Heal("a", "b"), Heal("b", "a"))
        grouped = after(possible, Advance(7000))
        try_every_order(monkeypatch)
        assert after(possible, Advance(7000)).states == grouped.states
        assert len(grouped.states) > 1

    @pytest.mark.parametrize(
        "seed", [*range(3), *DECISIVE, *(pytest.param(each, marks=pytest.mark.slow) for each in range(3, 8))]
    )
    def test_another_order_gives_no_other_state_with_clients_of_the_http_api_whose_owners_die(
        self, monkeypatch, seed: int
    ):
        random, profile = Random(seed), (STRICT, NACOS_2_2_4, NACOS_2_0_4)[seed % 3]
        possible, waits = after(PossibleStates.of(start("ab", profile)), *map(Restart, "ab"), Advance(31_000)), 0
        for _ in range(60):
            action = some_action(random)
            if possible.guard(action) is not None:
                continue
            before, possible = possible, possible.after(action)
            if isinstance(action, Advance):
                waits += 1
                with monkeypatch.context() as patched:
                    try_every_order(patched)
                    assert before.after(action).states == possible.states
            if len(possible.states) > 4:
                possible = PossibleStates.of(min(possible.states, key=str))
        assert waits > 9


def try_every_order(monkeypatch) -> None:
    monkeypatch.setattr(instants, "groups", lambda cluster, _: [frozenset(range(cluster.size))])
    monkeypatch.setattr(instants, "without_idle_checks", lambda _, due: due)


def some_action(random: Random) -> Action:
    instance, (node, other) = f"{random.choice(WEBS)} v={random.randrange(3)}", random.sample("ab", 2)
    match random.randrange(24):
        case 0 | 1 | 2 | 3:
            return HttpRegister("web", instance, node)
        case 4 | 5:
            return HttpBeat("web", instance, node)
        case 6:
            return HttpDeregister("web", instance, node)
        case 7:
            return Connect("c1", node)
        case 8:
            return Register("c1", "web", WEB_1)
        case 9:
            return Crash(node)
        case 10 | 11:
            return Restart(node)
        case 12:
            return random.choice((Cut, Hold))(node, other)
        case 13 | 14:
            return random.choice((Heal, Release))(node, other)
        case 15:
            return Drop(node, other, "CHANGE")
    return Advance(random.choice((100, 1000, 2500, 5000, 15_000, 15_000, 30_000)))


def test_a_report_between_two_that_see_each_other_up_may_meet_a_failure_of_the_same_instant():
    """Both report at once, and one report fails: it may count before the other arrives, or after it."""
    possible = after(PossibleStates.of(start("ab", STRICT)), Restart("a"), Restart("b"), Advance(31_000))
    assert len(after(possible, Cut("b", "a"), Advance(2000)).states) == 2


def test_timers_of_nodes_that_started_apart_leave_nothing_open():
    possible = after(running(nodes="abc"), Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(20_050))
    assert len(possible.outcomes) == 1


def test_a_held_request_vanishes_after_its_time():
    possible = after(running(), Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", WEB_1), Advance(3900))
    (change,) = [call for call in possible.outcomes[0].state.link("a", "b").calls if call.request.operation == "CHANGE"]
    assert change.deadline_ms == possible.outcomes[0].state.now_ms + 100
    ended = after(possible, Advance(100)).outcomes[0]
    assert Traffic("a", "b", Operation.CHANGE, "c1", 1, CallResult.TIMEOUT) in ended.traffic


def test_a_drop_waits_for_a_distro_request_and_lets_reports_pass():
    armed = after(running(), Drop("a", "b"), Hold("a", "b"), Advance(9000))
    state = armed.outcomes[0].state
    assert {call.request.operation for call in state.link("a", "b").calls} == {Operation.REPORT}
    assert len(state.wire("a", "b").faults) == 1


def test_a_crash_answers_for_what_was_on_its_way_to_the_node():
    possible = after(running(), Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", WEB_1), Advance(1000))
    (outcome,) = after(possible, Crash("b")).outcomes
    assert [call.outcome for call in outcome.traffic] == [CallResult.UNREACHABLE]
    assert observe(outcome.state)["b"] is None


def test_a_cut_answers_for_what_was_on_its_way():
    possible = after(running(), Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", WEB_1), Advance(1000))
    (outcome,) = after(possible, Cut("a", "b")).outcomes
    assert [call.outcome for call in outcome.traffic] == [CallResult.UNREACHABLE]


def test_a_crash_of_the_sender_ends_its_calls_and_connections():
    possible = after(running(), Connect("c1", "a"), Hold("a", "b"), Register("c1", "web", WEB_1), Advance(1000))
    (outcome,) = after(possible, Crash("a"), Release("a", "b")).outcomes
    assert outcome.traffic == ()
    assert enabled(outcome.state, Register("c1", "web", WEB_2)) == "c1 is no longer connected"


@pytest.mark.parametrize(
    ("action", "guard"),
    [
        (Connect("c1", "b"), "c1 has been connected before, and a connection id is never used twice"),
        (Connect("c2", "x"), "there is no node x"),
        (Register("c9", "web", WEB_1), "c9 has never been connected"),
        (Deregister("c1", "web"), "c1 does not publish web"),
        (Disconnect("c9"), "c9 has never been connected"),
        (Advance(-1), "time does not run backwards"),
        (Cut("a", "a"), "a has no link to itself"),
        (Heal("a", "b"), "the link is not cut, and the target refuses nothing"),
        (Release("a", "b"), "the link is not held"),
        (Restart("a"), "it is running"),
        (Drop("a", "b", "REPORT"), "REPORT is none of CHANGE, DELETE, VERIFY, SNAPSHOT"),
        (Drop("a", "b", "CHANGE", "c9"), "c9 has never been connected"),
        (Swallow("a", "b", "CHANGE", "c9"), "c9 has never been connected"),
        (Swallow("a", "b", "SNAPSHOT"), "SNAPSHOT is none of CHANGE, DELETE, VERIFY"),
    ],
)
def test_an_illegal_action_is_refused_with_its_guard(action, guard):
    possible = after(running(), Connect("c1", "a"))
    assert possible.guard(action) == guard
    with pytest.raises(IllegalActionError, match=guard.split(",", maxsplit=1)[0]):
        apply(possible.outcomes[0].state, action)


class TestPossibleStates:
    def undecided(self) -> PossibleStates:
        return after(running(), Connect("c1", "a"), Advance(4000))

    def test_an_observation_narrows(self):
        possible = self.undecided()
        assert len(possible.states) == 2
        seen = observe(possible.outcomes[0].state)
        narrowed = possible.matching(seen)
        assert isinstance(narrowed, PossibleStates)
        assert len(narrowed.states) == 1

    def test_traffic_narrows_in_any_order(self):
        possible = after(running(), Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(9000))
        outcome = possible.outcomes[0]
        assert isinstance(possible.matching(observe(outcome.state), reversed(outcome.traffic)), PossibleStates)
        assert isinstance(possible.matching(observe(outcome.state), outcome.traffic[1:]), Rejection)

    def test_a_rejection_names_the_action_and_what_differs(self):
        possible = after(running(), Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(1500))
        seen = {"a": {"c1": View(1, (("web", WEB_1),))}, "b": {"c1": View(1, (("web", WEB_2),))}}
        rejection = possible.matching(seen, ())
        assert str(rejection).splitlines() == [
            "after `advance 1500ms` what was observed is not the only outcome that the model allows",
            "  nearest 1: c1 at b: content is web 10.0.0.1:80 v=2; the model expects web 10.0.0.1:80 v=1",
            "  nearest 1: a does not send CHANGE a->b c1 revision 1: success; the model expects it",
        ]

    def test_a_call_with_another_end_is_a_difference_at_its_receiver(self):
        possible = after(running(), Connect("c1", "a"), Register("c1", "web", WEB_1), Advance(1500))
        (outcome,) = possible.outcomes
        failed = [call._replace(outcome=CallResult.FAIL) for call in outcome.traffic]
        rejection = possible.matching(observe(outcome.state), failed)
        assert str(rejection).splitlines()[1:] == [
            "  nearest 1: c1 at b: the answer to CHANGE a->b revision 1 is fail; the model expects success",
        ]

    def test_a_rejection_knows_nodes_and_clients_that_are_not_there(self):
        rejection = running().matching({"a": None, "b": {"c9": View(0, ())}})
        assert "a: the node is down; the model expects up" in str(rejection)
        assert "c9 at b: the client is there at revision 0 with nothing; the model expects unknown" in str(rejection)


LOOK_MS = 20


class TestWhatWasSeenToEnd:
    """Verifies and syncs are refused: at every round a retry meets the tick of its instant or misses it."""

    TIME = Advance(41_000)

    def begun(self) -> PossibleStates:
        refuse = (Refuse("a", "b"), Refuse("b", "a"))
        return after(running(NACOS_2_0_4), *refuse, Connect("c1", "a"), Connect("c2", "a"), Connect("c3", "b"))

    def lived(self, seed: int) -> tuple[Outcome, list[Ended]]:
        """One of the ways that the same time may take, seen often enough to tell two ticks apart."""
        random, possible, ended = Random(seed), self.begun(), []
        for at_ms in range(LOOK_MS, self.TIME.ms + 1, LOOK_MS):
            outcome = random.choice(possible.after(Advance(LOOK_MS)).outcomes)
            ended += [Ended(at_ms, call) for call in outcome.traffic]
            possible = PossibleStates((outcome,))
        return outcome, ended

    @pytest.mark.parametrize("seed", range(5))
    def test_spares_what_cannot_have_been_and_never_what_was(self, seed: int):
        outcome, ended = self.lived(seed)
        possible = self.begun().after(self.TIME, ended)
        assert len(possible.outcomes) <= 2
        assert outcome.state in possible.states
        agreed = possible.matching(observe(outcome.state), [each.call for each in ended])
        assert isinstance(agreed, PossibleStates)

    def test_equal_states_with_different_starts_are_one_state(self):
        two = self.begun().after(Advance(5_100))
        assert len(two.outcomes) > 1
        possible = two.after(self.TIME)
        assert len({(each.state, frozenset(Counter(each.traffic).items())) for each in possible.outcomes}) == len(
            possible.outcomes
        )

    def test_without_it_every_round_adds_some(self):
        assert len(self.begun().after(self.TIME).outcomes) > 60

    def test_a_call_that_cannot_have_been_is_refused(self):
        _, ended = self.lived(0)
        extra = Traffic("b", "a", Operation.DELETE, "c2", None, CallResult.SUCCESS)
        possible = self.begun().after(self.TIME, [Ended(0, extra), *ended])
        rejection = possible.matching(observe(possible.outcomes[0].state), [extra, *(each.call for each in ended)])
        assert isinstance(rejection, Rejection)
        assert "b sends DELETE b->a c2: success; the model expects no such call" in str(rejection)


@pytest.mark.parametrize(("has_them", "up_again_ms"), [(False, 3500), (True, 500)])
def test_a_member_that_is_not_up_is_sent_separate_reports(has_them: bool, up_again_ms: int):
    """From 2.3.0 on. The reports that go round come by every 4 s among three, those to members not UP every 5 s."""
    profile = replace(STRICT, reports_to_members_not_up=has_them)
    down = after(running(profile, "abc"), Crash("c"), Advance(28_500), Restart("c"))
    waits = range(0, 5000, 500)
    assert next(ms for ms in waits if sees_up(after(down, Advance(ms)), "a", "c")) == up_again_ms


def sees_up(possible: PossibleStates, node: str, other: str) -> bool:
    return all(outcome.state.node(node).member(other).state is MemberState.UP for outcome in possible.outcomes)
