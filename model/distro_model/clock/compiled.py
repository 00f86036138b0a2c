"""From a statement to one plain function on the mutable columns of a mutable cluster: what a clock calls.

A search asks each step once for each combination of values and keeps the answer; a clock runs every transition as
often as it happens. So the steps are written out as the lines of one function, without anything that looks up names:

    def deliver(cluster, source, target, call):
        event = arrival(call, names[source], now)
        answer = cluster.handle(target, event, call)
        event = end(call, answer, names[target], now)
        if event is None: return "it is still being handled"
        answer = cluster.handle(source, event, call)

It returns None, or the guard that was false. What a search chooses is a parameter here. Steps that record or watch are
left out. A guard that stands behind a change is one for which the caller takes a fork of the cluster (`is_tentative`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from distro_model.cluster.statement import Does, Step, Transition, changed_by, reads_of, written_by
from distro_model.search.system import NO_GUARD

NODES = {"node": "at", "source": "source", "target": "target", "home": "at", "asked": "asked", "handling": "handling"}
"""Parameter names of nodes -> where their position is."""

COLUMNS = {
    **{name: f"nodes[{at}]" for name, at in NODES.items()},
    "link": "links[source * size + target]",
    "life": "lives[client]",
}
FAMILIES = {
    "outgoing": ("for other in others[at]:", "links[at * size + other]"),
    "incoming": ("for other in others[at]:", "links[other * size + at]"),
    "every_node": ("for other in running(nodes):", "nodes[other]"),
    "life": ("for client in tuple(lives):", "lives[client]"),
    "home_client": ("for client in home_clients(lives, names[at]):", "lives[client]"),
}
CONSTANTS = {
    "now": "cluster.now_ms",
    "profile": "profile",
    "period": "0",
    "node_name": "names[at]",
    "source_name": "names[source]",
    "target_name": "names[target]",
    "asked_name": "names[asked]",
    "handling_name": "names[handling]",
    "others": "cluster.others(at)",
    "addresses": "cluster.plan.addresses",
}

Run = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Compiled:
    run: Run
    is_tentative: bool
    """A guard may be false after something has changed."""


@cache
def compiled(transition: Transition, *given: str) -> Compiled:
    """`given`: the parameters besides the cluster: positions, the name of a client, and what the chooser decides."""
    writer = _Writer(frozenset(given))
    for each in transition.steps:
        writer.add(each)
    name = "".join(letter if letter.isalnum() else "_" for letter in transition.kind)
    head = [f"def {name}(cluster, {', '.join(given)}):", *(f"    {line}" for line in _OPENING)]
    source = "\n".join([*head, *(f"    {line}" for line in writer.lines), "    return None"])
    scope: dict[str, Any] = {**writer.functions, "running": _running, "home_clients": _home_clients}
    exec(source, scope)
    return Compiled(scope[name], writer.is_tentative)


_OPENING = (
    "nodes, links, lives, size = cluster.nodes, cluster.links, cluster.lives, cluster.size",
    "names, profile, others = cluster.plan.names, cluster.plan.profile, cluster.plan.other_positions",
)


def _running(nodes: list[object]) -> list[int]:
    return [position for position, node in enumerate(nodes) if node is not None]


def _home_clients(lives: Mapping[str, Any], home: str) -> list[str]:
    return [client for client, life in lives.items() if life.home == home]


class _Writer:
    def __init__(self, given: frozenset[str]) -> None:
        self.given = given
        self.lines: list[str] = []
        self.functions: dict[str, Any] = {}
        self.has_changed = self.has_handled = self.is_tentative = False
        self.has_call = "call" in given

    def add(self, step: Step) -> None:
        if step.does in (Does.RECORDS, Does.WATCHES):
            return
        written = () if step.does is Does.HANDLES else tuple(written_by(step.function))
        if step.does is Does.CHOOSES and self.given.intersection(written):
            return
        names = (*reads_of(step.function), *written, *((step.handler,) if step.handler else ()))
        family = next((each for each in names if each in FAMILIES and not self.is_column(each)), None)
        indent = ""
        if family is not None:
            self.lines.append(FAMILIES[family][0])
            indent = "    "
        own = {} if family is None else {family: FAMILIES[family][1]}
        self.lines += [indent + line for line in self.of(step, written, own)]

    def is_column(self, name: str) -> bool:
        """Not of a family: the client is the one that the transition is about."""
        return name == "life" and "client" in self.given

    def of(self, step: Step, written: tuple[str, ...], own: Mapping[str, str]) -> list[str]:
        where = {**COLUMNS, **CONSTANTS, **own}
        for name in self.given:
            if name not in NODES.values() and name != "client":
                where[name] = name
        if step.does is Does.HANDLES and "event" in self.given and not self.has_handled:
            return self.handling(step, own)  # the first event is chosen, what follows from it is not
        function = f"step_{len(self.functions)}"
        self.functions[function] = step.function
        call = f"{function}({', '.join(where.get(name, name) for name in reads_of(step.function))})"
        if step.does is Does.HANDLES:
            return [f"event = {call}", *self.guarded("event is None", step), *self.handling(step, own)]
        if not written:
            return self.guarded(f"not {call}", step)
        lines = [f"result = {call}", *self.guarded("result is None", step)]
        for name in written:
            lines.append(f"{where.get(name, name)} = result{'' if changed_by(step.function) else f'.{name}'}")
            self.has_changed = self.has_changed or name in COLUMNS or name in own
            self.has_call = self.has_call or name == "call"
        return lines

    def handling(self, step: Step, own: Mapping[str, str]) -> list[str]:
        self.has_changed = self.has_handled = True
        handler = "other" if step.handler in own else NODES[step.handler]
        return [f"answer = cluster.handle({handler}, event{', call' if self.has_call else ''})"]

    def guarded(self, condition: str, step: Step) -> list[str]:
        if step.unless == NO_GUARD:
            return []
        self.is_tentative = self.is_tentative or self.has_changed
        return [f"if {condition}: return {step.unless!r}"]
