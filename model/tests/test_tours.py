"""Tours take every transition at the least cost; the rarest rows are those that chance seldom comes to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mazes import counters, maze

from distro_model.search.graph import GraphTooLargeError, StateGraph, state_graph
from distro_model.search.tours import Tours, expected_visits, rarest, transition_tours

PLACES = range(6)
DOORS = st.dictionaries(
    st.sampled_from(PLACES), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3).map(tuple), max_size=6
)


@given(st.lists(DOORS, min_size=1, max_size=2), st.integers(0, 3), st.none() | st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_walks_begin_at_the_beginning_and_take_every_edge(doors, restart, longest):
    graph = state_graph(maze(fair={f"doors {number}": each for number, each in enumerate(doors)}))
    tours = transition_tours(graph, restart=restart, longest=longest)
    assert_takes_everything(graph, tours)
    if longest is not None:
        farthest = int(graph.depth[graph.source].max(initial=0)) + 1
        assert all(len(walk) <= max(longest, farthest) for walk in tours.walks)


@given(st.lists(DOORS.filter(lambda doors: sum(map(len, doors.values())) <= 5), min_size=1, max_size=1))
@settings(max_examples=60, deadline=None)
def test_no_tour_is_cheaper(doors):
    """Against a search of all tours: states are (place, edges taken), a step costs 1 and so does a new beginning."""
    graph = state_graph(maze(fair={"doors": doors[0]}))
    tours = transition_tours(graph)
    cost = tours.steps + max(0, len(tours.walks) - 1)
    assert cost == cheapest_by_search(graph)


def test_a_circle_is_one_walk():
    tours = transition_tours(state_graph(maze(fair={"round": {0: (1,), 1: (2,), 2: (0,)}})))
    assert (len(tours.walks), tours.steps, tours.ratio) == (1, 3, 1.0)


def test_a_tree_needs_a_walk_for_each_leaf():
    tours = transition_tours(state_graph(maze(fair={"go": {0: (1, 2), 1: (3, 4), 2: (5, 6)}})))
    assert sorted(len(walk) for walk in tours.walks) == [2, 2, 2, 2]


def test_of_parallel_edges_and_self_loops_none_is_forgotten():
    graph = state_graph(maze(fair={"go": {0: (1, 1)}, "stay": {0: (0,), 1: (1,)}}))
    tours = transition_tours(graph)
    assert_takes_everything(graph, tours)
    assert (len(tours.walks), tours.steps) == (2, 4), "the second walk only takes the other door"


def test_a_new_beginning_that_costs_more_is_avoided():
    """Three ways from 0 to 4, and from there back in two steps; or one begins anew."""
    doors = {0: (1, 2, 3), 1: (4,), 2: (4,), 3: (4,)}
    graph = state_graph(maze(fair={"go": doors, "back": {4: (5,), 5: (0,)}}))
    cheap, dear = transition_tours(graph, restart=1), transition_tours(graph, restart=9)
    assert (len(cheap.walks), cheap.steps) == (2, 8)
    assert (len(dear.walks), dear.steps) == (1, 10)


def test_a_system_in_which_nothing_can_happen_needs_no_walk():
    assert transition_tours(state_graph(maze())) == Tours((), 0)


def test_long_walks_are_cut_and_still_take_everything():
    graph = state_graph(counters(3, 3))
    assert transition_tours(graph).ratio == 1.0, "up and down, here and there: each row is left as often as entered"
    cut = transition_tours(graph, longest=30)
    assert_takes_everything(graph, cut)
    assert max(len(walk) for walk in cut.walks) == 30
    assert cut.ratio < 1.25


def test_a_tour_is_made_of_runs():
    graph = state_graph(counters(2, 1))
    runs = list(transition_tours(graph).runs(graph))
    assert [run.finding.what for run in runs] == ["walk 1 of 1"]
    assert len(runs[0].transitions) == graph.edges


def test_a_graph_too_large_for_a_tour_is_refused():
    with pytest.raises(GraphTooLargeError, match="432 edges are too many for a tour of all; at most 100"):
        transition_tours(state_graph(counters(3, 3)), max_edges=100)


def test_expected_visits_are_known_by_hand():
    graph = state_graph(maze(fair={"go": {0: (1, 2), 1: (1, 3)}}))
    assert expected_visits(graph, steps=2).tolist() == [1, 0.5 + 0.25, 0.5, 0.25]


def test_the_rarest_row_is_at_the_end_of_the_long_narrow_way():
    graph = state_graph(maze(fair={"go": {0: (1,), 1: (2,), 2: (3,)}, "home": {1: (0,), 2: (0,)}}))
    first, second = rarest(graph, 2)
    assert (first.rows, second.rows) == (((0,), (1,), (2,), (3,)), ((0,), (1,), (2,)))
    assert first.finding.what.endswith("visits in a random walk of 100 steps")


def test_rows_that_no_walk_comes_to_are_the_rarest_and_the_farthest_comes_first():
    graph = state_graph(maze(fair={"go": {place: (place + 1,) for place in range(9)}}))
    assert [run.rows[-1] for run in rarest(graph, 3, steps=4)] == [(9,), (8,), (7,)]
    assert len(rarest(graph, 99)) == 10


def assert_takes_everything(graph: StateGraph, tours: Tours) -> None:
    assert {edge for walk in tours.walks for edge in walk} == set(range(graph.edges))
    for walk in tours.walks:
        assert graph.source[walk[0]] == 0
        assert all(graph.target[before] == graph.source[edge] for before, edge in pairwise(walk))


def cheapest_by_search(graph: StateGraph) -> int:
    everything = frozenset(range(graph.edges))
    reached, level, cost = {(0, frozenset())}, {(0, frozenset())}, 0
    while all(taken != everything for _, taken in level):
        after = {(int(graph.target[edge]), taken | {edge}) for row, taken in level for edge in graph.edges_of(row)}
        level = (after | {(0, taken) for _, taken in level}) - reached
        reached |= level
        cost += 1
    return cost
