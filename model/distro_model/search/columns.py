"""Chains of look-ups, followed for many rows at once.

Every value has a number, a state is a row of numbers, and a register is an array: the number of its value in each row.
A look-up function is called once for each different combination of numbers; the rest is indexing. This is separate from
`graph.py` because it is independent of graphs: it computes the next rows, and the rows in which a check finds a
violation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distro_model.search.system import ContradictionError, Lookup, System, Value

Numbers = NDArray[np.int32]
"""Numbers of values, rows or chains."""
Positions = NDArray[np.int64]
"""A position or range in an array that may be long."""
Flags = NDArray[np.bool_]

_BITS = 21
MOST_VALUES = 1 << _BITS
"""The numbers of three values fit into one integer of 64 bits."""


class TooManyValuesError(ValueError):
    """There are more different values than can be numbered. Lower bounds have fewer."""


class Values:
    """Gives every value a number. Equal values of one class are one value. Raises `TooManyValuesError`."""

    def __init__(self) -> None:
        self.known: list[Value] = []
        self._numbers: dict[tuple[type, Value], int] = {}

    def number(self, value: Value) -> int:
        number = self._numbers.setdefault((type(value), value), len(self.known))
        if number == len(self.known):
            if number == MOST_VALUES:
                raise TooManyValuesError(f"more than {MOST_VALUES:,} different values of columns and registers")
            self.known.append(value)
        return number


@dataclass(frozen=True, slots=True)
class Ends:
    """Every way through a chain from the rows it was followed for, sorted by the row, then by the alternatives."""

    origins: Positions
    """For each end, the position of the row in which it began."""
    registers: dict[str, Numbers]
    """For each end, the values of the registers that were asked for."""


class Follower:
    """Follows chains through matrices of rows, and caches all results of the look-up functions."""

    def __init__(self, system: System) -> None:
        self._index = system.index
        self.values = Values()
        self._tables: dict[tuple[object, int, int], _Table] = {}

    def numbers(self, row: Iterable[Value]) -> Numbers:
        return np.array([self.values.number(value) for value in row], np.int32)

    def follow(self, lookups: Sequence[Lookup], columns: Numbers, wanted: Iterable[str]) -> Ends:
        """`columns`: a matrix with one line for each column of the system and one value in it for each row."""
        origins = np.arange(columns.shape[1])
        made: dict[str, Numbers] = {}

        def read(register: str) -> Numbers:
            return made[register] if register in made else columns[self._index[register]][origins]

        for lookup in lookups:
            ways, alternatives = self._table(lookup).look_up([read(register) for register in lookup.reads])
            origins = origins[ways]
            made = {register: numbers[ways] for register, numbers in made.items()}
            made.update(zip(lookup.writes, alternatives, strict=True))
            if not len(origins):
                return Ends(origins, {register: np.empty(0, np.int32) for register in wanted})
        return Ends(origins, {register: read(register) for register in wanted})

    def _table(self, lookup: Lookup) -> _Table:
        key = (lookup.function, len(lookup.reads), len(lookup.writes))
        if key not in self._tables:
            self._tables[key] = _Table(lookup, self.values)
        return self._tables[key]


class _Table:
    """One look-up function: for each combination of values that was asked for, where its alternatives lie."""

    def __init__(self, lookup: Lookup, values: Values) -> None:
        self._lookup = lookup
        self._values = values
        self._entries: dict[int, int] = {}
        self._starts = [0]
        self._written: list[list[int]] = [[] for _ in lookup.writes]
        self._entry_of = np.empty(0, np.int64)
        self._freeze()

    def look_up(self, reads: Sequence[Numbers]) -> tuple[Positions, list[Numbers]]:
        """For each alternative: the position in `reads` that it belongs to; and for each register, what it writes."""
        entries = self._of_one(reads[0]) if len(reads) == 1 else self._of_several(reads)
        counts = self._counts[entries]
        ways = np.repeat(np.arange(len(entries)), counts)
        first = np.cumsum(counts) - counts
        lies = (self._start[entries] - first)[ways] + np.arange(len(ways))
        return ways, [written[lies] for written in self._alternatives]

    def _of_one(self, read: Numbers) -> Positions:
        """With one register, its value's number is the position in a dense table."""
        if len(self._entry_of) < len(self._values.known):
            more = np.full(2 * len(self._values.known) - len(self._entry_of), -1)
            self._entry_of = np.concatenate([self._entry_of, more])
        entries = self._entry_of[read]
        if len(entries) and entries.min() < 0:
            missing = np.unique(read[entries < 0])
            self._entry_of[missing] = self._ask(missing)
            entries = self._entry_of[read]
        return entries

    def _of_several(self, reads: Sequence[Numbers]) -> Positions:
        keys = reads[0].astype(np.int64)
        for read in reads[1:]:
            keys = (keys << _BITS) | read
        different, position = np.unique(keys, return_inverse=True)
        return self._ask(different)[position]

    def _ask(self, keys: Positions | Numbers) -> Positions:
        """The entries of packed keys; the function is called for those that are new."""
        known = len(self._entries)
        entries = [self._entries.setdefault(key, len(self._entries)) for key in keys.tolist()]
        if len(self._entries) > known:
            for key, entry in zip(keys.tolist(), entries, strict=True):
                if entry >= known:
                    self._add(key)
            self._freeze()
        return np.array(entries, np.int64)

    def _add(self, key: int) -> None:
        shifts = range(_BITS * (len(self._lookup.reads) - 1), -1, -_BITS)
        arguments = [self._values.known[key >> shift & MOST_VALUES - 1] for shift in shifts]
        alternatives = self._lookup.function(*arguments)
        for alternative in alternatives:
            if len(alternative) != len(self._written):
                raise ContradictionError(
                    f"the look-up {self._lookup.guard!r} gave {len(alternative)} values for the registers"
                    f" {', '.join(self._lookup.writes) or '(none)'}; it must give one for each"
                )
            for written, value in zip(self._written, alternative, strict=True):
                written.append(self._values.number(value))
        self._starts.append(self._starts[-1] + len(alternatives))

    def _freeze(self) -> None:
        starts = np.array(self._starts, np.int64)
        self._start, self._counts = starts[:-1], np.diff(starts)
        self._alternatives = [np.array(written, np.int32) for written in self._written]
