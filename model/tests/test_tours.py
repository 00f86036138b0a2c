"""Tours take every transition at the least cost; the rarest rows are those that chance seldom comes to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mazes import counters, maze

from distro_model.search.graph import GraphTooLargeError, StateGraph, state_graph
from distro_model.search.tours import Walk, expected_visits, rarest, transition_tours

PLACES = range(6)
DOORS = st.dictionaries(
    st.sampled_from(PLACES), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3).map(tuple), max_size=6
)


@given(st.lists(DOORS, min_size=1, max_size=2), st.none() | st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_walks_begin_at_the_beginning_and_take_every_edge(doors, longest):
    graph = state_graph(maze(fair={f"doors {number}": each for number, each in enumerate(doors)}))
    walks = transition_tours(graph, longest=longest)
    assert_takes_everything(graph, walks)
    if longest is not None:
        farthest = int(graph.depth[graph.source].max(initial=0)) + 1
        assert all(len(walk) <= max(longest, farthest) for walk in walks)


@given(st.lists(DOORS.filter(lambda doors: sum(map(len, doors.values())) <= 5), min_size=1, max_size=1))
@settings(max_examples=30, deadline=None)
def test_no_tour_is_cheaper(doors):
    """Against a search of all tours: states are (place, edges taken), a step costs 1 and so does a new beginning."""
    graph = state_graph(maze(fair={"doors": doors[0]}))
    walks = transition_tours(graph)
    cost = steps_of(walks) + max(0, len(walks) - 1)
    assert cost == cheapest_by_search(graph)


def test_a_circle_is_one_walk():
    (walk,) = transition_tours(state_graph(maze(fair={"round": {0: (1,), 1: (2,), 2: (0,)}})))
    assert len(walk) == 3


def test_a_tree_needs_a_walk_for_each_leaf():
    walks = transition_tours(state_graph(maze(fair={"go": {0: (1, 2), 1: (3, 4), 2: (5, 6)}})))
    assert sorted(len(walk) for walk in walks) == [2, 2, 2, 2]


def test_no_parallel_edge_or_self_loop_is_forgotten():
    graph = state_graph(maze(fair={"go": {0: (1, 1)}, "stay": {0: (0,), 1: (1,)}}))
    walks = transition_tours(graph)
    assert_takes_everything(graph, walks)
    assert (len(walks), steps_of(walks)) == (2, 4), "the second walk only takes the other door"


def test_to_begin_again_is_cheaper_than_a_long_way_back():
    """Three ways from 0 to 4, and from there back in two steps; or one begins again."""
    doors = {0: (1, 2, 3), 1: (4,), 2: (4,), 3: (4,)}
    walks = transition_tours(state_graph(maze(fair={"go": doors, "back": {4: (5,), 5: (0,)}})))
    assert (len(walks), steps_of(walks)) == (2, 8)


def test_a_system_in_which_nothing_can_happen_needs_no_walk():
    assert transition_tours(state_graph(maze())) == ()


def test_long_walks_are_cut_and_still_take_everything():
    graph = state_graph(counters(3, 3))
    assert steps_of(transition_tours(graph)) == graph.edges, (
        "up and down, here and there: each row is left as often as entered"
    )
    cut = transition_tours(graph, longest=30)
    assert_takes_everything(graph, cut)
    assert max(len(walk) for walk in cut) == 30
    assert steps_of(cut) < 1.25 * graph.edges


def test_a_graph_too_large_for_a_tour_is_refused(monkeypatch):
    monkeypatch.setattr("distro_model.search.tours.MOST_EDGES", 100)
    with pytest.raises(GraphTooLargeError, match="432 edges are too many for a tour of all; at most 100"):
        transition_tours(state_graph(counters(3, 3)))


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


def steps_of(walks: Sequence[Walk]) -> int:
    return sum(map(len, walks))


def assert_takes_everything(graph: StateGraph, walks: Sequence[Walk]) -> None:
    assert {edge for walk in walks for edge in walk} == set(range(graph.edges))
    for walk in walks:
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
