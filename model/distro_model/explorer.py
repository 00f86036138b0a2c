"""Exploration: the properties of a profile, decided within bounds.

The search itself is generic (`search/`); this module passes the bounded cluster to it, and reports the result in the
terms of the protocol: a property holds, is broken by this run, or was never reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.view import Situation, difference, situation_of
from distro_model.profiles import Profile
from distro_model.properties import PROPERTIES, Property
from distro_model.search.results import Limits, Run, Search, Watch, never_stop
from distro_model.search.system import Kind, System
from distro_model.transitions import Transition, labelled

Engine = Callable[[System, Limits, Watch], Search]


def search_compiled(system: System, limits: Limits = Limits(), watch: Watch = never_stop) -> Search:
    """The fast search. Loading its compiled loops takes a third of a second, so they are loaded by the first search."""
    from distro_model.search.engine import search  # noqa: PLC0415

    return search(system, limits, watch)


LIVENESS_STATES = 5_000_000
"""The limit of states for the graph on which `eventually` is decided; a state takes some hundred bytes there."""

VACUOUS = "nothing can happen within these bounds: one state and no transition"


@dataclass(frozen=True, slots=True)
class CounterexampleStep:
    """One named transition, and every line of the state that it changed."""

    transition: Transition
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.transition), *(f"    {change}" for change in self.changes)])


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest run from the beginning to the finding. Also the witness of a `sometimes`."""

    property_id: str
    found: str
    bounds: Bounds
    steps: tuple[CounterexampleStep, ...]
    last: Situation
    run: Run = field(repr=False, compare=False)

    def __str__(self) -> str:
        loop = self.run.loop_from
        numbered = [f"{number:3}. {step}" for number, step in enumerate(self.steps, start=1)]
        if loop is not None:
            numbered.insert(loop, "  -- from here on, again and again:")
        return "\n".join([*numbered, f"{self.property_id}: {self.found}"])


@dataclass(frozen=True, slots=True)
class Result:
    """One property over one exploration.

    `holds` is None when there is nothing to decide, or the search was stopped before the property was decided.
    """

    name: str
    kind: Kind
    holds: bool | None
    counterexample: Counterexample | None
    witness: Counterexample | None = None
    applies: bool = True
    """False: the bounds do not allow its subject, so there is nothing to decide."""
    undecided: str | None = None
    """Why `holds` is None although it applies."""


@dataclass(frozen=True, slots=True)
class Exploration:
    search: Search
    results: tuple[Result, ...]
    system: System = field(repr=False)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Chain name -> the kind of transition that it makes."""
        return {chain.name: chain.kind for chain in self.system.chains}

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
    def vacuous(self) -> bool:
        """There was no transition, so that nothing was checked."""
        return self.complete and not self.transitions

    @property
    def holds(self) -> bool | None:
        """True: all properties that apply within the bounds were decided, and hold. False: one is broken. None: some
        were not decided, or none applies."""
        asked = [result.holds for result in self.results if result.applies]
        if False in asked:
            return False
        return True if asked and None not in asked and not self.vacuous else None

    def result(self, name: str) -> Result:
        return next(result for result in self.results if result.name == name)


def explore(
    bounds: Bounds,
    profile: Profile,
    properties: Iterable[Property] = tuple(PROPERTIES.values()),
    watch: Watch = never_stop,
    engine: Engine = search_compiled,
    *,
    max_memory_bytes: int | None = None,
) -> Exploration:
    """Search until every state is visited, a limit is reached, or `watch` stops it; then decide liveness."""
    wanted = tuple(properties)
    system = bounded_cluster(bounds, profile, wanted)
    search = engine(system, Limits(bounds.max_states, max_memory_bytes), watch)
    undecided = None
    if any(each.kind is Kind.EVENTUALLY and each.applies(bounds) for each in wanted):
        search, undecided = _with_liveness(system, search, watch)
    results = tuple(_result(each, search, bounds, undecided) for each in wanted)
    return Exploration(search, results, system)


def _with_liveness(system: System, search: Search, watch: Watch) -> tuple[Search, str | None]:
    """The search with lassos, or the unchanged search and the reason why `eventually` is not decided."""
    if not search.complete:
        return search, "the search was stopped before this was decided"
    if search.distinct_states > LIVENESS_STATES:
        size = f"{search.distinct_states:,} states, liveness is decided up to {LIVENESS_STATES:,}"
        return search, f"{size}: take fewer changes or clients"
    from distro_model.search.graph import NoGraphError, state_graph  # noqa: PLC0415 - arrays are loaded when needed
    from distro_model.search.liveness import with_liveness  # noqa: PLC0415

    try:
        graph = state_graph(system, LIVENESS_STATES, watch)
    except NoGraphError as reason:
        return search, str(reason)
    return with_liveness(search, graph), None


def _result(checked: Property, search: Search, bounds: Bounds, lasting_undecided: str | None) -> Result:
    run = search.runs.get(checked.id)
    found = None if run is None else counterexample_of(run, bounds)
    applies = checked.applies(bounds)
    reason = None if search.complete else "the search was stopped before this was decided"
    if checked.kind is Kind.EVENTUALLY:
        reason = lasting_undecided
    if search.complete and not search.transitions and checked.kind is not Kind.SOMETIMES:
        reason = VACUOUS
    decided = applies and reason is None
    reason = None if found or not applies else reason
    if checked.kind is Kind.SOMETIMES:
        holds = True if found else (False if decided else None)
        return Result(checked.id, checked.kind, holds, None, found, applies, reason)
    holds = False if found else (True if decided else None)
    return Result(checked.id, checked.kind, holds, found, None, applies, reason)


def counterexample_of(run: Run, bounds: Bounds) -> Counterexample:
    situations = [situation_of(row, bounds) for row in run.rows]
    steps = tuple(
        CounterexampleStep(labelled(transition.label), tuple(difference(before, after)))
        for transition, before, after in zip(run.transitions, situations, situations[1:], strict=False)
    )
    return Counterexample(run.finding.property_id, run.finding.what, bounds, steps, situations[-1], run)
