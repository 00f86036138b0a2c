"""Breadth-first search over every reachable situation of a bounded cluster.

Readable before fast: one queue, one table from each situation to the one it was first reached from. Breadth-first, so
that the run printed for a violation, or for a thing found, is one of the shortest. The search goes on after a
violation, so that counts do not depend on what holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from distro_model.messages import text_of
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.properties import PROPERTIES, Kind, Property
from distro_model.transitions import Transition
from distro_model.untimed import Bounds, Move, Situation, beginning, moves, take

STOP_IS_ASKED_EVERY = 256


@dataclass(frozen=True, slots=True)
class CounterexampleStep:
    """One named transition, and every line of the state that it changed."""

    transition: Transition
    changes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.transition), *(f"    {change}" for change in self.changes)])


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest run from the beginning to a move that shows `found`. Also the witness of a `sometimes`."""

    property_id: str
    found: str
    bounds: Bounds
    steps: tuple[CounterexampleStep, ...]
    last: Move

    def __str__(self) -> str:
        numbered = [f"{number:3}. {step}" for number, step in enumerate(self.steps, start=1)]
        return "\n".join([*numbered, f"{self.property_id}: {self.found}"])


@dataclass(frozen=True, slots=True)
class Result:
    """One property over one exploration.

    `holds` is None when the bounds do not allow for what it speaks about, or the search was stopped before it knew.
    """

    name: str
    kind: Kind
    holds: bool | None
    counterexample: Counterexample | None
    """The run that breaks an `always`."""
    witness: Counterexample | None
    """The run that reaches a `sometimes`."""


@dataclass(frozen=True, slots=True)
class Exploration:
    complete: bool
    distinct_states: int
    transitions: int
    results: tuple[Result, ...]

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
    stop: Callable[[], bool] = lambda: False,
) -> Exploration:
    """Search until everything was seen, `max_states` are known, or `stop()` says so (asked now and then)."""
    wanted = tuple(properties)
    open_properties = [each for each in wanted if each.applies(bounds)]
    first = beginning(bounds, profile)
    reached_from: dict[Situation, tuple[Situation, Transition] | None] = {first: None}
    found: dict[str, Counterexample] = {}
    frontier = deque([first])
    transitions = expanded = 0
    complete = True
    while frontier:
        expanded += 1
        if len(reached_from) > bounds.max_states or (expanded % STOP_IS_ASKED_EVERY == 0 and stop()):
            complete = False
            break
        situation = frontier.popleft()
        for move in moves(situation, bounds):
            transitions += 1
            if move.after not in reached_from and move.transition is not None:
                reached_from[move.after] = (situation, move.transition)
                frontier.append(move.after)
            for each in tuple(open_properties):
                what = each.finds(move)
                if what is not None:
                    found[each.id] = _counterexample(each, what, bounds, move, reached_from)
                    open_properties.remove(each)
    results = tuple(_result(each, found.get(each.id), each in open_properties, complete) for each in wanted)
    return Exploration(complete, len(reached_from), transitions, results)


def _result(checked: Property, found: Counterexample | None, is_open: bool, complete: bool) -> Result:
    if checked.kind is Kind.SOMETIMES:
        holds = True if found else (False if is_open and complete else None)
        return Result(checked.id, checked.kind, holds, None, found)
    holds = False if found else (True if is_open and complete else None)
    return Result(checked.id, checked.kind, holds, found, None)


def _counterexample(
    broken: Property,
    what: str,
    bounds: Bounds,
    move: Move,
    reached_from: dict[Situation, tuple[Situation, Transition] | None],
) -> Counterexample:
    path = [move]
    while (origin := reached_from[path[-1].before]) is not None:
        path.append(take(*origin))
    steps = tuple(
        CounterexampleStep(each.transition, tuple(state_difference(each.before, each.after)))
        for each in reversed(path)
        if each.transition is not None
    )
    return Counterexample(broken.id, what, bounds, steps, move)


def state_difference(before: Situation, after: Situation) -> Iterable[str]:
    """The lines that a transition takes away (-) and adds (+), node by node and link by link."""
    old, new = list(_lines(before)), list(_lines(after))
    yield from (f"- {line}" for line in old if line not in new)
    yield from (f"+ {line}" for line in new if line not in old)


def _lines(situation: Situation) -> Iterable[str]:
    cluster = situation.cluster
    for name, node in zip(cluster.plan.names, cluster.nodes, strict=True):
        yield f"{name}: down" if node is None else f"{name}: {'loaded' if node.loaded else 'not loaded'}"
        if node is not None:
            yield from (f"{name}: {line}" for line in _node_lines(node))
    for source, target in cluster.plan.pairs:
        link = cluster.links[source * len(cluster.plan.names) + target]
        for call in link.calls:
            where = f"{cluster.plan.names[source]}->{cluster.plan.names[target]}"
            yield f"{where}: {call.request}{' (lost)' if call.lost else ''}"


def _node_lines(node: NodeState) -> Iterable[str]:
    for client in node.clients:
        kind = "native" if client.native else "synced"
        yield f"{client.name} {kind}, revision {client.revision}, {text_of(client.content)}"
    for task in node.tasks:
        yield f"{task.action} task of {task.client} for {task.target}"
