"""Every reachable state of small clusters: counts, properties that hold, and the violations of each broken profile."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_model.actions import Crash, LoseReply, Swallow
from distro_model.bounded.bounds import Bounds
from distro_model.clock.cluster import observe, start
from distro_model.explorer import explore
from distro_model.mutants import MUTANTS, UnknownMutantError, with_mutant
from distro_model.possible import PossibleStates
from distro_model.profiles import PROFILES, STRICT, UnknownProfileError, beside_nodes, profile_named
from distro_model.properties import PROPERTIES, UnknownPropertyError, property_named
from distro_model.repeating import as_timed
from distro_model.search.results import until_found
from distro_model.search.system import Kind
from distro_model.timing import NoTimesError

SMALL = Bounds(nodes=2, clients=1, changes=1, drops=0, swallows=0)


@cache
def searched(bounds, profile):
    """All properties: several tests look at one search."""
    return explore(bounds, profile)


@pytest.mark.parametrize(
    ("profile", "bounds", "states", "transitions"),
    [
        ("strict", SMALL, 141, 278),
        ("strict", Bounds(), 3663, 10533),
        ("nacos-2.0.4", Bounds(), 3295, 9371),
        ("nacos-2.2.4", Bounds(), 5340, 15154),
        ("strict", Bounds(nodes=3, changes=1, drops=0), 9290, 33741),
        ("strict", Bounds(changes=1, crashes=1), 8026, 27046),
    ],
)
def test_counts_are_pinned(profile, bounds, states, transitions):
    """A change of any rule changes these; if you meant it, the new counts belong into the same commit."""
    explored = searched(bounds, PROFILES[profile])
    assert (explored.complete, explored.distinct_states, explored.transitions) == (True, states, transitions)


def test_the_smallest_count_is_known_by_hand():
    """One node, one client, no change: not connected, connected, gone; and a verify round without a target."""
    explored = searched(Bounds(nodes=1, clients=1, changes=0, drops=0, swallows=0), STRICT)
    assert (explored.distinct_states, explored.transitions) == (3, 3)


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(),
        Bounds(lost_replies=1, swallows=0),
        Bounds(changes=1, crashes=1),
        Bounds(nodes=3, changes=1, drops=0),
        Bounds(clients=2, changes=1, drops=0, swallows=0, in_flight=1),
    ],
    ids=str,
)
def test_strict_satisfies_everything(bounds):
    explored = searched(bounds, STRICT)
    assert explored.complete
    assert {result.name: result.holds for result in explored.results if result.holds is False} == {}
    assert explored.holds


def broken(profile, **bounds):
    return {result.name for result in searched(Bounds(**bounds), profile).results if result.holds is False}


def test_a_release_breaks_the_listed_properties():
    for_ever = {"EVENTUALLY-CONV", "EVENTUALLY-DELETE"}
    assert broken(PROFILES["nacos-2.0.4"]) == {"INV-CONV", "INV-VERIFY", "INV-DELETE", *for_ever}  # B02, B24
    for_ever = {"EVENTUALLY-QUIET", "EVENTUALLY-DELETE"}
    assert broken(PROFILES["nacos-2.2.4"]) == {"INV-REV", "INV-DELETE", *for_ever}  # B10, B24


def test_a_lease_that_ends_under_an_open_connection_is_seen():
    """One lost verify is more than a lease of 30 s survives."""
    bounds, short = Bounds(changes=0, periods=3, lease_periods=1, swallows=0), with_mutant(STRICT, "B31")
    run = explore(bounds, short, [property_named("INV-LIVE")], until_found("INV-LIVE")).results[0].counterexample
    assert run.found == "b expired c1, which is connected to a"
    assert "is lost" in str(run)


def test_without_a_lossy_acknowledgement_2_0_4_converges():
    """It takes a sync that is acknowledged and lost: everything else is retried."""
    assert "INV-CONV" not in broken(PROFILES["nacos-2.0.4"], swallows=0, drops=2)


class TestCounterexample:
    def found(self):
        return searched(Bounds(), PROFILES["nacos-2.0.4"]).result("INV-CONV").counterexample

    def test_it_is_a_shortest_run_and_says_what_changed(self):
        run = self.found()
        assert len(run.steps) == 7
        text = str(run)
        assert "is acknowledged and not delivered" in text
        assert text.endswith("INV-CONV: c1: a shows web 10.0.0.1:80 v=2, b shows web 10.0.0.1:80 v=1")
        assert str(run.steps[0]) == "connect c1 a\n    + a: c1 native, revision 0, nothing"

    def test_it_can_be_repeated_on_a_clock(self):
        timed = as_timed(self.found(), PROFILES["nacos-2.0.4"])
        assert Swallow("a", "b", "CHANGE", "c1") in timed.actions
        possible = PossibleStates.of(start(timed.nodes, PROFILES["nacos-2.0.4"]))
        for action in (*timed.prologue, *timed.actions):
            possible = possible.after(action)
        shown = {tuple(held["c1"].content for held in observe(state).values()) for state in possible.states}
        assert shown == {((("web", "10.0.0.1:80 v=2"),), (("web", "10.0.0.1:80 v=1"),))}

    def test_only_requests_that_decide_something_are_held(self):
        """The whole run of times has a hold on each link, and an action for each call."""
        timed = as_timed(self.found(), PROFILES["nacos-2.0.4"])
        assert [type(action).__name__ for action in timed.actions] == [
            *("Advance", "Connect", "Register", "Advance", "Register", "Swallow", "Advance")
        ]

    def test_among_several_clients_a_fault_names_its_own(self):
        bounds, profile = Bounds(clients=2, changes=2, drops=0), PROFILES["nacos-2.0.4"]
        run = explore(bounds, profile, [property_named("INV-CONV")], until_found("INV-CONV")).results[0].counterexample
        assert Swallow("a", "b", "CHANGE", "c1") in as_timed(run, profile).actions

    def test_a_counterexample_of_one_profile_does_not_break_another_on_the_clock(self):
        """Events on a timer are compared with the run, and the first difference is reported."""
        with pytest.raises(NoTimesError, match="a task of a is due at 1,100 ms, before: a executes"):
            as_timed(self.found(), STRICT)

    @pytest.mark.parametrize("profile", ["nacos-2.0.4", "nacos-2.2.4"])
    def test_every_violation_of_a_release_by_default_can_be_repeated(self, profile):
        for result in searched(Bounds(), PROFILES[profile]).results:
            if result.counterexample is not None:
                assert as_timed(result.counterexample, PROFILES[profile]).actions

    def test_a_lost_reply_is_an_action_of_a_counterexample(self):
        profile = beside_nodes(PROFILES["nacos-2.2.4"])
        run = searched(Bounds(drops=0, lost_replies=1), profile).result("INV-DELETE").counterexample
        assert [action for action in as_timed(run, profile).actions if isinstance(action, LoseReply)]

    def test_a_caller_of_a_node_that_crashes_fails_at_once(self):
        """In the search it may wait; counterexamples without that wait have times, the others have a reason."""
        mutant = with_mutant(STRICT, "B33")
        looked = [property_named("INV-INIT")]
        run = explore(MUTANTS["B33"].bounds, mutant, looked, until_found("INV-INIT")).results[0].counterexample
        assert "finds no connection" not in str(run)
        assert Crash("b") in as_timed(run, mutant).actions
        release, bounds = PROFILES["nacos-2.0.4"], Bounds(crashes=1, changes=1)
        looked = [property_named("INV-DELETE")]
        run = explore(bounds, release, looked, until_found("INV-DELETE")).results[0].counterexample
        with pytest.raises(NoTimesError, match="a observes at once that there is no connection to b, after `crash b`"):
            as_timed(run, release)

    def test_the_owner_of_a_client_is_not_seen_from_outside(self):
        mutant = with_mutant(STRICT, "B07")
        run = explore(SMALL, mutant).result("INV-OWNER").counterexample
        with pytest.raises(NoTimesError, match="does not show in any view"):
            as_timed(run, mutant)


class TestResults:
    def test_a_sometimes_that_is_never_found_does_not_hold(self):
        unreachable = property_named("REACH-VERIFY-REPAIR")
        never = replace(unreachable, id="REACH-NOTHING")
        explored = explore(SMALL, STRICT, [never])
        assert explored.result(never.id).holds is False
        assert not explored.holds

    def test_a_sometimes_that_the_bounds_rule_out_is_left_undecided(self):
        assert explore(SMALL, STRICT).result("REACH-RETRY").holds is None

    def test_a_sometimes_comes_with_a_witness(self):
        result = searched(Bounds(), STRICT).result("REACH-SECOND-REVISION")
        assert (result.holds, result.counterexample) == (True, None)
        assert "holds the second content of c1" in result.witness.found

    def test_a_search_in_which_nothing_can_happen_decides_nothing(self):
        """No client, or one that may do nothing: one state, and every property would hold of it."""
        nothing = {"changes": 0, "drops": 0, "swallows": 0}
        for bounds in (Bounds(clients=0, **nothing), Bounds(clients=0, ip_clients=1, **nothing)):
            explored = searched(bounds, STRICT)
            assert (explored.complete, explored.distinct_states, explored.vacuous) == (True, 1, True)
            assert [each.name for each in explored.results if each.holds] == []
            assert explored.holds is None

    def test_an_undecided_result_is_neither_true_nor_false(self):
        bounds = Bounds(changes=1, drops=0, swallows=0)
        wanted = [property_named("INV-CONV"), property_named("INV-LOAD")]
        assert explore(bounds, STRICT, wanted).holds is True  # without a crash nothing is said of loads
        assert explore(bounds, STRICT, wanted[1:]).holds is None
        assert explore(replace(bounds, max_states=50), STRICT, wanted).holds is None
        assert explore(bounds, with_mutant(STRICT, "B07")).holds is False

    def test_liveness_beyond_its_limit_is_not_decided(self, monkeypatch):
        monkeypatch.setattr("distro_model.explorer.LIVENESS_STATES", 100)
        explored = explore(SMALL, STRICT)
        undecided = {each.name: each.undecided for each in explored.results if each.applies and each.holds is None}
        assert undecided.keys() == {"EVENTUALLY-CONV", "EVENTUALLY-DELETE", "EVENTUALLY-QUIET"}
        assert "141 states, liveness is decided up to 100" in undecided["EVENTUALLY-CONV"]
        assert explored.holds is None

    def test_a_search_that_was_stopped_decides_nothing_that_it_did_not_see(self):
        explored = explore(Bounds(), STRICT, watch=lambda _: True)
        assert not explored.complete
        assert explored.holds is None
        assert explored.result("INV-CONV").holds is None

    def test_a_search_that_stops_at_its_finding_reports_the_same_run(self):
        whole, looked = searched(Bounds(), PROFILES["nacos-2.0.4"]), [property_named("INV-CONV")]
        soon = explore(Bounds(), PROFILES["nacos-2.0.4"], looked, until_found("INV-CONV"))
        assert (soon.complete, soon.distinct_states < whole.distinct_states) == (False, True)
        assert str(soon.results[0].counterexample) == str(whole.result("INV-CONV").counterexample)

    def test_max_states_is_a_limit(self):
        explored = searched(Bounds(max_states=100), STRICT)
        assert not explored.complete
        assert 100 < explored.distinct_states < 200  # the rows that a chunk leads to are counted


class TestNames:
    def test_an_unknown_name_is_answered_with_the_known_ones(self):
        with pytest.raises(UnknownProfileError, match=r"no profile 'nacos-9'; known: nacos-2\.0\.0, .*, strict"):
            profile_named("nacos-9")
        with pytest.raises(
            UnknownProfileError, match=r"no profile '3\.0\.3' \(a release is named nacos-3\.0\.3\); known:"
        ):
            profile_named("3.0.3")
        with pytest.raises(
            UnknownMutantError, match=r"the model has no mutant 'B99'; known: .*B07, .*m-delete-retried-as-change"
        ):
            with_mutant(STRICT, "B99")
        with pytest.raises(UnknownPropertyError, match="unknown property 'INV-X'; known: EVENTUALLY-CONV"):
            property_named("INV-X")

    @pytest.mark.parametrize(
        ("release", "behaves_as"),
        [
            ("2.0.3", "2.0.4"),
            ("2.2.0.1", "2.2.0"),
            ("2.2.3", "2.2.4"),
            ("2.2.5", "2.2.4"),
            ("2.4.3", "2.3.2"),
            ("3.1.0", "3.0.3"),
            ("3.2.0", "3.0.3"),
        ],
    )
    def test_a_release_that_is_not_listed_behaves_as_the_last_one_before_it(self, release, behaves_as):
        found = profile_named(f"nacos-{release}")
        assert found == replace(profile_named(f"nacos-{behaves_as}"), name=f"nacos-{release}")

    @pytest.mark.parametrize("name", ["nacos-1.4.7", "nacos-4.0.0", "nacos-2.2", "nacos-2.2.x", "2.2.4", "2", ""])
    def test_a_release_that_was_not_examined_has_no_profile(self, name):
        with pytest.raises(UnknownProfileError, match="no profile"):
            profile_named(name)

    def test_a_mutant_shows_in_the_name_of_its_profile(self):
        assert with_mutant(STRICT, "B02").name == "strict+B02"

    def test_every_property_has_a_kind_that_is_searched(self):
        assert {each.kind for each in PROPERTIES.values()} == set(Kind)

    @pytest.mark.parametrize(
        ("bounds", "problem"),
        [
            ({"nodes": 0}, "at least one node"),
            ({"drops": -1}, "no negative"),
            ({"clients": 5, "in_flight": 2}, "raise it"),
        ],
    )
    def test_bounds_that_contradict_themselves_are_refused(self, bounds, problem):
        with pytest.raises(ValueError, match=problem):
            Bounds(**bounds)
