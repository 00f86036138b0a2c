"""The state graph has the rows that the readable search counts, in the order of `transitions`, and can be drawn."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mazes import counters, maze

from distro_model.search.drawing import dot, graphml, to_networkx
from distro_model.search.graph import GraphStoppedError, GraphTooLargeError, state_graph
from distro_model.search.readable import search_readably
from distro_model.search.results import Run
from distro_model.search.system import Chain, Check, ContradictionError, Finding, Kind, Lookup, System, transitions

FORK = maze(fair={"left": {0: (1,)}, "right": {0: (2, 3), 2: (2,)}}, unfair={"back": {1: (0,), 2: (0,)}})


@st.composite
def systems(draw: st.DrawFn) -> System:
    """Two or three columns, and chains of random tables with forks, guards and registers that look-ups hand on."""
    columns = ("a", "b", "c")[: draw(st.integers(2, 3))]
    values = st.integers(0, 2)
    functions = {
        (reads, writes): draw(
            st.dictionaries(
                st.tuples(*[values] * reads), st.lists(st.tuples(*[values] * writes), max_size=2), min_size=3
            )
        )
        for reads in (1, 2, 3)
        for writes in (0, 1, 2)
    }
    shared = {shape: _as_function(table) for shape, table in functions.items()}
    chains = []
    for number in range(draw(st.integers(1, 4))):
        known, lookups = list(columns), []
        for _ in range(draw(st.integers(1, 3))):
            reads = tuple(draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)))
            writes = tuple(f"r{len(known) + each}" for each in range(draw(st.integers(0, 2))))
            lookups.append(Lookup("no", shared[len(reads), len(writes)], reads, writes))
            known += writes
        result = {column: draw(st.sampled_from(known)) for column in draw(st.sets(st.sampled_from(columns)))}
        says = _says(tuple(known))
        chains.append(Chain(f"chain {number}", "chain", tuple(lookups), result, says, fair=draw(st.booleans())))
    return System(columns, (0,) * len(columns), tuple(chains))


def _as_function(table):
    return lambda *reads: table.get(reads, [])


def _says(registers):
    return lambda ends: tuple(ends[register] for register in registers)


@given(systems())
@settings(max_examples=30, deadline=None)
def test_the_graph_has_what_the_readable_search_counts(system):
    graph, searched = state_graph(system), search_readably(system)
    taken = Counter({chain.name: 0 for chain in system.chains})
    taken.update(system.chains[chain].name for chain in graph.chain)
    assert (graph.states, graph.edges, graph.levels) == (
        searched.distinct_states,
        searched.transitions,
        searched.levels,
    )
    assert taken == searched.taken


@given(systems())
@settings(max_examples=20, deadline=None)
def test_the_edges_of_a_row_are_its_transitions_in_their_order(system):
    graph = state_graph(system)
    for number in range(graph.states):
        edges = graph.edges_of(number)
        found = [(system.chains[graph.chain[edge]].name, graph.row(graph.target[edge])) for edge in edges]
        assert found == [(each.chain.name, each.after) for each in transitions(system, graph.row(number))]
        assert all(graph.source[edge] == number for edge in edges)


def test_rows_are_numbered_as_far_as_they_are_from_the_beginning():
    graph = state_graph(counters(3, 2))
    assert [len(graph.path_to(number)) for number in range(graph.states)] == graph.depth.tolist()
    assert sum(graph.levels) == graph.states == 27


def test_a_path_is_a_run_of_real_transitions():
    graph = state_graph(counters(2, 2))
    last = graph.states - 1
    run = graph.run(graph.path_to(last), Finding("P", "there"))
    assert isinstance(run, Run)
    assert (run.rows[0], run.rows[-1]) == ((0, 0), graph.row(last)) == ((0, 0), (2, 2))
    assert [each.after for each in run.transitions] == list(run.rows[1:])


def test_edges_that_do_not_fit_together_are_no_run():
    graph = state_graph(FORK)
    with pytest.raises(ValueError, match="begins in row 1, but the run has come to row 0"):
        graph.run([graph.edges_of(1)[0]], Finding("P", "there"))


def test_a_graph_of_two_edges_from_a_row_to_another_has_both():
    graph = state_graph(maze(fair={"go": {0: (1, 1)}, "run": {0: (1,)}}))
    assert (graph.states, graph.edges) == (2, 3)


def test_a_system_in_which_nothing_can_happen_is_one_row():
    graph = state_graph(maze(fair={"go": {5: (6,)}}))
    assert (graph.states, graph.edges, graph.levels) == (1, 0, (1,))
    assert state_graph(maze()).states == 1


def test_a_chain_without_lookups_stays_where_it_is():
    graph = state_graph(System(("a",), (0,), (Chain("wait", "wait", (), {}),)))
    assert (graph.states, graph.target.tolist()) == (1, [0])


def test_one_and_true_are_different_values():
    """They are equal to Python, but one is a number and the other an answer; each column keeps its own."""
    graph = state_graph(System(("number", "answer"), (1, True), ()))
    assert [type(value) for value in graph.row(0)] == [int, bool]


def test_a_look_up_function_is_called_once_for_each_combination():
    called = Counter()

    def step(place: int, other: int) -> list[tuple[int]]:
        called[place, other] += 1
        return [((place + 1) % 4,)]

    chains = tuple(
        Chain(name, "step", (Lookup("never", step, reads, ("new",)),), {reads[0]: "new"})
        for name, reads in (("a", ("a", "b")), ("b", ("b", "a")))
    )
    assert state_graph(System(("a", "b"), (0, 0), chains)).states == 16
    assert set(called.values()) == {1}
    assert len(called) == 16


def test_a_check_finds_rows():
    def even(value: int, other: int) -> list[tuple[Finding]]:
        return [(Finding("EVEN", f"{value}"),)] if (value + other) % 2 == 0 else []

    check = Check("EVEN", Kind.SOMETIMES, (Lookup("odd", even, ("c0", "c1"), ("found",)),), "found")
    graph = state_graph(counters(2, 2))
    found = graph.rows_where(check)
    assert found.tolist() == [sum(graph.row(number)) % 2 == 0 for number in range(graph.states)]
    assert graph.finding(check, 0) == Finding("EVEN", "0")


def test_a_graph_larger_than_allowed_is_refused_with_numbers_and_a_suggestion():
    with pytest.raises(
        GraphTooLargeError, match=r"more than 50 states \(.* transitions\); raise --max-states, or lower"
    ):
        state_graph(counters(4, 3), max_states=50)
    assert state_graph(counters(4, 3), max_states=256).states == 256


def test_a_watcher_may_stop_the_search():
    seen = []
    with pytest.raises(GraphStoppedError, match="was not finished"):
        state_graph(counters(4, 3), watch=lambda now: seen.append(now) or now.level == 3)
    assert [each.level for each in seen] == [1, 2, 3]
    assert seen[-1].frontier == seen[-1].distinct_states - 15, "the rows of levels 0 to 2 are expanded"


def test_a_look_up_that_forgets_a_register_is_named():
    broken = Chain("go", "go", (Lookup("closed", lambda _: [(1, 2)], ("a",), ("b",)),), {"a": "b"})
    with pytest.raises(ContradictionError, match="'closed' gave 2 values for the registers b"):
        state_graph(System(("a",), (0,), (broken,)))


def test_networkx_gets_every_row_and_edge():
    drawn = to_networkx(state_graph(FORK))
    assert isinstance(drawn, nx.MultiDiGraph)
    assert drawn.nodes[0] == {"initial": True, "place": "0"}
    assert [number for number, initial in drawn.nodes(data="initial") if initial] == [0]
    assert sorted(drawn.edges(data="label")) == [
        (0, 1, "left to 1"),
        (0, 2, "right to 2"),
        (0, 3, "right to 3"),
        (1, 0, "back to 0"),
        (2, 0, "back to 0"),
        (2, 2, "right to 2"),
    ]
    assert drawn.edges[1, 0, 0] == {"chain": "back", "kind": "back", "fair": False, "label": "back to 0"}


def test_graphml_can_be_read_back():
    graph = state_graph(counters(2, 2))
    text = graphml(graph)
    ElementTree.fromstring(text)
    again = nx.parse_graphml(text, node_type=int, force_multigraph=True)
    drawn = to_networkx(graph)
    assert dict(again.nodes(data=True)) == dict(drawn.nodes(data=True))
    assert sorted(again.edges(data="chain")) == sorted(drawn.edges(data="chain"))


def test_dot_quotes_what_must_be_quoted():
    system = System(('the "name"',), ("a\\b\nc",), (Chain("stay", "stay", (), {}, lambda _: 'say "hi"'),))
    lines = dot(state_graph(system)).splitlines()
    assert lines[0] == "digraph states {"
    assert '  0 [label="the \\"name\\": a\\\\b\\nc", style=bold];' in lines
    assert '  0 -> 0 [label="say \\"hi\\"", style=dashed];' in lines
    assert lines[-1] == "}"


def test_long_values_are_cut_in_pictures_and_can_be_described_otherwise():
    graph = state_graph(System(("a",), ("x" * 500,), ()))
    assert len(to_networkx(graph).nodes[0]["a"]) == 80
    assert to_networkx(graph, describe=lambda column, value: f"{column} of {len(value)}").nodes[0]["a"] == "a of 500"


@pytest.mark.parametrize("draw", [to_networkx, graphml, dot])
def test_a_graph_too_large_to_draw_is_refused(draw, monkeypatch):
    monkeypatch.setattr("distro_model.search.drawing.MOST_EDGES", 100)
    with pytest.raises(GraphTooLargeError, match="64 states and 432 edges are too many to draw; at most 100 edges"):
        draw(state_graph(counters(3, 3)))
