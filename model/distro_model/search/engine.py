"""The fast search: the same answers as `search_readably`, at millions of states a second.

Breadth-first in chunks of rows. The values of registers are numbers, a row is a few of them, and a look-up reads a
table (`tables`). Compiled loops walk the chains (`kernels`, driven by `expander`) and write down the rows they lead
to, each with a 64-bit fingerprint: the sum of one random number for each (column, value), so it costs no more than
the columns that changed. A second pass puts the fingerprints into the set of known states (`known`), and what was new
becomes the next level. States are numbered in the order in which the readable search finds them, whatever the number
of threads.

Without `exact` two rows with one fingerprint are taken for one; `Search.collision_probability` bounds the probability
that this happened. With it rows are stored and compared.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from distro_model.search.expander import NOWHERE, Expander, Expansion
from distro_model.search.kernels import PARTS, settle
from distro_model.search.known import KnownStates, OutOfRoomError
from distro_model.search.layout import Ints, Longs
from distro_model.search.program import compiled
from distro_model.search.results import Limits, Progress, Run, Search, Stopped, Watch, never_stop
from distro_model.search.system import Finding, Row, System, Transition, findings, transitions
from distro_model.search.tables import Tables

CHUNK = 1 << 16
"""Rows expanded at a time: a few hundredths of a second."""
LEAST_CHUNK = 64

Block = npt.NDArray[np.integer[Any]]


def search(
    system: System,
    limits: Limits = Limits(),
    watch: Watch = never_stop,
    *,
    exact: bool = False,
    threads: int = 2,
) -> Search:
    """Search every row that is reachable, or as many as the limits allow (it may go beyond `max_states` by a chunk).

    Raises ContradictionError where a look-up does not write what it says.
    """
    if threads not in range(1, PARTS + 1):
        raise ValueError(f"a search runs on 1 to {PARTS} threads, not {threads}")
    with without_collections():
        return _found_by(_Engine(system, limits, watch, exact, threads))


def _found_by(engine: _Engine) -> Search:
    """The engine's data is released at the end; otherwise the first collection after a search would examine all of
    it."""
    try:
        return engine.run()
    finally:
        engine.close()


@contextmanager
def without_collections() -> Iterator[None]:
    """Values are made in great numbers, are never dropped, and form no cycles: looking for garbage among them again and
    again costs a tenth of a search and finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Engine:
    def __init__(self, system: System, limits: Limits, watch: Watch, exact: bool, threads: int) -> None:
        self.system = system
        self.limits = limits
        self.watch = watch
        self.tables = Tables(system, compiled(system))
        self.program = self.tables.program
        self.known = KnownStates(len(system.columns), exact)
        self.expander = Expander(self.tables, threads, exact)
        self.level = _Level()
        self.next_level = _Level()
        self.levels = [1]
        self.expanded = 0
        self.taken = np.zeros(len(self.program.strands), np.int64)
        self.walked = np.zeros(len(self.program.strands), np.int64)
        self.refused = np.zeros(len(self.program.steps), np.int64)
        self.runs: dict[str, Run] = {}

    @property
    def memory_bytes(self) -> int:
        parts = (self.tables, self.known, self.expander, self.level, self.next_level)
        return sum(part.memory_bytes for part in parts)

    def close(self) -> None:
        self.expander.close()
        self.level, self.next_level = _Level(), _Level()

    def reserve(self, more: int) -> None:
        limit = self.limits.max_memory_bytes
        if limit is not None and self.memory_bytes + more > limit:
            raise OutOfRoomError

    def run(self) -> Search:
        self.begin()
        stopped = None
        while self.next_level.size and stopped is None:
            self.level, self.next_level = self.next_level, _Level()
            while self.level.size and stopped is None:
                stopped = self.expand(self.level.take(self.chunk_size()))
        self.check_waiting()
        return self.result(stopped)

    def check_waiting(self) -> None:
        """States are checked as they are expanded; those that a search has found and will not expand, at its end."""
        first = self.expanded
        for waiting in (self.level, self.next_level):
            while waiting.size and self.expander.checks.any():
                rows = waiting.take(CHUNK)
                self.note_findings(self.expander.checks_of(rows, self.known.arrays(), self.reserve), first)
                first += len(rows)

    def begin(self) -> None:
        row = np.array([self.tables.initial], np.int32)
        places = self.tables.layout.column_bases[: row.shape[1]] + row[0]
        fingerprint = self.tables.layout.numbers[places].sum(keepdims=True)
        print_of_row = np.maximum(fingerprint, np.uint64(1))
        self.known.make_room(1, lambda _: None)
        self.settle(row, print_of_row, np.zeros(1, np.int64))
        self.known.append(row, np.zeros(1, np.int64), np.zeros(1, np.int32))
        self.next_level.append(row)

    def chunk_size(self) -> int:
        if self.limits.max_states is None:
            return CHUNK
        return min(CHUNK, max(LEAST_CHUNK, (self.limits.max_states - self.known.size) // 4))

    def expand(self, rows: Ints) -> Stopped | None:
        first = self.expanded
        try:
            expansion = self.expander.expansion_of(rows, self.known.arrays(), self.reserve)
            self.known.make_room(len(expansion.order), self.reserve)
            # The tables have grown by now, and the next level will.
            self.reserve(len(expansion.order) * rows.shape[1] * rows.itemsize)
        except OutOfRoomError:
            self.level.put_back(rows)
            return Stopped.MEMORY
        self.expanded += len(rows)
        self.taken += expansion.taken
        self.walked += expansion.walked
        self.refused += expansion.refused
        self.note_findings(expansion, first)
        new = self.settle(expansion.rows, expansion.prints, expansion.order)
        if len(new):
            self.add(expansion.rows[new], first + expansion.parents[new].astype(np.int64), expansion.ordinals[new])
        if self.limits.max_states is not None and self.known.size > self.limits.max_states:
            return Stopped.MAX_STATES
        return Stopped.ASKED if self.watch(self.progress()) else None

    def settle(self, rows: Ints, prints: npt.NDArray[np.uint64], order: Longs) -> Longs:
        """Add candidates to the set of known states; returns those that were new, in order."""
        is_new = np.zeros(len(order), np.uint8)
        slots = np.zeros(len(order) if self.known.exact else 0, np.int64)
        known, base = self.known.arrays(), self.known.size
        threads = self.expander.threads_for(len(order))

        def work(thread: int) -> None:
            parts = (thread * PARTS // threads, (thread + 1) * PARTS // threads)
            settle(known, rows, prints, order, parts, base, is_new, slots)

        self.expander.run(work, threads)
        new = np.flatnonzero(is_new)
        if self.known.exact:
            self.known.where[slots[new]] = base + np.arange(len(new))
        return order[new]

    def add(self, rows: Ints, parents: Longs, ordinals: Ints) -> None:
        if not self.next_level.size:
            self.levels.append(0)
        self.levels[-1] += len(rows)
        self.known.append(rows, parents, ordinals)
        self.next_level.append(rows)

    def note_findings(self, expansion: Expansion, first: int) -> None:
        """Of each property the first, with a shortest run: a check's, which shows a row, before that of a transition
        from a row of the same level."""
        for property_id, number in self.tables.properties.items():
            if number >= expansion.found.shape[1]:
                continue
            (at, ordinal), (checked, _) = expansion.found[:, number].tolist()
            known = self.runs.get(property_id)
            if checked != NOWHERE:
                path, row = self.path(first + checked)
                self.expander.answered(property_id)
                if known is None or len(path) < len(known.transitions):
                    self.note(property_id, findings(self.system, row), path)
            elif at != NOWHERE and known is None:
                path, row = self.path(first + at)
                last = next(islice(transitions(self.system, row), ordinal, None))
                self.note(property_id, last.findings, [*path, last])

    def path(self, state: int) -> tuple[list[Transition], Row]:
        """The transitions from the initial row to a state, and its row."""
        row = self.system.initial
        path = []
        for ordinal in self.known.ordinals_to(state):
            path.append(next(islice(transitions(self.system, row), ordinal, None)))
            row = path[-1].after
        return path, row

    def note(self, property_id: str, found: Iterable[Finding], path: list[Transition]) -> None:
        finding = next(each for each in found if each.property_id == property_id)
        rows = (self.system.initial, *(transition.after for transition in path))
        self.runs[property_id] = Run(finding, rows, tuple(path))

    def progress(self) -> Progress:
        transitions_made = int(self.taken[: self.program.chains].sum())
        waiting = self.level.size + self.next_level.size
        levels, found = len(self.levels) - 1, frozenset(self.runs)
        return Progress(levels, self.known.size, transitions_made, waiting, self.memory_bytes, found)

    def result(self, stopped: Stopped | None) -> Search:
        taken, refused = {}, {}
        for number, strand in enumerate(self.program.strands[: self.program.chains]):
            taken[strand.name] = int(self.taken[number])
            counts = self.refused[strand.first : strand.last].tolist()
            if counts:
                counts[strand.opening] += self.expanded - int(self.walked[number])
            refused[strand.name] = tuple(counts)
        pairs = self.known.size * (self.known.size - 1)
        collision = 0.0 if self.known.exact else min(1.0, pairs / 2**65)
        return Search(
            stopped,
            self.known.size,
            sum(taken.values()),
            tuple(self.levels),
            taken,
            refused,
            self.runs,
            self.tables.calls,
            collision,
        )


class _Level:
    """Rows that wait to be expanded, in blocks of the smallest integers that hold them."""

    def __init__(self) -> None:
        self.blocks: deque[Block] = deque()
        self.size = 0
        self.memory_bytes = 0

    def append(self, rows: Ints) -> None:
        block = rows.astype(np.min_scalar_type(int(rows.max())))
        self.blocks.append(block)
        self.count(block, 1)

    def count(self, block: Block, sign: int) -> None:
        self.size += sign * len(block)
        self.memory_bytes += sign * block.nbytes

    def take(self, wanted: int) -> Ints:
        """Up to `wanted` rows from the front."""
        taken: list[Ints] = []
        while wanted and self.blocks:
            block = self.blocks.popleft()
            self.count(block, -1)
            if len(block) > wanted:
                self.put_back(block[wanted:])
            taken.append(block[:wanted].astype(np.int32))
            wanted -= len(taken[-1])
        return np.concatenate(taken)

    def put_back(self, block: Block) -> None:
        self.blocks.appendleft(block)
        self.count(block, 1)
