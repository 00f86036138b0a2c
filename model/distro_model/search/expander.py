"""Expands a chunk of rows: everything the compiled loops need, split over threads, until no look-up is missing.

The threads share the tables and the known states, which are read-only meanwhile, and write to regions of their own.
Rows that need a look-up without a remembered result are put aside. Python computes it, its results are probed until
nothing is missing, and only then these rows are expanded again. In the end the candidates are put into the order of
their rows, so nothing depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from distro_model.search.kernels import FILTERED_EVERY, expand, probe
from distro_model.search.known import Reserve
from distro_model.search.layout import (
    ASIDE,
    KEPT,
    LEAST_WIDTH,
    MISSES,
    NEXT,
    Candidates,
    Ints,
    Job,
    Known,
    Longs,
    Scratch,
    Tally,
    Words,
)
from distro_model.search.program import Program
from distro_model.search.tables import Tables

MISSES_AT_ONCE = 1 << 14
MISSES_LATELY = 1 << 14
LATELY = 1 << 15
"""Fingerprints in each thread's cache: 256 KiB, a quarter of a common second-level cache."""
WORTH_A_THREAD = 2048
FIRST_CAPACITY = 4 * FILTERED_EVERY
NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Expansion:
    """The result of a chunk. `order` picks the candidates out of `rows`, `prints`, …, by row and ordinal."""

    rows: Ints
    prints: Words
    parents: Ints
    """Row of the chunk."""
    ordinals: Ints
    """Which of the transitions of its row."""
    order: Longs
    taken: Longs
    walked: Longs
    refused: Longs
    found: Longs
    """(2, property, 2): row and ordinal of its first finding in a transition, and by a check."""


class Expander:
    def __init__(self, tables: Tables, threads: int, exact: bool) -> None:
        self.tables = tables
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.lately = np.zeros((threads, 0 if exact else LATELY), np.uint64)
        self.candidates = self.space_for_candidates(FIRST_CAPACITY)
        self.misses = np.zeros((threads, MISSES_AT_ONCE, 4), np.int32)
        self.scratch = [_scratch_for(tables.program) for _ in range(threads)]
        strands, chains = len(tables.program.strands), tables.program.chains
        self.transitions = _bits(strands, 0, chains)
        self.checks = _bits(strands, chains, strands)

    @property
    def memory_bytes(self) -> int:
        kept = (array for scratch in self.scratch for array in scratch)
        return sum(each.nbytes for each in (*self.candidates, self.lately, self.misses, *kept))

    def space_for_candidates(self, capacity: int) -> Candidates:
        columns = len(self.tables.system.columns)
        return Candidates(
            np.zeros((self.threads, capacity, columns), np.int32),
            np.zeros((self.threads, capacity), np.uint64),
            np.zeros((self.threads, capacity), np.int32),
            np.zeros((self.threads, capacity), np.int32),
        )

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def threads_for(self, size: int) -> int:
        """Small jobs are done before another thread wakes up."""
        return min(self.threads, 1 + size // WORTH_A_THREAD)

    def run(self, work: Callable[[int], None], threads: int) -> None:
        """`work(0)`, `work(1)`, … side by side."""
        if self.pool is None or threads == 1:
            for thread in range(threads):
                work(thread)
        else:
            list(self.pool.map(work, range(threads)))

    def expansion_of(self, rows: Ints, known: Known, reserve: Reserve) -> Expansion:
        """The transitions of these rows, and what the checks of states find in them."""
        return _Round(self, rows, known, self.transitions | self.checks, reserve).expansion()

    def checks_of(self, rows: Ints, known: Known, reserve: Reserve) -> Expansion:
        return _Round(self, rows, known, self.checks, reserve).expansion()

    def answered(self, property_id: str) -> None:
        """A check that has a finding is not run any more."""
        program = self.tables.program
        for strand in range(program.chains, len(program.strands)):
            if program.strands[strand].name == property_id:
                self.checks &= ~_bits(len(program.strands), strand, strand + 1)


class _Round:
    """One chunk."""

    def __init__(self, expander: Expander, rows: Ints, known: Known, asked: Words, reserve: Reserve) -> None:
        self.expander = expander
        self.rows = rows
        self.known = known
        self.asked = asked
        self.reserve = reserve
        self.threads = expander.threads_for(len(rows))
        program = expander.tables.program
        self.taken = np.zeros((self.threads, len(program.strands)), np.int64)
        self.walked = np.zeros((self.threads, len(program.strands)), np.int64)
        self.refused = np.zeros((self.threads, len(program.steps)), np.int64)
        self.reports = np.zeros((self.threads, 4), np.int64)
        self.found = np.zeros((self.threads, 2, 0, 2), np.int64)

    def expansion(self) -> Expansion:
        which = np.arange(len(self.rows), dtype=np.int32)
        lately = self.expander.lately
        again = False
        while True:
            which = self.walk([which] if self.threads == 1 else np.array_split(which, self.threads), lately)
            if not len(which):
                break
            again = True
            # A candidate may have been dropped for an equal one of a later row, which must not count here.
            lately = lately[:, :0]
        candidates = self.expander.candidates
        capacity = candidates.prints.shape[1]
        kept = self.reports[:, KEPT]
        order = np.concatenate([thread * capacity + np.arange(kept[thread]) for thread in range(self.threads)])
        parents = candidates.parents.reshape(-1)
        if again:
            order = order[np.argsort(parents[order], kind="stable")]
        first = np.lexsort((self.found[..., 1], self.found[..., 0]), axis=0)[:1, ..., np.newaxis]
        return Expansion(
            candidates.rows.reshape(-1, self.rows.shape[1]),
            candidates.prints.reshape(-1),
            parents,
            candidates.ordinals.reshape(-1),
            order,
            self.taken.sum(axis=0),
            self.walked.sum(axis=0),
            self.refused.sum(axis=0),
            np.take_along_axis(self.found, first, axis=0)[0],
        )

    def walk(self, shares: list[Ints], lately: Words) -> Ints:
        """Walk these rows, ask what was missing, and return the rows that missed it."""
        words = len(self.asked)
        aside = [(np.empty(len(share), np.int32), np.zeros((len(share), words), np.uint64)) for share in shares]
        self.make_room_for_findings()
        for report in (NEXT, ASIDE, MISSES):
            self.reports[:, report] = 0

        def run(loop: Callable[..., None]) -> None:
            candidates = self.expander.candidates
            self.expander.run(
                lambda thread: loop(
                    self.expander.tables.layout,
                    self.known,
                    Job(self.rows, shares[thread], self.asked, self.expander.tables.program.chains, lately[thread]),
                    Candidates(*(each[thread] for each in candidates)),
                    Tally(
                        self.taken[thread],
                        self.walked[thread],
                        self.refused[thread],
                        self.expander.misses[thread],
                        *aside[thread],
                        self.found[thread],
                    ),
                    self.reports[thread],
                    self.expander.scratch[thread],
                ),
                self.threads,
            )

        run(expand)
        while any(report[NEXT] < len(share) for report, share in zip(self.reports, shares, strict=True)):
            self.widen()
            run(expand)
        while self.learn():
            run(probe)
        counts = self.reports[:, ASIDE].tolist()
        left = _joined([rows[:count] for (rows, _), count in zip(aside, counts, strict=True)])
        return left if self.threads == 1 else np.sort(left)

    def learn(self) -> bool:
        """Ask what was missing, if anything was."""
        missed = self.reports[:, MISSES].tolist()
        if not any(missed):
            return False
        misses = [self.expander.misses[thread, :count] for thread, count in enumerate(missed)]
        self.expander.tables.fill(_distinct(_joined(misses)))
        self.reports[:, MISSES] = 0
        for scratch in self.expander.scratch[: self.threads]:
            scratch.asked_lately[:] = 0
        return True

    def make_room_for_findings(self) -> None:
        more = len(self.expander.tables.properties) - self.found.shape[2]
        if more:
            nowhere = np.full((self.threads, 2, more, 2), NOWHERE)
            self.found = np.concatenate([self.found, nowhere], axis=2)

    def widen(self) -> None:
        """Give every thread twice the space for candidates."""
        old = self.expander.candidates
        capacity = old.prints.shape[1]
        self.reserve(2 * sum(each.nbytes for each in old))
        wide = self.expander.space_for_candidates(2 * capacity)
        wide.rows[:, :capacity] = old.rows
        wide.prints[:, :capacity] = old.prints
        wide.parents[:, :capacity] = old.parents
        wide.ordinals[:, :capacity] = old.ordinals
        self.expander.candidates = wide


def _scratch_for(program: Program) -> Scratch:
    return Scratch(
        registers=np.zeros(program.registers + LEAST_WIDTH, np.int32),
        choices=np.zeros((len(program.steps), 3), np.int64),
        row_print=np.zeros(1, np.uint64),
        asked_lately=np.zeros(MISSES_LATELY, np.uint64),
        strands=np.zeros(len(program.strands) // 64 + 1, np.uint64),
    )


def _joined(arrays: list[Ints]) -> Ints:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _distinct(rows: Ints) -> Ints:
    """Each of them once, and sorted, so that a search repeated gives the same numbers to the same values."""
    rows = rows[np.lexsort(rows.T[::-1])]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[is_first]


def _bits(strands: int, begin: int, end: int) -> Words:
    """The strands from `begin` to before `end`, a bit each."""
    words = np.zeros(strands // 64 + 1, np.uint64)
    for strand in range(begin, end):
        words[strand >> 6] |= np.uint64(1 << (strand & 63))
    return words
