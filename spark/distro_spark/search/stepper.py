"""Expanding rows inside one Spark task.

Tasks do not share memory, so a value's number must not depend on who saw it first: it is a hash of the value's text.
A row is the numbers of its columns, packed into bytes. A task knows the values that the levels before it have met
(broadcast); a value that it meets first it reports, with the value itself, and the driver makes it known to all.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from distro_model.search.system import Chain, Check, Finding, Kind, Lookup, System, Value, findings_in

MASK = (1 << 64) - 1
Number = int
Refuse = Callable[[int], None]
Alternatives = tuple[tuple[Number, ...], ...]


class ValueCollisionError(RuntimeError):
    """Two different values have the same number: change `SALT`. Expected once in some billions of distinct values."""


def number_of(value: Value) -> Number:
    """64 bits of the value's text; equal values have equal texts, for all values of a model are plain data."""
    return int.from_bytes(blake2b(repr(value).encode(), digest_size=8).digest(), "little", signed=True)


def packed(numbers: Sequence[Number]) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)


def unpacked(row: bytes) -> tuple[Number, ...]:
    return struct.unpack(f"<{len(row) // 8}q", row)


def fingerprint(numbers: Sequence[Number]) -> int:
    """A sum of one well-mixed 64-bit number for each (column, value), as a signed integer for Spark."""
    total = sum(_mixed(number ^ (0x9E3779B97F4A7C15 * (column + 1))) for column, number in enumerate(numbers)) & MASK
    return total - (1 << 64) if total >> 63 else total


def _mixed(number: int) -> int:
    """The finaliser of SplitMix64."""
    number &= MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


@dataclass
class Found:
    """What a task reports besides rows."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, int]] = field(default_factory=Counter)
    values: dict[Number, Value] = field(default_factory=dict)
    findings: dict[str, tuple[Finding, int, int]] = field(default_factory=dict)
    """Property id -> the finding, the row (fingerprint) it was seen in or from, and the row it leads to."""
    calls: int = 0


class Stepper:
    """A system and the values known so far. Look-ups are called once for each combination of numbers in a task."""

    def __init__(self, system: System, known: Mapping[Number, Value]) -> None:
        self.system = system
        self.values = dict(known)
        self.known = known
        self.numbers: dict[Value, Number] = {}
        self.tables: dict[tuple[Hashable, ...], Alternatives] = {}
        self.found = Found()

    def row(self, values: Iterable[Value]) -> tuple[Number, ...]:
        return tuple(self.number(value) for value in values)

    def number(self, value: Value) -> Number:
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = number_of(value)
            if self.values.setdefault(number, value) != value:
                raise ValueCollisionError(f"{value!r} and {self.values[number]!r} have the same number")
            if number not in self.known:
                self.found.values[number] = value
        return number

    def successors(self, row: tuple[Number, ...], of: int) -> Iterator[tuple[Number, ...]]:
        """Every row that may come next; `of` is the fingerprint of this one. Its checks are looked at on the way."""
        registers = dict(zip(self.system.columns, row, strict=True))
        for check in self.system.checks:
            if check.kind is not Kind.EVENTUALLY:
                self._look_at(check, registers, of)
        for chain in self.system.chains:
            for end in self._ends(chain.lookups, registers, self._refuser(chain)):
                after = list(row)
                for column, register in chain.result.items():
                    after[self.system.index[column]] = end[register]
                self.found.taken[chain.name] += 1
                self._raise_alarms(chain, end, of, after)
                yield tuple(after)

    def _refuser(self, chain: Chain) -> Refuse:
        def refuse(position: int) -> None:
            self.found.refused[chain.name, position] += 1

        return refuse

    def _look_at(self, check: Check, registers: dict[str, Number], of: int) -> None:
        if check.found is None or check.property_id in self.found.findings:
            return
        for end in self._ends(check.lookups, registers, lambda _: None):
            finding = self.values[end[check.found]]
            if isinstance(finding, Finding):
                self.found.findings.setdefault(finding.property_id, (finding, of, of))

    def _raise_alarms(self, chain: Chain, end: Mapping[str, Number], of: int, after: list[Number]) -> None:
        for register in chain.alarms:
            for finding in findings_in(self.values[end[register]]):
                if finding.property_id not in self.found.findings:
                    self.found.findings[finding.property_id] = (finding, of, fingerprint(after))

    def _ends(
        self,
        lookups: tuple[Lookup, ...],
        registers: dict[str, Number],
        refuse: Refuse,
        position: int = 0,
    ) -> Iterator[dict[str, Number]]:
        if position == len(lookups):
            yield registers
            return
        lookup = lookups[position]
        alternatives = self._alternatives(lookup, tuple(registers[name] for name in lookup.reads))
        if not alternatives:
            refuse(position)
        for alternative in alternatives:
            after = {**registers, **dict(zip(lookup.writes, alternative, strict=True))}
            yield from self._ends(lookups, after, refuse, position + 1)

    def _alternatives(self, lookup: Lookup, numbers: tuple[Number, ...]) -> Alternatives:
        key = (lookup.function, *numbers)
        known = self.tables.get(key)
        if known is None:
            self.found.calls += 1
            results = lookup.function(*(self.values[number] for number in numbers))
            known = self.tables[key] = tuple(self.row(alternative) for alternative in results)
        return known


def frozen(value: object) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
