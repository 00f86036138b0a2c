"""Drafting a chain: the words in which the transitions of the bounded cluster are written.

A `Layout` knows the bounds, the profile and the names of the columns, and holds the functions that chains share (one
object each, so that an engine keeps one table for each meaning). A `Draft` is one chain being written: it remembers
which register holds the latest value of each column, so that `tell` can be said twice about one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.step_alarms import alarm
from distro_model.bounded.values import Call, Clock, Link
from distro_model.events import BeatCheckDue, Event, Reply, Send
from distro_model.messages import Verify
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.search.system import Alternative, Chain, Fairness, Lookup, Registers, Value
from distro_model.step import step

Function = Callable[..., Sequence[Alternative]]
Calls = tuple[tuple[str, Call], ...]
"""What a node has sent in one step: pairs (target, call)."""


@dataclass(frozen=True)
class Layout:
    bounds: Bounds
    profile: Profile  # without time, except for the lease when periods pass

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return self.bounds.node_names

    @cached_property
    def clients(self) -> tuple[str, ...]:
        return self.bounds.client_names

    @cached_property
    def ip_clients(self) -> tuple[str, ...]:
        return self.bounds.ip_client_names

    @cached_property
    def links(self) -> tuple[tuple[str, str], ...]:
        return tuple((source, target) for source in self.nodes for target in self.nodes if source != target)

    def others(self, node: str) -> tuple[str, ...]:
        return tuple(other for other in self.nodes if other != node)

    @cached_property
    def tell(self) -> Function:
        """(node, event, clock) -> the node after it, the calls that it sent, its answer, what was wrong about it."""

        def told(node: NodeState | None, event: Event, clock: Clock) -> Sequence[Alternative]:
            if node is None:
                return ()
            at_ms = clock.period * self.profile.verify_interval_ms
            result = step(node, replace(event, at_ms=at_ms) if at_ms else event, self.profile)
            calls = tuple((out.target, _call(result.node, out)) for out in result.outputs if isinstance(out, Send))
            answer = next((out.answer for out in result.outputs if isinstance(out, Reply)), None)
            sent = tuple((target, call.request) for target, call in calls)
            return ((result.node, calls, answer, alarm(node, event, result.node, answer, sent)),)

        return told

    @cached_property
    def answers(self) -> Function:
        """(node, HTTP request) -> the request, where the node answers it and does not forward it."""

        def answered(node: NodeState | None, event: Event) -> Sequence[Alternative]:
            outputs = () if node is None else step(node, event, self.profile).outputs
            return ((event,),) if any(isinstance(each, Reply) for each in outputs) else ()

        return answered

    @cached_property
    def beat_check(self) -> Function:
        """(node) -> the beat check, where it would change something."""

        def due(node: NodeState | None) -> Sequence[Alternative]:
            event = BeatCheckDue(0)
            return () if node is None or step(node, event, self.profile).node == node else ((event,),)

        return due

    @cached_property
    def push(self) -> dict[str, Function]:
        """For each target: (link, calls of one step) -> the link with those calls that go there, within the bound."""
        return {target: self._push_to(target) for target in self.nodes}

    def _push_to(self, target: str) -> Function:
        def pushed(link: Link, calls: Calls) -> Sequence[Alternative]:
            for to, call in calls:
                if to == target:
                    link = link.with_call(call)
            return ((link,),) if len(link.calls) <= self.bounds.in_flight else ()

        return pushed


def node_column(node: str) -> str:
    return f"node {node}"


def link_column(source: str, target: str) -> str:
    return f"link {source}->{target}"


def client_column(client: str) -> str:
    return f"client {client}"


def ip_column(client: str) -> str:
    return f"ip client {client}"


BUDGET = "budget"
CLOCK = "clock"
STALE = "stale beliefs"


class Draft:
    """One chain in the making. `kind` says what happens, `place` where; together they are the chain's name."""

    def __init__(self, layout: Layout, kind: str, place: str) -> None:
        self.layout = layout
        self.kind = kind
        self.place = place
        self.lookups: list[Lookup] = []
        self.latest: dict[str, str] = {}
        self.alarms: list[str] = []

    def register(self, name: str) -> str:
        """The register that holds the latest value of a column."""
        return self.latest.get(name, name)

    def look(self, guard: str, function: Function, reads: Sequence[str], writes: Sequence[str] = ()) -> None:
        """Read the latest values, write new ones. What is written under a column's name is its new value."""
        registers = tuple(f"{name}#{len(self.lookups)}" for name in writes)
        self.lookups.append(Lookup(guard, function, tuple(map(self.register, reads)), registers))
        self.latest.update(zip(writes, registers, strict=True))

    def keep(self, name: str, kept: str) -> None:
        """What the column holds now stays readable as `kept`, whatever is written to the column later."""
        self.look("never", unchanged, (name,), (kept,))

    def alarm(self, function: Function, reads: Sequence[str]) -> None:
        """A look-up whose one result is a `Finding` or None."""
        self.look("never", function, reads, (f"alarm {len(self.alarms)}",))
        self.alarms.append(self.register(f"alarm {len(self.alarms)}"))

    def tell(self, node: str, event: str, answer: str = "unused answer") -> None:
        """Node gets the event in the register `event`; what it sends goes onto its links, its answer to `answer`."""
        alarm_name, calls = f"alarm {len(self.alarms)}", f"calls of {node}"
        column = node_column(node)
        self.look(f"{node} is down", self.layout.tell, (column, event, CLOCK), (column, calls, answer, alarm_name))
        self.alarms.append(self.register(alarm_name))
        for other in self.layout.others(node):
            link = link_column(node, other)
            self.look(f"in flight on {node}->{other}", self.layout.push[other], (link, calls), (link,))

    def chain(self, says: Callable[[Callable[[str], object]], object], *, fair: Fairness) -> Chain:
        """`says` gets a function from names to their latest values and returns the label.

        Timers are weakly fair. Deliveries and queued tasks are strongly fair: a task waits for room on its link, and in
        no cluster do verify rounds take that room for ever.
        """
        columns = self.columns
        latest = dict(self.latest)

        def label(registers: Registers) -> object:
            return says(lambda name: registers[latest.get(name, name)])

        return Chain(
            f"{self.kind} {self.place}".strip(),
            self.kind,
            tuple(self.lookups),
            {name: register for name, register in self.latest.items() if name in columns},
            label,
            tuple(self.alarms),
            fair,
        )

    @property
    def columns(self) -> frozenset[str]:
        layout = self.layout
        return frozenset(
            (
                *map(node_column, layout.nodes),
                *(link_column(*link) for link in layout.links),
                *map(client_column, layout.clients),
                BUDGET,
                CLOCK,
                *map(ip_column, layout.ip_clients),
                STALE,
            )
        )


def unchanged(value: Value) -> Sequence[Alternative]:
    return ((value,),)


def _call(node: NodeState, send: Send) -> Call:
    request = send.request
    client = node.client(request.client) if isinstance(request, Verify) else None
    return Call(request, sent_as=None if client is None else client.content)
