"""Mazes with known verdicts, and small random ones against the definition, taken literally."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mazes import maze

from distro_model.search.graph import state_graph
from distro_model.search.liveness import search_liveness, with_liveness
from distro_model.search.readable import search_readably
from distro_model.search.results import Run
from distro_model.search.system import Chain, Check, Fairness, Finding, Kind, Lookup, System, transitions

HOLDS = {
    "the goal is where one is": maze(goal={0}),
    "the goal is one fair step away": maze(fair={"go": {0: (1,)}}, goal={1}),
    "waiting is possible, but going is fair": maze(fair={"go": {0: (1,)}}, unfair={"wait": {0: (0,)}}, goal={1}),
    "a fair chain waits, but going is fair too": maze(fair={"go": {0: (1,)}, "wait": {0: (0,)}}, goal={1}),
    "a fair door is open in both rooms of a circle": maze(
        fair={"round": {0: (1,), 1: (0,)}, "out": {0: (2,), 1: (2,)}}, goal={2}
    ),
    "the goal is left, and reached again for ever": maze(fair={"round": {0: (1,), 1: (0,)}}, goal={1}),
    "a circle goes through the goal; without it nothing is one": maze(
        fair={"round": {0: (1,), 1: (2,), 2: (0,)}}, goal={2}
    ),
    "a bad circle that cannot be reached": maze(fair={"go": {0: (1,)}, "round": {5: (6,), 6: (5,)}}, goal={1}),
    "a bad room behind the goal's room, which has no door": maze(
        fair={"go": {0: (1,), 2: (3,)}, "round": {3: (3,)}}, goal={1}
    ),
    "deadlock in the goal": maze(fair={"go": {0: (1,), 1: (2,)}}, goal={2}),
    "a fair door leads out of the inner circle, another out of the outer": maze(
        fair={"round": {0: (1,), 1: (0,)}, "wide": {1: (2,), 2: (0,)}, "out": {0: (3,), 1: (3,), 2: (3,)}}, goal={3}
    ),
    "unfair circles only, with a fair way out of every room": maze(
        fair={"out": {0: (3,), 1: (3,), 2: (3,)}}, unfair={"round": {0: (1,), 1: (2,), 2: (0,)}}, goal={3}
    ),
}

BROKEN = {
    "nothing can happen, and this is not the goal": (maze(), 0, 0),
    "a step that need not happen": (maze(unfair={"go": {0: (1,)}}, goal={1}), 0, 0),
    "deadlock after a step": (maze(fair={"go": {0: (1,)}}), 1, 0),
    "a fair livelock": (maze(fair={"round": {0: (1,), 1: (0,)}}, unfair={"out": {0: (2,)}}, goal={2}), 0, 2),
    "a fair self-loop counts as taken": (maze(fair={"wait": {0: (0,)}}, unfair={"go": {0: (1,)}}, goal={1}), 0, 1),
    "one fair chain both waits and goes": (maze(fair={"go": {0: (0, 1)}}, goal={1}), 0, 1),
    "weak fairness does not help where the door is open now and then": (
        maze(fair={"round": {0: (1,), 1: (0,)}, "out": {1: (2,)}}, goal={2}),
        0,
        2,
    ),
    "two chains that alternate starve a third": (
        maze(fair={"tick": {0: (1,)}, "tock": {1: (0,)}, "out": {0: (2,)}}, goal={2}),
        0,
        2,
    ),
    "the goal is reached and left for good": (
        maze(fair={"go": {0: (1,), 1: (2,)}, "round": {2: (3,), 3: (2,)}}, goal={0, 1}),
        2,
        2,
    ),
    "a faulty door leads to a bad room": (
        maze(fair={"go": {0: (1,)}, "round": {3: (3,)}}, unfair={"fault": {0: (3,)}}, goal={1}),
        1,
        1,
    ),
    "the outer circle is fair though the inner is not": (
        maze(
            fair={"round": {0: (1,), 1: (0,)}, "out": {0: (9,), 1: (9,)}, "tick": {0: (0,), 1: (1,), 2: (2,)}},
            unfair={"wide": {1: (2,), 2: (0,)}},
            goal={9},
        ),
        0,
        4,
    ),
    "only a way through all of a large component is fair": (
        maze(
            fair={
                "a": {0: (0,), 1: (1,), 2: (9,)},
                "b": {0: (9,), 1: (9,), 2: (2,)},
            },
            unfair={"round": {0: (1,), 1: (2,), 2: (0,)}},
            goal={9},
        ),
        0,
        None,
    ),
    "the nearer of two deadlocks": (maze(unfair={"go": {0: (1, 2), 2: (3,)}, "back": {1: (0,)}}, goal={0}), 1, 0),
    "ending is a shorter violation than going round": (
        maze(fair={"round": {0: (1,), 1: (2,), 2: (3,), 3: (0,)}}, unfair={"stop": {0: (5,)}}),
        1,
        0,
    ),
}


@pytest.mark.parametrize("drawn", HOLDS)
def test_the_goal_is_met_again_and_again(drawn):
    assert search_liveness(state_graph(HOLDS[drawn])) == {}


@pytest.mark.parametrize("drawn", BROKEN)
def test_a_fair_run_stays_away_from_the_goal(drawn):
    system, stem, loop = BROKEN[drawn]
    run = search_liveness(state_graph(system))["GOAL"]
    assert_is_fair_lasso(system, run)
    assert run.loop_from == stem
    assert loop in (None, len(run.transitions) - stem)


def test_strong_fairness_goes_through_a_door_that_is_open_now_and_then():
    doors = {"round": {0: (1,), 1: (0,)}, "out": {1: (2,)}}
    assert search_liveness(state_graph(maze(fair=doors, goal={2}, strong={"round"})))
    assert search_liveness(state_graph(maze(fair=doors, goal={2}, strong={"out"}))) == {}


def test_strong_fairness_leaves_the_circle_that_avoids_the_door():
    """Round 0 and 1 a strongly fair door is open; but 1 leads also to 2 and 3, where it never is."""
    drawn = maze(fair={"round": {0: (1,), 1: (0, 2), 2: (3,), 3: (2,)}, "out": {0: (9,)}}, goal={9}, strong={"out"})
    run = search_liveness(state_graph(drawn))["GOAL"]
    assert_is_fair_lasso(drawn, run)
    assert {row[0] for row in run.rows[run.loop_from :]} == {2, 3}


def test_the_finding_is_of_the_row_where_the_loop_begins():
    run = search_liveness(state_graph(maze(fair={"go": {0: (1,), 1: (2,)}}, goal={0, 1})))["GOAL"]
    assert run.finding == Finding("GOAL", "place 2 is not the goal")


def test_several_goals_are_judged_each_for_itself():
    def away_from(goal: int) -> Check:
        def away(place: int) -> list[tuple[Finding]]:
            return [] if place == goal else [(Finding(f"REACH-{goal}", "away"),)]

        return Check(f"REACH-{goal}", Kind.EVENTUALLY, (Lookup("there", away, ("place",), ("found",)),), "found")

    drawn = maze(fair={"go": {0: (1,), 1: (2,)}})
    system = System(drawn.columns, drawn.initial, drawn.chains, (away_from(1), away_from(2)))
    assert set(search_liveness(state_graph(system))) == {"REACH-1"}


def test_checks_of_another_kind_are_left_alone():
    drawn = maze()
    (check,) = drawn.checks
    always = Check("ALWAYS", Kind.ALWAYS, check.lookups, check.found)
    assert search_liveness(state_graph(System(drawn.columns, drawn.initial, (), (always,)))) == {}


def test_a_search_is_completed_by_what_liveness_found():
    system = maze(fair={"go": {0: (1,)}})
    searched = search_readably(System(system.columns, system.initial, system.chains))
    both = with_liveness(searched, state_graph(system))
    assert both.runs["GOAL"].loop_from == 1
    assert both.distinct_states == searched.distinct_states


def test_a_chain_of_many_columns_is_taken_round_by_round():
    """Three lamps, each switched again and again: it is unfair that one stays dark, not that all are never lit."""

    def switch(lit: bool) -> list[tuple[bool]]:
        return [(not lit,)]

    def dark(*lit: bool) -> list[tuple[Finding]]:
        return [] if all(lit) else [(Finding("LIT", "not all are lit"),)]

    lamps = ("a", "b", "c")
    chains = tuple(
        Chain(f"switch {lamp}", "switch", (Lookup("", switch, (lamp,), ("new",)),), {lamp: "new"}, fair=Fairness.WEAK)
        for lamp in lamps
    )
    check = Check("LIT", Kind.EVENTUALLY, (Lookup("lit", dark, lamps, ("found",)),), "found")
    system = System(lamps, (True, True, True), chains, (check,))
    run = search_liveness(state_graph(system))["LIT"]
    assert_is_fair_lasso(system, run)
    assert {each.chain.name for each in run.transitions[run.loop_from :]} == {f"switch {lamp}" for lamp in lamps}


PLACES = range(6)
DOORS = st.dictionaries(
    st.sampled_from(PLACES), st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True).map(tuple)
)


@given(
    st.lists(DOORS, max_size=3),
    st.lists(DOORS, max_size=2),
    st.sets(st.sampled_from(PLACES), max_size=3),
    st.sets(st.integers(0, 2)),
)
@settings(max_examples=100, deadline=None)
def test_the_verdict_is_that_of_the_definition(fair, unfair, goal, strong):
    system = maze(
        fair={f"fair {number}": doors for number, doors in enumerate(fair)},
        unfair={f"unfair {number}": doors for number, doors in enumerate(unfair)},
        goal=goal,
        strong={f"fair {number}" for number in strong},
    )
    run = search_liveness(state_graph(system)).get("GOAL")
    assert (run is not None) == may_stay_away(fair, unfair, goal, strong)
    if run is not None:
        assert_is_fair_lasso(system, run)


def may_stay_away(fair: list[dict], unfair: list[dict], goal: set[int], strong: set[int]) -> bool:
    """Is there a set of places, all without the goal, that a fair run can visit again and again, all and no other?"""
    doors = nx.MultiDiGraph()
    doors.add_nodes_from(PLACES)
    for name, chain in enumerate([*fair, *unfair]):
        doors.add_edges_from((place, then, {"chain": name}) for place, behind in chain.items() for then in behind)
    reachable = {0} | nx.descendants(doors, 0)
    places = sorted(reachable - goal)
    return any(
        _is_gone_round_fairly(doors.subgraph(visited), fair, strong)
        for size in range(1, len(places) + 1)
        for visited in combinations(places, size)
    )


def _is_gone_round_fairly(visited: nx.MultiDiGraph, fair: list[dict], strong: set[int]) -> bool:
    taken = {chain for _, _, chain in visited.edges(data="chain")}
    return nx.is_strongly_connected(visited) and all(
        name in taken or (all if name in strong else any)(place not in chain for place in visited)
        for name, chain in enumerate(fair)
    )


def assert_is_fair_lasso(system: System, run: Run) -> None:
    """Real transitions, a loop that closes, never at the goal in it, and each fair chain taken or impossible in it."""
    assert run.rows[0] == system.initial
    assert len(run.rows) == len(run.transitions) + 1
    for before, transition, after in zip(run.rows, run.transitions, run.rows[1:], strict=False):
        assert transition.after == after
        assert (transition.chain.name, after) in [(each.chain.name, each.after) for each in transitions(system, before)]
    assert run.loop_from is not None
    assert run.rows[-1] == run.rows[run.loop_from]
    loop = run.rows[run.loop_from :]
    (check,) = system.checks
    assert all(check.lookups[0].function(*row) for row in loop), "not at the goal"
    taken = {each.chain.name for each in run.transitions[run.loop_from :]}
    for chain in system.chains:
        if chain.is_fair and chain.name not in taken:
            enough = all if chain.fair is Fairness.STRONG else any
            assert enough(chain.name not in {each.chain.name for each in transitions(system, row)} for row in loop), (
                f"{chain.name} is possible all the time, and never taken"
            )
