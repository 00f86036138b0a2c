"""Shrinking of a failing run, on the action language: fewer steps, fewer nodes, one wait instead of four.

Hypothesis draws numbers and does not know the meaning of an action; this module does. A candidate is the run with
actions removed, merged or shortened, and it is kept when it still fails. Actions that are no longer possible in it (the
request of a client that does not connect) are removed as well. A mutant that the model has too is tried there
first, where a run costs milliseconds. The result is tried on the nodes before it counts, and is then shrunk on them
while there is time, in memory where it fails there too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from distro_conformance.drivers.lockstep import DivergedError, LostError
from distro_conformance.walks.driver import Lockstep
from distro_conformance.wire.transports import IN_MEMORY, TransportKind, Wire
from distro_model.actions import (
    Action,
    Advance,
    BaseLinkAction,
    Deregister,
    Drop,
    Hold,
    Register,
    RegisterBatch,
    Swallow,
)
from distro_model.clock.cluster import observe, prologue, start
from distro_model.mutants import UnknownMutantError, with_mutant
from distro_model.possible import PossibleStates, Rejection
from distro_model.profiles import beside_nodes, profile_named

NODES_MIN = 2
WAITS_MS = (100, 1_000, 1_100, 2_000, 3_000, 5_000, 6_000, 10_000, 15_000)
"""Waits that a person would write: the tick, the sync delay with and without it, retry, verify, and repairs."""

PERIOD_MS = 5_000
"""The period of verify rounds: without whole periods a wait ends at the same point between two rounds."""


@dataclass(frozen=True, slots=True)
class Run:
    nodes: tuple[str, ...]
    actions: tuple[Action, ...]


Fails = Callable[[Run], Run | None]
"""The run up to its failure, without actions that were not possible; None when it does not fail."""


@dataclass
class OnNodes:
    """Runs on embedded nodes beside the model. `error` is the error of the last run that failed."""

    profile: str
    mutant: str | None
    wire: Wire
    on_run: Callable[[Run], None] = lambda _: None
    serves_http: bool = False
    among_played: bool = False
    """The first node is under test. Other runs are tried first on the model with the mutant, beside the model without
    it."""
    error: DivergedError | None = None

    def __call__(self, run: Run) -> Run | None:
        done: list[Action] = []
        self.on_run(run)
        try:
            with Lockstep(
                run.nodes,
                self.profile,
                self.mutant,
                self.wire,
                serves_http=self.serves_http,
                among_played=self.among_played,
            ) as driver:
                for action in run.actions:
                    if not driver.forbidden(action):
                        done.append(action)
                        driver.perform(action)
        except DivergedError as error:
            self.error = error
            return replace(run, actions=tuple(done))
        except LostError:
            return None
        return None


class OnModel:
    """Runs on the model with the mutant beside the model without. Raises UnknownMutantError where it has none."""

    def __init__(self, profile: str, mutant: str) -> None:
        self._profile = beside_nodes(profile_named(profile))
        self._changed = with_mutant(self._profile, mutant)
        self._begun: dict[tuple[str, ...], tuple[PossibleStates, PossibleStates]] = {}

    def __call__(self, run: Run) -> Run | None:
        plain, changed = self._beginning(run.nodes)
        done: list[Action] = []
        for action in run.actions:
            if plain.guard(action) or changed.guard(action):
                continue
            done.append(action)
            plain, changed = plain.after(action), changed.after(action)
            seen = changed.outcomes[0]
            allowed = plain.matching(observe(seen.state), seen.traffic)
            if isinstance(allowed, Rejection):
                return replace(run, actions=tuple(done))
            plain, changed = allowed, PossibleStates((seen,), action)
        return None

    def _beginning(self, nodes: tuple[str, ...]) -> tuple[PossibleStates, PossibleStates]:
        if nodes not in self._begun:
            plain, changed = (
                PossibleStates.of(start(nodes, self._profile)),
                PossibleStates.of(start(nodes, self._changed)),
            )
            for action in prologue(nodes, self._profile):
                plain, changed = plain.after(action), changed.after(action)
            self._begun[nodes] = plain, changed
        return self._begun[nodes]


def shrink(run: Run, on_nodes: OnNodes, *, seconds: float) -> Run | None:
    """The smallest failing run that was reached, with its error in `on_nodes.error`; None when it no longer fails."""
    until_s = time.monotonic() + seconds
    best = _in_memory(run, on_nodes) or on_nodes(run)
    if best is None:
        return None
    small = _smaller_on_model(best, on_nodes, until_s)
    return smallest((small and on_nodes(small)) or best, on_nodes, until_s)


def _in_memory(run: Run, on_nodes: OnNodes) -> Run | None:
    """Shrink in memory a run that fails there too: a run takes a tenth of the time."""
    given = on_nodes.wire
    if given.kind is TransportKind.MEMORY:
        return None
    on_nodes.wire = IN_MEMORY
    failed = on_nodes(run)
    if failed is None:
        on_nodes.wire = given
    return failed


def _smaller_on_model(run: Run, on_nodes: OnNodes, until_s: float) -> Run | None:
    if on_nodes.mutant is None or on_nodes.among_played:
        return None
    try:
        on_model = OnModel(on_nodes.profile, on_nodes.mutant)
    except UnknownMutantError:
        return None
    failed = on_model(run)
    return failed and smallest(failed, on_model, until_s)


def smallest(run: Run, fails: Fails, until_s: float) -> Run:
    """Repeat the passes until none removes anything or the time is over."""

    def tried(candidate: Run) -> Run | None:
        return None if time.monotonic() > until_s else fails(candidate)

    before = None
    while run != before:
        before = run
        run = _without_nodes(run, tried)
        run = _without_parts(tried(_merged(run)) or run, tried)
        for shorter in (_unheld, _sooner):
            while (found := next(filter(None, map(tried, shorter(run))), None)) is not None:
                run = found
    return run


def _without_nodes(run: Run, tried: Fails) -> Run:
    for node in reversed(run.nodes):
        if len(run.nodes) > NODES_MIN:
            left = tuple(action for action in run.actions if node not in _named(action))
            run = tried(Run(tuple(name for name in run.nodes if name != node), left)) or run
    return run


def _without_parts(run: Run, tried: Fails) -> Run:
    """Remove ever smaller parts, each with its waits or without: later actions may depend on the time."""
    size = len(run.actions) // 2
    while size:
        begin = 0
        while begin < len(run.actions):
            head, part, tail = run.actions[:begin], run.actions[begin : begin + size], run.actions[begin + size :]
            waits = tuple(action for action in part if isinstance(action, Advance))
            smaller = tried(replace(run, actions=head + tail))
            if smaller is None and 0 < len(waits) < len(part):
                smaller = tried(replace(run, actions=head + waits + tail))
            run, begin = (run, begin + size) if smaller is None else (smaller, begin)
        size //= 2
    return run


def _merged(run: Run) -> Run:
    """Merge consecutive waits."""
    merged: list[Action] = []
    for action in run.actions:
        if isinstance(action, Advance) and merged and isinstance(before := merged[-1], Advance):
            merged[-1] = Advance(before.ms + action.ms)
        else:
            merged.append(action)
    return replace(run, actions=tuple(merged))


def _unheld(run: Run) -> Iterator[Run]:
    """Replace all actions on a held link by the loss of one change."""
    for source, target in dict.fromkeys((each.source, each.target) for each in run.actions if isinstance(each, Hold)):
        left = [each for each in run.actions if (source, target) != _link_of(each)]
        if len(run.actions) - len(left) < 2:
            continue
        for at, action in enumerate(left):
            if isinstance(action, Register | RegisterBatch | Deregister):
                for lost in (Swallow(source, target, "CHANGE"), Drop(source, target, "CHANGE")):
                    yield replace(run, actions=(*left[:at], lost, *left[at:]))


def _link_of(action: Action) -> tuple[str, str] | None:
    return (action.source, action.target) if isinstance(action, BaseLinkAction) else None


def _sooner(run: Run) -> Iterator[Run]:
    """Try shorter waits, of those that a person would write."""
    for at, action in enumerate(run.actions):
        if isinstance(action, Advance):
            for ms in (each for each in (*WAITS_MS, action.ms % PERIOD_MS, action.ms // 2) if 0 < each < action.ms):
                yield replace(run, actions=(*run.actions[:at], Advance(ms), *run.actions[at + 1 :]))


def _named(action: Action) -> Sequence[object]:
    return [getattr(action, field.name) for field in fields(action)]
