"""The numbers of all values, and every look-up that was ever computed, laid out for the compiled loops.

`values` and `numbers` belong to a domain (see `program`). `entries` is the list of all computed look-ups; the dense
and hashed tables are only ways to find an entry, and are made again when a domain outgrows its space. Look-ups with
few possible combinations of inputs get a dense table, the others share one hashed table.
"""

from __future__ import annotations

from itertools import accumulate
from sys import getsizeof

import numpy as np

from distro_model.search.kernels import file_entries
from distro_model.search.layout import (
    BASE,
    FUNCTION,
    HASHED,
    LEAST_WIDTH,
    REFUSED,
    SHIFT_0,
    SHIFT_1,
    STEP_SIZE,
    Indices,
    Ints,
    Layout,
    Words,
)
from distro_model.search.program import Program
from distro_model.search.system import ContradictionError, Row, System, Value, findings_in

DENSE_BITS = 18
"""A look-up with at most 2**18 combinations of inputs gets a table of 1 MiB. With four times as much, clearing tables
that stay almost empty takes a fifth of a search of 200,000 states; one of millions is no faster for it."""
LEAST_BITS = 4
"""With less, the tables are made again for each of the first few values."""
MOST_PROPERTIES = 64
"""A bit each, of the findings of one value."""

SAMPLED_EVERY = 16


class Array:
    """A growing int32 matrix, with `LEAST_WIDTH` rows of space at the end."""

    def __init__(self, width: int) -> None:
        self.rows = np.zeros((256, width), np.int32)
        self.size = 0

    def extend(self, rows: Ints) -> None:
        while self.size + len(rows) + LEAST_WIDTH > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[self.size : self.size + len(rows)] = rows
        self.size += len(rows)


class Tables:
    def __init__(self, system: System, program: Program) -> None:
        self.system = system
        self.program = program
        self.values: list[list[Value]] = [[] for _ in range(program.domains)]
        self.numbers: list[dict[Value, int]] = [{} for _ in range(program.domains)]
        self.ways = [
            (
                function.call,
                [self.values[domain] for domain in function.reads],
                [(self.numbers[domain].get, domain) for domain in function.writes],
            )
            for function in program.functions
        ]
        """For each function: the callable, the values that it reads, the lookup of the numbers that it writes."""
        self.value_bytes = 0
        self.measured: set[int] = set()
        """The ids of measured values; none of them is ever dropped."""
        self.bits = [LEAST_BITS] * program.domains
        self.outgrown = False
        """Whether a domain has more values than its bits can distinguish."""
        self.properties: dict[str, int] = {}
        self.findings: list[tuple[int, int, int]] = []
        self.entries = Array(5)
        self.heap = Array(1)
        self.heap.extend(np.zeros((2, 1), np.int32))
        self.hashed_entries = 0
        nothing, functions = len(system.columns), program.functions
        self.steps = _indices(
            [
                (*(*step.reads, nothing, nothing)[:3], 0, 0, 0, step.function, step.first_write, len(writes))
                for step in program.steps
                for writes in (functions[step.function].writes,)
            ],
            STEP_SIZE,
        )
        """`Layout.steps` without what hangs on how many values there are."""
        self.initial = self.numbered(system.initial)
        self.layout = self.enlarged_layout()

    @property
    def calls(self) -> int:
        return self.entries.size

    @property
    def memory_bytes(self) -> int:
        """The size of the arrays, and of the values, estimated from every sixteenth."""
        arrays = [each for each in self.layout if isinstance(each, np.ndarray)]
        numbers = sum(map(getsizeof, self.numbers)) + sum(map(getsizeof, self.values))
        return sum(each.nbytes for each in [*arrays, self.entries.rows]) + numbers + self.value_bytes

    def numbered(self, row: Row) -> list[int]:
        return [self.number(domain, value) for domain, value in zip(self.program.column_domains, row, strict=True)]

    def number(self, domain: int, value: Value) -> int:
        known = self.numbers[domain].get(value)
        return self.add(domain, value) if known is None else known

    def add(self, domain: int, value: Value) -> int:
        number = self.numbers[domain][value] = len(self.values[domain])
        self.values[domain].append(value)
        self.outgrown |= number >> self.bits[domain] > 0
        if number % SAMPLED_EVERY == 0:
            self.value_bytes += SAMPLED_EVERY * size_of(value, self.measured)
        for finding in findings_in(value):
            place = self.properties.setdefault(finding.property_id, len(self.properties))
            if place >= MOST_PROPERTIES:
                raise ContradictionError(f"a search looks for at most {MOST_PROPERTIES} properties at a time")
            self.findings.append((domain, number, place))
        return number

    def fill(self, asked: Ints) -> None:
        """Call the functions for the missing look-ups, and store the results where the loops read them.

        `asked`: the misses of a `Tally`, every one once.
        """
        begin, findings = self.entries.size, len(self.findings)
        self.entries.extend(np.column_stack([asked, self.answers(asked)]))
        hashed = int((self.layout.functions[asked[:, 0], 0] < 0).sum())
        if self.outgrown or 2 * (self.hashed_entries + hashed) > len(self.layout.hashed):
            self.layout = self.enlarged_layout()
            return
        self.hashed_entries += hashed
        self.layout = self.layout._replace(heap=self.heap.rows.reshape(-1))
        if findings < len(self.findings):
            self.mark_findings(self.layout, findings)
        file_entries(self.layout, self.entries.rows, begin, self.entries.size)

    def answers(self, asked: Ints) -> list[int]:
        """Ask; the alternatives go to the heap. A small search spends most of its time here: hence the plain loop."""
        answers: list[int] = []
        heap: list[int] = []
        begin = self.heap.size
        for function, one, two, three in asked.tolist():
            call, reads, writes = self.ways[function]
            if len(reads) == 1:
                alternatives = call(reads[0][one])
            elif len(reads) == 2:
                alternatives = call(reads[0][one], reads[1][two])
            else:
                alternatives = call(reads[0][one], reads[1][two], reads[2][three])
            if not alternatives:
                answers.append(REFUSED)
                continue
            answers.append(begin + len(heap))
            heap.append(len(alternatives))
            for alternative in alternatives:
                if len(alternative) != len(writes):
                    raise ContradictionError(
                        f"the look-up {call!r} writes {len(writes)} registers, but gave {alternative!r}"
                    )
                for (number_of, domain), value in zip(writes, alternative):  # noqa: B905 - as many, see above
                    known = number_of(value)
                    heap.append(self.add(domain, value) if known is None else known)
        self.heap.extend(np.array(heap, np.int32).reshape(-1, 1))
        return answers

    def enlarged_layout(self) -> Layout:
        """Give every domain twice the space it needs, or almost, and file everything that is known."""
        for domain, values in enumerate(self.values):
            self.bits[domain] = max(self.bits[domain], (2 * len(values)).bit_length())
        self.outgrown = False
        program = self.program
        sizes = [1 << bits for bits in self.bits]
        domain_bases = [0, *accumulate(sizes)]
        column_sizes = [sizes[domain] for domain in program.column_domains]
        column_bases = np.array([0, *accumulate(column_sizes)], np.int32)
        functions, dense_size, hashed_size = self.function_tables()
        first_guards, guards, guarded, openings, learnt, refused_size = self.guard_tables()
        alarms = [alarm for strand in program.strands for alarm in strand.alarms]
        results = [result for strand in program.strands for result in strand.results]
        layout = Layout(
            steps=self.step_table(functions),
            first_steps=np.array([*(strand.first for strand in program.strands), len(program.steps)], np.int32),
            first_results=_starts([len(strand.results) for strand in program.strands]),
            results=_indices([(column, register, column_bases[column]) for column, register in results], 3),
            first_alarms=_starts([len(strand.alarms) for strand in program.strands]),
            alarms=_indices([(register, domain_bases[domain]) for register, domain in alarms], 2),
            first_guards=first_guards,
            guards=guards,
            guarded=guarded,
            openings=openings,
            learnt=learnt,
            column_bases=column_bases,
            numbers=np.concatenate([_fingerprints(column, size) for column, size in enumerate(column_sizes)]),
            refused=np.zeros(refused_size, np.uint64),
            properties=np.zeros(domain_bases[-1], np.uint64),
            functions=functions,
            dense=np.zeros(dense_size, np.int32),
            hashed=np.zeros((hashed_size, 3), np.int64),
            heap=self.heap.rows.reshape(-1),
        )
        self.mark_findings(layout, 0)
        file_entries(layout, self.entries.rows, 0, self.entries.size)
        return layout

    def function_tables(self) -> tuple[Ints, int, int]:
        """For each function base (-1: hashed) and two shifts; the size of both kinds of table."""
        rows = np.zeros((len(self.program.functions), 3), np.int32)
        dense_size = 0
        asked = np.bincount(self.entries.rows[: self.entries.size, 0], minlength=len(rows))
        self.hashed_entries = 0
        for number, function in enumerate(self.program.functions):
            bits = [*(self.bits[domain] for domain in function.reads), 0, 0]
            total = sum(bits)
            shifts = (bits[1] + bits[2], bits[2])
            if total <= DENSE_BITS or len(function.reads) == 1:
                rows[number] = (dense_size, *shifts)
                dense_size += 1 << total
            else:
                rows[number] = (-1, *shifts)
                self.hashed_entries += int(asked[number])
        return rows, dense_size, max(16, 1 << (4 * self.hashed_entries).bit_length())

    def step_table(self, functions: Ints) -> Indices:
        rows = self.steps.copy()
        bases, *shifts = functions[rows[:, FUNCTION]].T
        rows[:, BASE] = np.where(bases >= 0, bases.astype(rows.dtype), rows.dtype.type(HASHED))
        rows[:, SHIFT_0], rows[:, SHIFT_1] = shifts
        return rows

    def guard_tables(self) -> tuple[Ints, Indices, Words, Ints, Ints, int]:
        """See `Layout`: first_guards, guards, guarded, openings, learnt; and the size of `refused`."""
        program = self.program
        nothing = len(self.system.columns)
        words = len(program.strands) // 64 + 1
        guards: list[dict[tuple[int, ...], tuple[int, int]]] = [{} for _ in range(words)]
        guarded: list[dict[tuple[int, ...], int]] = [{} for _ in range(words)]
        openings: list[tuple[int, ...]] = []
        learnt = np.full((len(program.strands), 4), -1, np.int32)
        size = 0
        for number, strand in enumerate(program.strands):
            if strand.first == strand.last:
                continue
            bits = [self.bits[program.column_domains[column]] for column in strand.opened]
            if not bits or sum(bits) > DENSE_BITS:
                continue
            # Values that depend on one column are filed with a second number, which is 0.
            reads, shift = (strand.opened, bits[1]) if len(bits) == 2 else ((*strand.opened, nothing), 0)
            word = number // 64
            if reads not in guards[word]:
                guards[word][reads] = (shift, size)
                size += 1 << sum(bits)
            guarded[word][reads] = guarded[word].get(reads, 0) | 1 << number % 64
            if strand.opening:
                learnt[number] = (*reads, *guards[word][reads])
            else:
                openings.append((number, program.steps[strand.first].function, *guards[word][reads]))
        return (
            _starts([len(each) for each in guards]),
            _indices([(*reads, *place) for each in guards for reads, place in each.items()], 4),
            np.array([bits for each in guarded for bits in each.values()], np.uint64),
            np.array(openings, np.int32).reshape(-1, 4),
            learnt,
            size,
        )

    def mark_findings(self, layout: Layout, begin: int) -> None:
        bases = [0, *accumulate(1 << bits for bits in self.bits)]
        for domain, number, place in self.findings[begin:]:
            layout.properties[bases[domain] + number] |= np.uint64(1 << place)


def size_of(value: object, measured: set[int]) -> int:
    """Bytes of a value and of all that it is made of, but for what was measured before."""
    if id(value) in measured:
        return 0
    measured.add(id(value))
    parts = value if isinstance(value, tuple) else (getattr(value, name) for name in getattr(value, "__slots__", ()))
    return getsizeof(value) + sum(size_of(part, measured) for part in parts)


def _starts(sizes: list[int]) -> Ints:
    return np.array([0, *accumulate(sizes)], np.int32)


def _indices(rows: list[tuple[int, ...]], width: int) -> Indices:
    return np.array(rows, np.uint32).reshape(-1, width)


def _fingerprints(column: int, size: int) -> Words:
    numbers = np.arange(size, dtype=np.int32)
    return fingerprints_of(np.full_like(numbers, column), numbers)


def fingerprints_of(columns: Ints, numbers: Ints) -> Words:
    """A 64-bit number, as good as random and never 0, for each (column, number of a value): SplitMix64."""
    mixed = (columns.astype(np.uint64) << np.uint64(32)) | numbers.astype(np.uint64)
    mixed = (mixed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.maximum(mixed ^ (mixed >> np.uint64(31)), np.uint64(1))
