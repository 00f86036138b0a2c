"""A system with its names resolved: registers, functions and domains are numbers from here on.

A *domain* is a set of registers that share one numbering of values. Two registers are in one domain when a value can
flow from one to the other: a look-up function reads both at the same position, or a chain puts one into the column of
the other. Small domains are what makes the tables dense: the states of a node are numbered apart from the contents of
a link. A *strand* is a chain, or the look-ups of a check, as a range of steps; the strands of checks come after those
of the chains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from distro_model.search.system import NO_GUARD, Alternative, Lookup, System

MOST_OPENED = 2


class Function(NamedTuple):
    """A look-up function, with the domains of what it reads and writes."""

    call: Callable[..., Sequence[Alternative]]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One look-up in its strand: a function, the registers that it reads, the first of those that it writes."""

    function: int
    reads: tuple[int, ...]
    first_write: int


@dataclass(frozen=True, slots=True)
class Strand:
    name: str
    first: int
    last: int
    """Its steps are `range(first, last)`."""
    results: tuple[tuple[int, int], ...]
    """(column, register)."""
    alarms: tuple[tuple[int, int], ...]
    """(register, its domain)."""
    opening: int = 0
    """Which of its steps opens it: the first that can refuse, if that is one of the first two and hangs on at most two
    columns. A row whose columns it refuses need not be walked."""
    opened: tuple[int, ...] = ()
    """Those columns; none: its opening hangs on more of them, or on none."""


@dataclass(frozen=True, slots=True)
class Program:
    column_domains: tuple[int, ...]
    """The registers 0, 1, … are the columns; the next one always holds number 0; then those that look-ups write."""
    domains: int
    registers: int
    functions: tuple[Function, ...]
    steps: tuple[Step, ...]
    strands: tuple[Strand, ...]
    chains: int
    """The number of strands that are chains."""


def compiled(system: System) -> Program:
    """Resolve every name of `system`; checks that no row alone can answer (EVENTUALLY) are left out."""
    return _Compiler(system).program()


class _Compiler:
    def __init__(self, system: System) -> None:
        self.system = system
        self.merged: dict[Hashable, Hashable] = {}
        self.signatures: dict[tuple[Callable[..., Sequence[Alternative]], int, int], int] = {}
        self.steps: list[Step] = []
        self.registers = len(system.columns) + 1
        self.parts: list[
            tuple[
                str,
                int,
                int,
                Mapping[str, str],
                tuple[str, ...],
                dict[str, tuple[int, Hashable]],
                tuple[int, tuple[int, ...]],
            ]
        ] = []

    def program(self) -> Program:
        for chain in self.system.chains:
            self.add(chain.name, chain.lookups, chain.result, chain.alarms)
        for check in self.system.checks:
            if check.found is not None and check.is_of_rows:
                self.add(check.property_id, check.lookups, {}, (check.found,))
        numbers: dict[Hashable, int] = {}

        def domain(place: Hashable) -> int:
            return numbers.setdefault(self.root(place), len(numbers))

        columns = tuple(domain(("column", name)) for name in self.system.columns)
        functions = tuple(
            Function(
                call,
                tuple(domain(("read", number, position)) for position in range(reads)),
                tuple(domain(("written", number, position)) for position in range(writes)),
            )
            for (call, reads, writes), number in self.signatures.items()
        )
        strands = tuple(
            Strand(
                name,
                first,
                last,
                tuple((self.system.index[column], known[register][0]) for column, register in result.items()),
                tuple((known[register][0], domain(known[register][1])) for register in alarms),
                *opening,
            )
            for name, first, last, result, alarms, known, opening in self.parts
        )
        return Program(
            columns, len(numbers), self.registers, functions, tuple(self.steps), strands, len(self.system.chains)
        )

    def add(self, name: str, lookups: tuple[Lookup, ...], result: Mapping[str, str], alarms: tuple[str, ...]) -> None:
        first = len(self.steps)
        known: dict[str, tuple[int, Hashable]] = {
            column: (position, ("column", column)) for position, column in enumerate(self.system.columns)
        }
        free = len(self.system.columns) + 1
        for lookup in lookups:
            signature = (lookup.function, len(lookup.reads), len(lookup.writes))
            function = self.signatures.setdefault(signature, len(self.signatures))
            for position, register in enumerate(lookup.reads):
                self.merge(known[register][1], ("read", function, position))
            self.steps.append(Step(function, tuple(known[register][0] for register in lookup.reads), free))
            for position, register in enumerate(lookup.writes):
                known[register] = (free, ("written", function, position))
                free += 1
        for column, register in result.items():
            self.merge(("column", column), known[register][1])
        self.registers = max(self.registers, free)
        self.parts.append((name, first, len(self.steps), result, alarms, known, self.opening(lookups)))

    def opening(self, lookups: tuple[Lookup, ...]) -> tuple[int, tuple[int, ...]]:
        """See `Strand`."""
        if not lookups:
            return 0, ()
        number = 1 if lookups[0].guard == NO_GUARD and len(lookups) > 1 else 0
        reads = dict.fromkeys(name for lookup in lookups[: number + 1] for name in lookup.reads)
        columns = tuple(self.system.index[name] for name in reads if name in self.system.index)
        if len(columns) > MOST_OPENED or (number == 0 and len(columns) < len(lookups[0].reads)):
            return 0, ()
        return number, columns

    def merge(self, one: Hashable, other: Hashable) -> None:
        self.merged[self.root(one)] = self.root(other)

    def root(self, place: Hashable) -> Hashable:
        while (above := self.merged.get(place, place)) != place:
            place = above
        return place
