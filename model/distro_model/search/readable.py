"""The readable search: breadth-first, one queue, one table from each row to the row that it was first reached from.

It is slow (some ten thousand transitions a second) and obvious. Every other engine must count what this one counts
and find runs of the same length; tests compare them.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise

from distro_model.search.results import Limits, Progress, Run, Search, Stopped, Watch, never_stop
from distro_model.search.system import (
    Chain,
    Finding,
    Lookup,
    Row,
    System,
    Transition,
    Value,
    findings,
    transition,
    transitions,
)

WATCHED_EVERY = 256


def search_readably(system: System, limits: Limits = Limits(), watch: Watch = never_stop) -> Search:
    """Search every row that is reachable, or as many as the limits allow."""
    return _ReadableSearch(system).run(limits, watch)


class _ReadableSearch:
    def __init__(self, system: System) -> None:
        self.system = system
        self.reached_from: dict[Row, Row | None] = {system.initial: None}
        self.frontier = deque([(system.initial, 0)])
        self.levels = [1]
        self.taken = Counter({chain.name: 0 for chain in system.chains})
        self.refused = {chain.name: [0] * len(chain.lookups) for chain in system.chains}
        self.runs: dict[str, Run] = {}
        self.function_calls = 0

    def run(self, limits: Limits, watch: Watch) -> Search:
        self.find_in(self.system.initial)
        expanded = 0
        stopped = None
        while self.frontier and stopped is None:
            row, depth = self.frontier.popleft()
            self.expand(row, depth)
            expanded += 1
            if limits.max_states is not None and len(self.reached_from) > limits.max_states:
                stopped = Stopped.MAX_STATES
            elif expanded % WATCHED_EVERY == 0 and watch(self.progress()):
                stopped = Stopped.ASKED
        refused = {name: tuple(counts) for name, counts in self.refused.items()}
        return Search(
            stopped,
            len(self.reached_from),
            self.taken.total(),
            tuple(self.levels),
            dict(self.taken),
            refused,
            self.runs,
            self.function_calls,
        )

    def progress(self) -> Progress:
        levels, states = len(self.levels) - 1, len(self.reached_from)
        return Progress(levels, states, self.taken.total(), len(self.frontier), found=frozenset(self.runs))

    def expand(self, row: Row, depth: int) -> None:
        registers = dict(zip(self.system.columns, row, strict=True))
        for chain in self.system.chains:
            for end in self.ends(chain, 0, registers):
                self.taken[chain.name] += 1
                self.arrive(row, transition(self.system, chain, row, end), depth + 1)

    def ends(self, chain: Chain, position: int, registers: dict[str, Value]) -> list[dict[str, Value]]:
        """As `system.outcomes`, counting what each look-up refuses."""
        if position == len(chain.lookups):
            return [registers]
        lookup: Lookup = chain.lookups[position]
        alternatives = lookup.function(*(registers[name] for name in lookup.reads))
        self.function_calls += 1
        if not alternatives:
            self.refused[chain.name][position] += 1
        return [
            end
            for alternative in alternatives
            for end in self.ends(
                chain, position + 1, {**registers, **dict(zip(lookup.writes, alternative, strict=True))}
            )
        ]

    def arrive(self, before: Row, taken: Transition, depth: int) -> None:
        for finding in taken.findings:
            if finding.property_id not in self.runs:
                self.runs[finding.property_id] = self.run_to(before, taken, finding)
        if taken.after in self.reached_from:
            return
        self.reached_from[taken.after] = before
        self.frontier.append((taken.after, depth))
        if depth == len(self.levels):
            self.levels.append(0)
        self.levels[depth] += 1
        self.find_in(taken.after)

    def find_in(self, row: Row) -> None:
        for finding in findings(self.system, row):  # of states; infinite runs are checked by `liveness`
            if finding.property_id not in self.runs:
                self.runs[finding.property_id] = self.run_to(row, None, finding)

    def run_to(self, row: Row, last: Transition | None, finding: Finding) -> Run:
        rows = [row]
        while (before := self.reached_from[rows[-1]]) is not None:
            rows.append(before)
        rows.reverse()
        return run_through(self.system, rows, last, finding)


def run_through(system: System, rows: list[Row], last: Transition | None, finding: Finding) -> Run:
    """Give a sequence of rows the transitions that lead from each to the next; `last`: one more beyond the last row."""
    steps = [
        next(each for each in transitions(system, before) if each.after == after) for before, after in pairwise(rows)
    ]
    if last is not None:
        rows = [*rows, last.after]
        steps.append(last)
    return Run(finding, tuple(rows), tuple(steps))
