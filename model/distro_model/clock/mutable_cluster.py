"""The mutable copy of the columns of a cluster, on which an action and all its consequences are computed.

Cluster states are immutable; a mutable copy lives for one action. Transitions are defined in `cluster/`. Here the
immediate outcome of a request is decided. These reasons are tested in this order: there is no connection, a fault loses
or swallows the request, the link is held or the target is paused. Otherwise the request arrives in the same instant;
any other fault takes effect when it arrives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar, NamedTuple, TypeVar

from distro_model.actions import Drop, Duplicate, Fault, Garble, LoseReply, Mistype, Swallow
from distro_model.clock.compiled import compiled
from distro_model.clock.plan import Plan
from distro_model.clock.traffic import Traffic, compared_revision
from distro_model.clock.wires import Wire
from distro_model.cluster import calls, torn
from distro_model.cluster.statement import Transition
from distro_model.cluster.values import Call, Connection, Life, Link, Phase
from distro_model.events import (
    BatchRegistered,
    CallEnded,
    Event,
    InstanceDeregistered,
    InstanceRegistered,
    Reply,
    Send,
)
from distro_model.messages import Answer, Change, Operation, Request, revision_of, subject_of
from distro_model.node import NodeState
from distro_model.step import step


class Handled(NamedTuple):
    """An event that a node has handled: the node before and after, its answer, and the call that it was about."""

    position: int
    event: Event
    before: NodeState
    after: NodeState
    answer: Answer | None
    call: Call | None


Key = TypeVar("Key")
Nodes = tuple[NodeState | None, ...]
Links = tuple[Link, ...]
Wires = tuple[Wire, ...]
Lives = tuple[Life, ...]
Since = tuple[tuple[Key, int], ...]
"""Pairs (name, start in ms), in the order of their starts."""
Lists = tuple[tuple[int, tuple[str, ...]], ...]
"""Pairs (position, the other members), of nodes whose list was changed: they keep it after a start."""

OF_CLIENTS = frozenset({InstanceRegistered, BatchRegistered, InstanceDeregistered})
"""The events that are requests of a client on its connection."""

# Functions that a clock calls, with their parameters.

ON_LINK = ("source", "target")
ARRIVE_AT_ONCE = compiled(calls.DELIVER, *ON_LINK, "call").run
TRANSITION_OF_FAULT: dict[type[Fault], Transition] = {
    Drop: calls.LOSE,
    LoseReply: calls.LOSE_REPLY,
    Duplicate: calls.DUPLICATE,
}
"""Outcomes of a call that stays on its link."""
ENDS: dict[type[Fault], Transition] = {Garble: calls.GARBLE, Mistype: calls.MISTYPE, Swallow: calls.SWALLOW}
"""Outcomes that end a call."""


class Named:
    """The columns by the names of nodes."""

    __slots__ = ()

    plan: Plan
    nodes: Sequence[NodeState | None]  # by position in plan.names; None: down
    links: Sequence[Link]  # by source * len(nodes) + target
    wires: Sequence[Wire]

    def life(self, client: str) -> Life | None:
        """The client, once it has connected."""
        raise NotImplementedError

    def home(self, client: str) -> str | None:
        """The node that holds its connection; None before it begins and after its end."""
        life = self.life(client)
        return None if life is None or life.connection is not Connection.OPEN else life.home

    def node(self, name: str) -> NodeState | None:
        return self.nodes[self.plan.index[name]]

    def link(self, source: str, target: str) -> Link:
        return self.links[self.plan.index[source] * len(self.nodes) + self.plan.index[target]]

    def wire(self, source: str, target: str) -> Wire:
        return self.wires[self.plan.index[source] * len(self.nodes) + self.plan.index[target]]


class MutableCluster(Named):
    """Mutable columns of one cluster; the link from source to target is `links[source * size + target]`."""

    TAKES_TIME: ClassVar = False
    """Whether a request arrives later than it is sent."""

    __slots__ = (
        *("answer", "counted", "links", "lists", "lives", "nodes", "now_ms", "paused"),
        *("plan", "quiet", "sent", "size", "traffic", "wires"),
    )

    nodes: list[NodeState | None]
    links: list[Link]
    wires: list[Wire]

    def __init__(
        self,
        plan: Plan,
        now_ms: int,
        nodes: Nodes,
        links: Links,
        wires: Wires,
        lives: Lives = (),
        paused: Since[int] = (),
        quiet: Since[str] = (),
        lists: Lists = (),
    ) -> None:
        self.plan = plan
        self.size = len(plan.names)
        self.now_ms = now_ms
        self.nodes = list(nodes)
        self.links = list(links)
        self.wires = list(wires)
        self.lives = {life.client: life for life in lives}
        self.paused = dict(paused)  # position -> since when, in ms
        self.quiet = dict(quiet)  # a client that is silent -> since when, in ms
        self.lists = dict(lists)
        self.traffic: list[Traffic] = []
        self.counted: dict[Traffic, int] = {}  # its observable part; computing it again each time is expensive
        self.sent: list[tuple[int, int, Request]] = []
        self.answer: Answer | None = None  # to the request that a client sent last

    def fork(self) -> MutableCluster:
        other = MutableCluster.__new__(MutableCluster)
        other.plan, other.size, other.now_ms = self.plan, self.size, self.now_ms
        other.nodes, other.links, other.wires = self.nodes.copy(), self.links.copy(), self.wires.copy()
        other.lives, other.paused, other.quiet = self.lives.copy(), self.paused.copy(), self.quiet.copy()
        other.lists, other.traffic, other.counted = self.lists.copy(), self.traffic.copy(), self.counted.copy()
        other.sent, other.answer = [], self.answer
        return other

    @property
    def columns(self) -> tuple[Nodes, Links, Wires, Lives, Since[int], Since[str], Lists]:
        """All columns except the time, as a value."""
        return (
            tuple(self.nodes),
            tuple(self.links),
            tuple(self.wires),
            tuple(self.lives.values()),
            tuple(self.paused.items()),
            tuple(self.quiet.items()),
            tuple(self.lists.items()),
        )

    def others(self, position: int) -> tuple[str, ...]:
        """The other members in the list with which the node starts."""
        return self.lists[position] if position in self.lists else self.plan.others(position)

    def life(self, client: str) -> Life | None:
        return self.lives.get(client)

    def calls_from(self, source: int) -> Iterator[Call]:
        """On whichever link."""
        return chain.from_iterable(link.calls for link in self.links[source * self.size : (source + 1) * self.size])

    def is_same(self, other: MutableCluster) -> bool:
        """Except for traffic. Compared one by one: clusters are few and share most nodes, so hashing is avoided."""
        mine = (self.nodes, self.links, self.wires, self.lives, self.paused, self.quiet)
        its = (other.nodes, other.links, other.wires, other.lives, other.paused, other.quiet)
        return mine == its and self.lists == other.lists and self.answer == other.answer

    # One transition

    def take(self, transition: Transition, **given: Hashable) -> str | None:
        """Do it, with all that follows at once; else return the guard that was false. `given`: the place, and the
        choices."""
        done = compiled(transition, *given)
        cluster = self.fork() if done.is_tentative else self
        guard = done.run(cluster, **given)
        if guard is None:
            if cluster is not self:
                self.become(cluster)
            self.settle()
        return guard

    def become(self, other: MutableCluster) -> None:
        self.nodes, self.links, self.wires = other.nodes, other.links, other.wires
        self.lives, self.traffic, self.counted = other.lives, other.traffic, other.counted
        self.sent += other.sent
        self.answer = other.answer

    def handle(self, position: int, event: Event, call: Call | None = None) -> Answer | None:
        """One input to one node; its messages are kept until the transition is done. `call`: the call that it is
        about."""
        before = self.nodes[position]
        if before is None:
            return None
        result = step(before, event, self.plan.profile)
        self.nodes[position] = result.node
        answer = None
        for output in result.outputs:
            if type(output) is Send:
                self.sent.append((position, self.plan.index[output.target], output.request))
            elif type(output) is Reply:
                answer = output.answer
        if type(event) in OF_CLIENTS:
            self.answer = answer
        self.note(Handled(position, event, before, result.node, answer, call))
        return answer

    def note(self, handled: Handled) -> None:
        """A record of each call that has ended here."""
        event = handled.event
        if type(event) is CallEnded and event.request.operation is not Operation.REPORT:
            request = event.request
            source, client = self.plan.names[handled.position], subject_of(request)
            revision = compared_revision(client, revision_of(request))
            call = Traffic(source, event.target, request.operation, client, revision, event.answer.result)
            self.traffic.append(call)
            if call.is_seen:
                self.counted[call] = self.counted.get(call, 0) + 1

    # Requests

    def settle(self) -> None:
        """The outcome of each sent message is decided, in the order of sending."""
        sent = self.sent
        while sent:
            source, target, request = sent.pop(0)
            self._send(source, target, request)

    def _send(self, source: int, target: int, request: Request) -> None:
        at = source * self.size + target
        link, wire = self.links[at], self.wires[at]
        call = self.called(source, target, request)
        if link.down or link.cut:
            self.take(calls.FAIL, source=source, target=target, call=replace(call, phase=Phase.REFUSED))
            return
        fault = wire.fault_for(request) if wire.faults and not link.half_open else None
        waits = link.half_open or wire.keeps(request) or target in self.paused
        if fault is not None:
            self.wires[at] = wire.without(fault)
            if isinstance(fault, Drop | Swallow) or not (waits or self.TAKES_TIME):
                self.wait(source, target, call)
                self.decide(fault, source, target, call)
                return
            self.wires[at] = self.wires[at].with_fault_met(call, fault, link.calls)
        if waits:
            self.wait(source, target, call)
        else:
            self.carry(source, target, call)

    def called(self, source: int, target: int, request: Request) -> Call:  # noqa: ARG002 - others want to know
        return Call(request, deadline_ms=self.now_ms + self.waits_ms(request))

    def waits_ms(self, request: Request) -> int:
        """How long the sender waits for the answer."""
        profile = self.plan.profile
        return profile.load_timeout_ms if request.operation is Operation.SNAPSHOT else profile.call_timeout_ms

    def wait(self, source: int, target: int, call: Call) -> None:
        """It is on its link, and does not continue automatically."""
        at = source * self.size + target
        self.links[at] = self.links[at].with_call(call)

    def carry(self, source: int, target: int, call: Call) -> None:
        """Nothing delays it: it arrives at once."""
        if self.refuses(source, target, call):
            self.take(calls.REFUSE, source=source, target=target, call=call)
            return
        if self.plan.applies_in_parts:
            self.wait(source, target, call)
            if self.begins(source, target, call):
                return
            self._take_off(source, target, call)
        self.exchange(source, target, call)

    def refuses(self, source: int, target: int, call: Call) -> bool:
        return self.wires[source * self.size + target].refuses and not call.is_report

    def begins(self, source: int, target: int, call: Call) -> bool:
        """It arrives and is applied in parts: its end comes later. For a call that is on its link."""
        in_parts = self.plan.applies_in_parts and isinstance(call.request, Change)
        return in_parts and self.take(torn.BEGIN, source=source, target=target, call=call) is None

    def exchange(self, source: int, target: int, call: Call) -> None:
        """The call arrives, and its sender gets the result. For a call that is not on its link."""
        ARRIVE_AT_ONCE(self, source, target, call)
        self.settle()

    def decide(self, fault: Fault, source: int, target: int, call: Call) -> None:
        """The effect of the fault on a call that is on its link; on a refused call, most faults have no other
        effect."""
        self._forget_fault(source, target, call)
        if self.refuses(source, target, call) and not isinstance(fault, Drop | Swallow):
            if isinstance(fault, LoseReply):
                self.take(calls.LOSE, source=source, target=target, call=call)
            elif not (isinstance(fault, Duplicate) and fault.held):
                self.deliver(source, target, call)
            return
        if type(fault) in ENDS:
            self.end(ENDS[type(fault)], source, target, call)
            return
        self.take(TRANSITION_OF_FAULT[type(fault)], source=source, target=target, call=call)
        if isinstance(fault, Duplicate) and not fault.held:
            self.deliver(source, target, call)

    def deliver(self, source: int, target: int, call: Call) -> None:
        """A call that is on its link arrives."""
        fault = self.wires[source * self.size + target].fault_met_by(call)
        if fault is not None:
            self.decide(fault, source, target, call)
            return
        self._take_off(source, target, call)
        self.carry(source, target, call)

    def end(self, transition: Transition, source: int, target: int, call: Call) -> None:
        """The call leaves its link: its sender gets the result."""
        self._take_off(source, target, call)
        self.take(transition, source=source, target=target, call=call)

    def _forget_fault(self, source: int, target: int, call: Call) -> None:
        at = source * self.size + target
        if self.wires[at].faults_met:
            self.wires[at] = self.wires[at].without_fault_met(call)

    def _take_off(self, source: int, target: int, call: Call) -> None:
        at = source * self.size + target
        self.links[at] = self.links[at].without(self.links[at].calls.index(call))

    def release(self, source: int, target: int) -> None:
        """Waiting calls are delivered, in order; calls that their sender has abandoned arrive too."""
        at = source * self.size + target
        for call in self.links[at].calls:
            if call not in self.links[at].calls or self.wires[at].held or target in self.paused:
                continue
            if call.phase is Phase.SENT:
                self.deliver(source, target, call)
            elif call.phase is Phase.ABANDONED:
                self._take_off(source, target, call)
                self.take(calls.ARRIVE, source=source, target=target, call=call)

    def fail_refused(self) -> None:
        """Calls that wait on a connection that has ended fail at their senders."""
        for source, target in self.plan.pairs:
            for call in self.links[source * self.size + target].calls:
                if call.phase is Phase.REFUSED:
                    self.end(calls.FAIL, source, target, call)
