"""The state graph of a bounded system as arrays: every reachable row, and every transition between two of them.

A search does not keep the transitions; the code for cycles (`liveness.py`), walks (`tours.py`) and pictures
(`drawing.py`) needs them all. Rows are numbered in the order in which a breadth-first search finds them, so a smaller
number is never farther from the beginning. Edges are sorted by source, then in the order of `system.transitions`: the
n-th edge out of a row is the n-th transition of that row. So an edge is two small numbers, its target and its chain;
all its other properties are computed again on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np

from distro_model.search.columns import Ends, Flags, Follower, Numbers, Positions, TooManyValuesError
from distro_model.search.results import Progress, Run, Watch, never_stop
from distro_model.search.system import Chain, Check, Finding, Row, System, Transition, outcomes, transitions

EXPANDED_AT_ONCE = 16_384
"""Rows. Some ten transitions of each, as a matrix, take a few dozen MB."""
MOST_STATES = 5_000_000

_LOWER = "lower changes, drops, crashes or clients"


class NoGraphError(ValueError):
    """There is no graph to examine; the message states why and how to get one."""


class GraphTooLargeError(NoGraphError):
    """More states or edges than were allowed."""


class GraphStoppedError(NoGraphError):
    """The `watch` callback of the caller asked to stop."""


@dataclass(frozen=True, eq=False)
class StateGraph:
    system: System
    ids: Numbers
    """A line for each row, with the numbers of its values: shape (states, columns)."""
    first_edge: Positions
    """The edges out of row r are `range(first_edge[r], first_edge[r + 1])`: shape (states + 1,)."""
    target: Numbers
    chain: Numbers
    """Position in `system.chains`; shape (edges,), as `target`."""
    reached_by: Positions
    """For each row the edge by which it was found, so a last edge of a shortest run; -1 for the initial row."""
    levels: tuple[int, ...]
    """Rows at each distance from the initial row; the first is 1."""
    follower: Follower = field(repr=False)

    @property
    def states(self) -> int:
        return len(self.ids)

    @property
    def edges(self) -> int:
        return len(self.target)

    @cached_property
    def source(self) -> Numbers:
        """The row that each edge leaves."""
        return np.repeat(np.arange(self.states, dtype=np.int32), np.diff(self.first_edge))

    @cached_property
    def depth(self) -> Numbers:
        """For each row its distance from the initial row."""
        return np.repeat(np.arange(len(self.levels), dtype=np.int32), self.levels)

    def row(self, number: int) -> Row:
        return tuple(self.follower.values.known[value] for value in self.ids[number].tolist())

    def edges_of(self, number: int) -> range:
        return range(int(self.first_edge[number]), int(self.first_edge[number + 1]))

    def transitions_of(self, number: int) -> Iterator[Transition]:
        """The transitions out of a row, in the order of its edges."""
        return transitions(self.system, self.row(number))

    def path_to(self, number: int) -> list[int]:
        """The edges of a shortest run to a row."""
        path: list[int] = []
        while (edge := int(self.reached_by[number])) >= 0:
            path.append(edge)
            number = int(self.source[edge])
        return path[::-1]

    def run(self, edges: Sequence[int], finding: Finding, loop_from: int | None = None) -> Run:
        """The run that begins in the initial row and takes these edges, each of which begins where the last one ends.

        Raises ValueError where they do not fit together.
        """
        at = 0
        rows = [self.row(at)]
        steps: list[Transition] = []
        for edge in edges:
            if self.source[edge] != at:
                raise ValueError(f"edge {edge} begins in row {self.source[edge]}, but the run has come to row {at}")
            at = int(self.target[edge])
            beside = edge - int(self.first_edge[self.source[edge]])
            steps.append(next(islice(transitions(self.system, rows[-1]), beside, None)))
            rows.append(self.row(at))
        return Run(finding, tuple(rows), tuple(steps), loop_from)

    def rows_where(self, check: Check) -> Flags:
        """For each row whether the check's look-ups reach their end."""
        columns = np.ascontiguousarray(self.ids.T)
        found = np.zeros(self.states, np.bool_)
        found[self.follower.follow(check.lookups, columns, ()).origins] = True
        return found

    def finding(self, check: Check, number: int) -> Finding:
        """The finding of a check in a row in which it has one."""
        assert check.found is not None
        registers = dict(zip(self.system.columns, self.row(number), strict=True))
        found = next(iter(outcomes(check.lookups, registers)))[check.found]
        assert isinstance(found, Finding)
        return found


def state_graph(system: System, max_states: int = MOST_STATES, watch: Watch = never_stop) -> StateGraph:
    """All of the reachable rows and transitions; 15 to 20 bytes an edge, and some 300 a row.

    Raises `GraphTooLargeError`, and `GraphStoppedError` when `watch` asks to stop.
    """
    try:
        return _Builder(system, max_states, watch).build()
    except TooManyValuesError as error:
        raise GraphTooLargeError(f"the state graph has {error}; {_LOWER}") from error


class _Builder:
    def __init__(self, system: System, max_states: int, watch: Watch) -> None:
        self.system = system
        self.max_states = max_states
        self.watch = watch
        self.follower = Follower(system)
        self.wanted = [dict.fromkeys(chain.result.values()) for chain in system.chains]
        self.numbering: dict[bytes, int] = {}
        """From the bytes of a row's line in `ids` to its number."""
        self.lines: list[Numbers] = []
        self.reached_by: list[Positions] = []
        self.degrees: list[Positions] = []
        self.targets: list[Numbers] = []
        self.chains: list[Numbers] = []
        self.edges = 0

    def build(self) -> StateGraph:
        initial = self.follower.numbers(self.system.initial)[np.newaxis]
        self.number(initial)
        self.arrive(initial, np.array([-1]))
        levels: list[int] = []
        level = initial
        while len(level):
            levels.append(len(level))
            known = len(self.lines)
            for begin in range(0, len(level), EXPANDED_AT_ONCE):
                chunk = level[begin : begin + EXPANDED_AT_ONCE]
                self.expand(chunk)
                self.report(len(levels), sum(levels[:-1]) + begin + len(chunk))
            level = np.concatenate(self.lines[known:])
        return StateGraph(
            self.system,
            np.concatenate(self.lines),
            np.concatenate([[0], np.cumsum(np.concatenate(self.degrees))]),
            np.concatenate(self.targets),
            np.concatenate(self.chains),
            np.concatenate(self.reached_by),
            tuple(levels),
            self.follower,
        )

    def report(self, level: int, expanded: int) -> None:
        states = len(self.numbering)
        if states > self.max_states:
            raise GraphTooLargeError(
                f"the state graph has more than {self.max_states:,} states ({states:,} by level {level}, and"
                f" {self.edges:,} transitions); raise --max-states, or {_LOWER}"
            )
        if self.watch(Progress(level, states, self.edges, states - expanded)):
            raise GraphStoppedError(
                f"the state graph was not finished: {states:,} states and {self.edges:,} transitions by level {level};"
                f" give it more time, or {_LOWER}"
            )

    def expand(self, rows: Numbers) -> None:
        """Add the edges out of these rows, and the rows that are new."""
        columns = np.ascontiguousarray(rows.T)
        ends = [
            self.follower.follow(chain.lookups, columns, wanted)
            for chain, wanted in zip(self.system.chains, self.wanted, strict=True)
        ]
        successors = np.concatenate(
            [rows[:0], *(self.after(rows, chain, each) for chain, each in zip(self.system.chains, ends, strict=True))]
        )
        origins = np.concatenate([np.empty(0, np.int64), *(each.origins for each in ends)])
        chains = np.repeat(np.arange(len(ends), dtype=np.int32), [len(each.origins) for each in ends])
        by_origin = np.argsort(origins, kind="stable")
        successors = successors[by_origin]
        known = len(self.numbering)
        targets = self.number(successors)
        new = np.flatnonzero(targets >= known)
        _, first = np.unique(targets[new], return_index=True)
        self.arrive(successors[new[first]], self.edges + new[first])
        self.degrees.append(np.bincount(origins, minlength=len(rows)))
        self.targets.append(targets)
        self.chains.append(chains[by_origin])
        self.edges += len(targets)

    def after(self, rows: Numbers, chain: Chain, ends: Ends) -> Numbers:
        after = rows[ends.origins]
        for column, register in chain.result.items():
            after[:, self.system.index[column]] = ends.registers[register]
        return after

    def number(self, rows: Numbers) -> Numbers:
        """Their numbers; new rows get the next ones, in this order."""
        numbering = self.numbering
        width = rows.shape[1] * rows.itemsize
        keys = np.ascontiguousarray(rows).view(f"V{width}").ravel().tolist()
        return np.array([numbering.setdefault(key, len(numbering)) for key in keys], np.int32)

    def arrive(self, rows: Numbers, edges: Positions) -> None:
        self.lines.append(rows)
        self.reached_by.append(edges)
