"""The systems that a search explores: a state is a row of columns, and a transition is a short chain of look-ups.

A column holds one immutable, hashable value: the state of a node, the calls on a link, the life of a client, the rest
of a budget. A transition reads and writes few columns, and each of its steps even fewer. So a transition is written as
a *chain* of *look-ups*: pure functions from at most three registers to new registers. First the registers are the
columns of the row. A look-up returns several alternatives (a choice of the environment), exactly one (a rule), or none
(a guard that forbids the transition). A chain never writes a register twice. Its `result` names the registers whose
values become columns of the next row.

Why look-ups and not one function from row to rows: a register has few different values, even with many millions of
rows. An engine can number the values, call each function once for each combination of numbers, and afterwards only read
tables (`engine.py`). Each guard also has a name, which the report of transitions that were never taken uses. The
function `outcomes` below defines the meaning of a chain in ten lines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

Value = Hashable
Row = tuple[Value, ...]
Alternative = tuple[Value, ...]
Registers = Mapping[str, Value]

MOST_READS = 3


class ContradictionError(ValueError):
    """The system contradicts itself. The message names the chain and the register."""


class Kind(StrEnum):
    ALWAYS = "always"
    SOMETIMES = "sometimes"
    EVENTUALLY = "eventually"


NO_GUARD = "never"
"""The `guard` of a look-up that always has an alternative."""


class Fairness(Enum):
    """The assumption about when a possible transition happens."""

    NONE = "may never happen"  # faults, and actions of clients
    WEAK = "happens if it stays possible"  # timers
    STRONG = "happens if it is possible again and again"  # deliveries, queued tasks


@dataclass(frozen=True, slots=True)
class Lookup:
    """`function` gets the values of `reads` and returns the alternatives; each is a tuple of values for `writes`.

    Look-ups with the same `function` object share one table, so use the same object wherever the meaning is the same
    (a closure made for each chain has a table of its own). The function must be pure.
    """

    guard: str
    """What it means that there is no alternative, as a clause: "the link is empty"."""
    function: Callable[..., Sequence[Alternative]]
    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a property, in a transition or in a state. `what` is a sentence."""

    property_id: str
    what: str


def findings_in(value: Value) -> tuple[Finding, ...]:
    """The result of an alarm: none, one finding, or a tuple of them."""
    if isinstance(value, Finding):
        return (value,)
    return tuple(each for each in value if isinstance(each, Finding)) if isinstance(value, tuple) else ()


def _unnamed(_: Registers) -> object:
    return None


@dataclass(frozen=True, slots=True)
class Chain:
    """One kind of transition at one place. `name` is unique in its system; `kind` is the part without the place.

    `says` makes the label of a transition from all registers; it is called for counterexamples and graphs only.
    `alarms` are registers that hold a `Finding`, a tuple of them, or None where there is nothing to report.
    """

    name: str
    kind: str
    lookups: tuple[Lookup, ...]
    result: Mapping[str, str]
    says: Callable[[Registers], object] = _unnamed
    alarms: tuple[str, ...] = ()
    fair: Fairness = Fairness.NONE

    @property
    def is_fair(self) -> bool:
        return self.fair is not Fairness.NONE


@dataclass(frozen=True, slots=True)
class Check:
    """A property of states, as a chain over the columns of one row; the finding is in the register `found`.

    If an alternative reaches the end of the chain, this means, for ALWAYS: a violation. For SOMETIMES: the row is one
    of those that must exist. For EVENTUALLY: the row has *not* reached the goal, and a fair run that stays in such rows
    for ever violates the property. Properties of transitions are alarms of chains; here they have an empty chain.
    """

    property_id: str
    kind: Kind
    lookups: tuple[Lookup, ...] = ()
    found: str | None = None
    """The register with the `Finding` of this property, for every check that has look-ups."""

    @property
    def is_of_rows(self) -> bool:
        """Whether the property is decided in single rows."""
        return self.found is not None and self.kind is not Kind.EVENTUALLY


@dataclass(frozen=True)
class System:
    columns: tuple[str, ...]
    initial: Row
    chains: tuple[Chain, ...]
    checks: tuple[Check, ...] = ()
    index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {name: position for position, name in enumerate(self.columns)})
        if len(self.initial) != len(self.columns) or len(self.index) != len(self.columns):
            raise ContradictionError(
                "a system needs one initial value for each column, and columns with different names"
            )
        if len({chain.name for chain in self.chains}) != len(self.chains):
            raise ContradictionError("two chains have the same name")
        for chain in self.chains:
            self._validate(chain.name, chain.lookups, (*chain.result.values(), *chain.alarms))
            unknown = [column for column in chain.result if column not in self.index]
            if unknown:
                raise ContradictionError(f"chain {chain.name}: there is no column {unknown[0]}")
        for check in self.checks:
            self._validate(check.property_id, check.lookups, () if check.found is None else (check.found,))

    def _validate(self, name: str, lookups: tuple[Lookup, ...], needed: tuple[str, ...]) -> None:
        known = set(self.columns)
        for lookup in lookups:
            if not 1 <= len(lookup.reads) <= MOST_READS:
                raise ContradictionError(
                    f"chain {name}: a look-up reads 1 to {MOST_READS} registers, not {lookup.reads}"
                )
            for register in lookup.reads:
                if register not in known:
                    raise ContradictionError(f"chain {name}: {register} is read before it is written")
            for register in lookup.writes:
                if register in known:
                    raise ContradictionError(f"chain {name}: {register} is written twice")
                known.add(register)
        for register in needed:
            if register not in known:
                raise ContradictionError(f"chain {name}: nothing writes {register}")


@dataclass(frozen=True, slots=True)
class Transition:
    """One outcome of one chain: the next row, the label, and the findings of the alarms."""

    chain: Chain
    after: Row
    label: object
    findings: tuple[Finding, ...]


def outcomes(lookups: Sequence[Lookup], registers: dict[str, Value]) -> Iterator[Registers]:
    """Every way through a chain: the registers at its end. This is the meaning of a chain."""
    if not lookups:
        yield registers
        return
    lookup, *rest = lookups
    for alternative in lookup.function(*(registers[name] for name in lookup.reads)):
        yield from outcomes(rest, {**registers, **dict(zip(lookup.writes, alternative, strict=True))})


def transitions(system: System, row: Row) -> Iterator[Transition]:
    """All possible transitions, chain by chain, alternative by alternative."""
    for chain in system.chains:
        for end in outcomes(chain.lookups, dict(zip(system.columns, row, strict=True))):
            yield transition(system, chain, row, end)


def transition(system: System, chain: Chain, row: Row, end: Registers) -> Transition:
    """The outcome of the row when the chain ends with these registers."""
    after = list(row)
    for column, register in chain.result.items():
        after[system.index[column]] = end[register]
    alarms = tuple(found for name in chain.alarms for found in findings_in(end[name]))
    return Transition(chain, tuple(after), chain.says(end), alarms)


def findings(system: System, row: Row) -> Iterator[Finding]:
    """The findings of the checks of states in one row, without EVENTUALLY, which needs more than one row."""
    for check in system.checks:
        if check.found is not None and check.is_of_rows:
            for end in outcomes(check.lookups, dict(zip(system.columns, row, strict=True))):
                found = end[check.found]
                if isinstance(found, Finding):
                    yield found
                    break
