"""Exploration: the properties of a profile, decided within bounds.

The search itself is generic (`search/`); here the bounded cluster is handed to it, and what comes back is told in the
words of the protocol: a property holds, is broken by this run, or was never reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.view import Situation, difference, situation_of
from distro_model.profiles import Profile
from distro_model.properties import PROPERTIES, Property
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits, Run, Search, Watch, never_stop
from distro_model.search.system import Kind, System
from distro_model.transitions import OnLink, Transition

Engine = Callable[[System, Limits, Watch], Search]


@dataclass(frozen=True, slots=True)
class CounterexampleStep:
    """One named transition, and every line of the state that it changed."""

    transition: Transition
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.transition), *(f"    {change}" for change in self.changes)])


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest run from the beginning to what was found. Also the witness of a `sometimes`."""

    property_id: str
    found: str
    bounds: Bounds
    steps: tuple[CounterexampleStep, ...]
    last: Situation
    run: Run = field(repr=False, compare=False)

    @property
    def last_call(self) -> OnLink | None:
        """The last transition, when it is one in which a sender hears how its call ended."""
        transition = self.steps[-1].transition if self.steps else None
        return transition if isinstance(transition, OnLink) and transition.outcome is not None else None

    def __str__(self) -> str:
        loop = self.run.loop_from
        numbered = [f"{number:3}. {step}" for number, step in enumerate(self.steps, start=1)]
        if loop is not None:
            numbered.insert(loop, "  -- from here on, again and again:")
        return "\n".join([*numbered, f"{self.property_id}: {self.found}"])


@dataclass(frozen=True, slots=True)
class Result:
    """One property over one exploration.

    `holds` is None when there is nothing to decide, or the search was stopped before it knew.
    """

    name: str
    kind: Kind
    holds: bool | None
    counterexample: Counterexample | None
    witness: Counterexample | None = None
    applies: bool = True
    """False: the bounds do not allow for what it speaks about, so there is nothing to decide."""


@dataclass(frozen=True, slots=True)
class Exploration:
    search: Search
    results: tuple[Result, ...]
    kinds: Mapping[str, str]
    """Chain name -> the kind of transition that it makes."""

    @property
    def complete(self) -> bool:
        return self.search.complete

    @property
    def distinct_states(self) -> int:
        return self.search.distinct_states

    @property
    def transitions(self) -> int:
        return self.search.transitions

    @property
    def holds(self) -> bool:
        """Everything that the bounds speak about was decided, and holds."""
        return self.complete and all(result.holds is not False for result in self.results)

    def result(self, name: str) -> Result:
        return next(result for result in self.results if result.name == name)


def explore(
    bounds: Bounds,
    profile: Profile,
    properties: Iterable[Property] = tuple(PROPERTIES.values()),
    watch: Watch = never_stop,
    engine: Engine = search_readably,
    *,
    max_memory_bytes: int | None = None,
    symmetric: bool = False,
) -> Exploration:
    """Search until everything was seen, a limit is reached, or `watch` says so.

    Raises NoSymmetryError when `symmetric` is asked for and would be unsound.
    """
    wanted = tuple(properties)
    system = bounded_cluster(bounds, profile, wanted, symmetric=symmetric)
    search = engine(system, Limits(bounds.max_states, max_memory_bytes), watch)
    results = tuple(_result(each, search, bounds) for each in wanted)
    return Exploration(search, results, {chain.name: chain.kind for chain in system.chains})


def _result(checked: Property, search: Search, bounds: Bounds) -> Result:
    run = search.runs.get(checked.id)
    found = None if run is None else counterexample_of(run, bounds)
    applies = checked.applies(bounds)
    decided = applies and search.complete and checked.kind is not Kind.EVENTUALLY
    if checked.kind is Kind.SOMETIMES:
        return Result(checked.id, checked.kind, True if found else (False if decided else None), None, found, applies)
    return Result(checked.id, checked.kind, False if found else (True if decided else None), found, None, applies)


def counterexample_of(run: Run, bounds: Bounds) -> Counterexample:
    situations = [situation_of(row, bounds) for row in run.rows]
    steps = tuple(
        CounterexampleStep(_labelled(transition.label), tuple(difference(before, after)))
        for transition, before, after in zip(run.transitions, situations, situations[1:], strict=False)
    )
    return Counterexample(run.finding.property_id, run.finding.what, bounds, steps, situations[-1], run)


def _labelled(label: object) -> Transition:
    assert isinstance(label, Transition)  # every chain of the bounded cluster says what it does
    return label
