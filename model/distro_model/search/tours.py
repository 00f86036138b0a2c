"""Walks over a state graph that become tests: tours that take every transition, and ways to rows that chance misses.

A tour is a set of walks from the initial row that together take every edge. What a walk costs is its steps, and a
new beginning counts as one. The cheapest set is a flow (the directed postman of Edmonds and Johnson, 1973,
with a free way home from everywhere): each edge is taken at least once, and out of each row but the first no more
often than into it. The rows and columns of that linear program are an incidence matrix, so its corners are whole
numbers, and its optimum is the optimum. Cutting at the new beginnings a circuit that takes each edge as often as the
flow says (Hierholzer, 1873) gives the walks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from distro_model.search.graph import GraphTooLargeError, StateGraph
from distro_model.search.results import Run
from distro_model.search.system import Finding

MOST_EDGES = 200_000
HOME = -1
"""A new beginning among the edges of a circuit."""


Walk = tuple[int, ...]
"""Edges from the initial row on."""


def transition_tours(graph: StateGraph, *, longest: int | None = None) -> tuple[Walk, ...]:
    """The cheapest walks that together take each of the graph's edges.

    `longest`: walks are cut after so many steps and go on from a new beginning, by a shortest way (and are longer only
    where that way is); the whole is then no longer the cheapest. Raises `GraphTooLargeError`.
    """
    if graph.edges > MOST_EDGES:
        raise GraphTooLargeError(
            f"{graph.edges:,} edges are too many for a tour of all; at most {MOST_EDGES:,}. Lower nodes, clients,"
            " changes, drops or crashes"
        )
    return tuple(_cut(graph, _circuit(graph, _times(graph)), longest)) if graph.edges else ()


def _times(graph: StateGraph) -> NDArray[np.int64]:
    """How often each edge is taken in the cheapest tours."""
    ways, first = np.unique(graph.source * np.int64(graph.states) + graph.target, return_index=True)
    source, target = (ways // graph.states), (ways % graph.states)
    again = first[source != target]  # of edges side by side only one need be taken again, a self-loop never
    source, target = graph.source[again], graph.target[again]
    times = np.ones(graph.edges, np.int64)
    if len(again):
        from scipy.optimize import linprog  # noqa: PLC0415 - takes longer to load than the rest of the explorer

        position = np.arange(len(again))
        entries = (
            np.concatenate([np.ones(len(again)), -np.ones(len(again))]),
            (np.concatenate([source, target]), np.concatenate([position, position])),
        )
        leaves_more = csr_array(entries, shape=(graph.states, len(again)))[1:]
        cost = 1 + (target != 0).astype(np.int64) - (source != 0)
        solved = linprog(cost, A_ub=leaves_more, b_ub=_surplus(graph, times)[1:], method="highs")
        assert solved.status == 0, solved.message
        times[again] += np.rint(solved.x).astype(np.int64)
    return times


def _surplus(graph: StateGraph, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much more often each row is entered than left."""
    surplus = np.zeros(graph.states, np.int64)
    np.add.at(surplus, graph.target, times)
    np.subtract.at(surplus, graph.source, times)
    return surplus


def _circuit(graph: StateGraph, times: NDArray[np.int64]) -> list[int]:
    """A circuit from the initial row that takes each edge so often, and goes home where a row is not left enough."""
    surplus = _surplus(graph, times)
    left = [
        [HOME] * max(0, int(surplus[row]) if row else 0)
        + [edge for edge in reversed(graph.edges_of(row)) for _ in range(int(times[edge]))]
        for row in range(graph.states)
    ]
    target = [*graph.target.tolist(), 0]  # HOME, -1, leads to the initial row
    circuit: list[int] = []
    stack = [(0, HOME)]
    while stack:
        row, came_by = stack[-1]
        if left[row]:
            edge = left[row].pop()
            stack.append((target[edge], edge))
        else:
            circuit.append(came_by)
            stack.pop()
    circuit.pop()  # the beginning, which was reached by no edge
    # The part after the last way home ends in the initial row, so it may come first.
    homewards = circuit.index(HOME) if HOME in circuit else 0
    return circuit[:homewards][::-1] + circuit[homewards:][::-1]


def _cut(graph: StateGraph, circuit: list[int], longest: int | None) -> Iterator[Walk]:
    """Cut where the circuit goes home and where a walk gets too long; leave out what takes nothing new at the ends."""
    taken: set[int] = set()
    walk: list[int] = []
    needed = 0  # up to where the walk takes something new
    for edge in [*circuit, HOME]:
        if walk and (edge == HOME or (longest is not None and len(walk) >= longest)):
            yield tuple(walk[:needed])
            walk = []
        if edge == HOME or (not walk and edge in taken):
            continue
        if not walk:
            walk = graph.path_to(int(graph.source[edge]))
            taken.update(walk)
        walk.append(edge)
        if edge not in taken:
            taken.add(edge)
            needed = len(walk)


def expected_visits(graph: StateGraph, steps: int = 100) -> NDArray[np.float64]:
    """How often each row is visited, on average, by a walk from the initial row that chooses each of so many
    transitions evenly, and ends where there is none."""
    degrees = np.maximum(np.diff(graph.first_edge), 1)
    chances = csr_array((1 / degrees[graph.source], (graph.target, graph.source)), shape=(graph.states, graph.states))
    now = np.zeros(graph.states)
    now[0] = 1.0
    visits = now.copy()
    for _ in range(steps):
        now = chances @ now
        visits += now
    return visits


def rarest(graph: StateGraph, count: int, steps: int = 100) -> list[Run]:
    """Shortest runs to the rows that random walks of `steps` transitions visit least often, the rarest first.

    Of rows that are visited equally rarely, those farther from the beginning come first.
    """
    visits = expected_visits(graph, steps)
    order = np.lexsort((-np.arange(graph.states), visits))[:count]
    return [
        graph.run(graph.path_to(row), Finding("RARE", f"{visits[row]:.2g} visits in a random walk of {steps} steps"))
        for row in order.tolist()
    ]
