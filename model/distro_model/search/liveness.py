"""Liveness: is the goal of an EVENTUALLY check met again and again on every fair run?

A run breaks it that from some point on is only in rows where the goal is not met, and that is fair: each weakly fair
chain is, again and again, either taken or impossible. A run that stutters for ever in one row is fair when no fair
chain is possible there.

What such a run does for ever lies within one strongly connected component of the *rows without the goal* (of all rows
would be wrong: a component may go through the goal and out again, and is then no violation). And if any part of a
component can be gone round fairly, all of it can: more rows are more chances to find a chain impossible, more edges
more chances to take it. So each maximal component is judged once, and exactly: it is fair when for each fair chain it
has a row where the chain is impossible, or an edge of that chain that stays inside. A row that is on no cycle is a
component too, without edges; the same test then says whether the run may end there.

Weak fairness allows a chain to be impossible now and then. Where a bound makes it so (a queue that may send only
while its link is not full), runs are found that no real cluster has; such a chain is strongly fair: if it is possible
again and again, it is taken again and again. A component that cannot take such a chain inside loses the
rows where the chain is possible, and what is left of it is judged again (Emerson and Lei, 1987).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from distro_model.search.columns import Flags, Numbers, Positions
from distro_model.search.graph import StateGraph
from distro_model.search.results import Run, Search
from distro_model.search.system import Check, Fairness, Kind


def with_liveness(search: Search, graph: StateGraph) -> Search:
    """A search that also answers the EVENTUALLY checks of its system."""
    return replace(search, runs={**search.runs, **search_liveness(graph)})


def search_liveness(graph: StateGraph) -> dict[str, Run]:
    """For each violated EVENTUALLY check, a lasso: property id -> run with `loop_from`.

    The way to the loop is a shortest one; the loop goes round by nearest next witnesses, so it is short, not shortest.
    A loop without transitions (`loop_from` is the last row) is a run that ends there: nothing fair is possible.
    """
    lassos = {}
    for check in graph.system.checks:
        if check.kind is Kind.EVENTUALLY and check.found is not None:
            lasso = _lasso(graph, check)
            if lasso is not None:
                lassos[check.property_id] = lasso
    return lassos


def fair_components(graph: StateGraph, within: Flags) -> Numbers:
    """For each row the number of the fair component that it lies in, or -1. `within`: the rows that a run may visit."""
    while True:
        component = _components(graph, within[graph.source] & within[graph.target])
        kept = within.copy()
        sizes = np.bincount(component)
        for position, edges in _edges_by_fair_chain(graph):
            possible = _different(graph.source[edges])
            taken = np.zeros(len(sizes), np.bool_)
            staying = edges[component[graph.source[edges]] == component[graph.target[edges]]]
            staying = staying[within[graph.source[staying]]]
            taken[component[graph.source[staying]]] = True
            if graph.system.chains[position].fair is Fairness.STRONG:
                kept[possible[~taken[component[possible]]]] = False
            else:
                impossible_somewhere = np.bincount(component[possible], minlength=len(sizes)) < sizes
                kept &= (impossible_somewhere | taken)[component]
        if np.array_equal(kept, within):
            return np.where(within, component, np.int32(-1))
        within = kept


def _components(graph: StateGraph, edges: Flags) -> Numbers:
    """For each row the number of its strongly connected component, over these edges only."""
    starts = _starts(np.bincount(graph.source[edges], minlength=graph.states))
    targets = graph.target[edges]
    matrix = csr_array((np.ones(len(targets), np.int8), targets, starts), shape=(graph.states, graph.states))
    _, component = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(component, np.int32)


def _different(rows: Numbers) -> Numbers:
    """Each of the rows once; they are sorted."""
    return rows[np.diff(rows, prepend=np.int32(-1)) > 0]


def _starts(degrees: Positions) -> Positions:
    """Where the edges of each row begin, if they are sorted by source; one more for the end."""
    return np.concatenate([[0], np.cumsum(degrees)])


def _edges_by_fair_chain(graph: StateGraph) -> Iterator[tuple[int, Positions]]:
    """Each chain that is fair, weakly or strongly, by its position; and its edges."""
    for position, chain in enumerate(graph.system.chains):
        if chain.is_fair:
            yield position, np.flatnonzero(graph.chain == position)


def _lasso(graph: StateGraph, check: Check) -> Run | None:
    component = fair_components(graph, graph.rows_where(check))
    fair = np.flatnonzero(component >= 0)
    if not len(fair):
        return None
    start = int(fair[0])  # the nearest one: a smaller number is never farther
    loop = _Loop(graph, np.flatnonzero(component == component[start])).round(start)
    end = _nearest_end(graph, fair)
    if end is not None and graph.depth[end] <= graph.depth[start] + len(loop):
        start, loop = end, []
    stem = graph.path_to(start)
    return graph.run([*stem, *loop], graph.finding(check, start), loop_from=len(stem))


def _nearest_end(graph: StateGraph, rows: Positions) -> int | None:
    """The nearest of these rows in which no fair chain is possible, so that a fair run may end there."""
    goes_on = np.zeros(graph.states, np.bool_)
    for _, edges in _edges_by_fair_chain(graph):
        goes_on[graph.source[edges]] = True
    ends = rows[~goes_on[rows]]
    return int(ends[0]) if len(ends) else None


class _Loop:
    """A way round one fair component that takes each fair chain, or comes through a row where it is impossible.

    Rows have their position in `rows` here, so that the arrays are as small as the component.
    """

    def __init__(self, graph: StateGraph, rows: Positions) -> None:
        chains = graph.system.chains
        self.rows = rows
        self.fair = [position for position, chain in enumerate(chains) if chain.is_fair]
        place = np.full(graph.states, -1)
        place[rows] = np.arange(len(rows))
        edges = np.flatnonzero(place[graph.source] >= 0)
        self.impossible = np.ones((len(rows), len(chains)), np.bool_)
        self.impossible[place[graph.source[edges]], graph.chain[edges]] = False
        strongly = np.array([chain.fair is Fairness.STRONG for chain in chains], np.bool_)
        self.impossible &= self.impossible.all(axis=0) | ~strongly  # strongly fair: only if in all rows
        edges = edges[place[graph.target[edges]] >= 0]
        self.edges = edges
        self.source, self.target = place[graph.source[edges]], place[graph.target[edges]]
        self.chain = graph.chain[edges]
        self.taken = np.zeros_like(self.impossible)
        self.taken[self.source, self.chain] = True
        self.first_edge = _starts(np.bincount(self.source, minlength=len(rows)))

    def round(self, start: int) -> list[int]:
        """The edges of the loop, which begins and ends in row `start`; none if every fair chain is impossible there."""
        here = int(np.searchsorted(self.rows, start))
        home = np.zeros(len(self.rows), np.bool_)
        home[here] = True
        loop: list[int] = []
        owed = self.still(set(self.fair), here, [])
        while owed:
            chains = sorted(owed)
            pays: Flags = np.logical_or.reduce(self.impossible[:, chains] | self.taken[:, chains], axis=1)
            here, path = self.walk(here, pays)
            owed = self.still(owed, here, path)
            paying = [chain for chain in sorted(owed) if self.taken[here, chain]]
            if paying:
                out = self.edges_out_of(np.array([here]))
                edge = int(out[np.argmax(self.chain[out] == paying[0])])
                path.append(edge)
                here = int(self.target[edge])
                owed = self.still(owed, here, path)
            loop += path
        _, back = self.walk(here, home)
        return [int(self.edges[edge]) for edge in (*loop, *back)]

    def still(self, owed: set[int], here: int, path: list[int]) -> set[int]:
        """The fair chains that are still to be taken after a path that ends here."""
        seen = [here, *(int(self.source[edge]) for edge in path)]
        taken = {int(self.chain[edge]) for edge in path}
        return {chain for chain in owed if chain not in taken and not self.impossible[seen, chain].any()}

    def walk(self, here: int, to: Flags) -> tuple[int, list[int]]:
        """The nearest row of `to`, and a shortest path to it; there is one, the component is strongly connected."""
        came_by = np.full(len(self.rows), -1)
        came_by[here] = len(self.edges)
        front = np.array([here])
        while not to[front].any():
            edges = self.edges_out_of(front)
            edges = edges[came_by[self.target[edges]] < 0]
            assert len(edges), "the component is not strongly connected"
            front, first = np.unique(self.target[edges], return_index=True)
            came_by[front] = edges[first]
        there = at = int(front[np.argmax(to[front])])
        path: list[int] = []
        while at != here:
            path.append(int(came_by[at]))
            at = int(self.source[path[-1]])
        return there, path[::-1]

    def edges_out_of(self, rows: Positions) -> Positions:
        degrees = self.first_edge[rows + 1] - self.first_edge[rows]
        begins = np.cumsum(degrees) - degrees
        return np.repeat(self.first_edge[rows] - begins, degrees) + np.arange(degrees.sum())
