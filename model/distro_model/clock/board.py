"""A board: the mutable copy of a cluster's columns on which an action and all that follows from it are worked out.

Cluster states are immutable; a board lives for one action. What happens on it is said in `cluster/`; the board decides
what a clock decides at once: what becomes of a request. In this order: there is no connection, a fault waits for it,
the link is held or the target stands still; else it arrives in the same instant.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from distro_model.actions import Drop, Duplicate, Fault, LoseReply, Swallow
from distro_model.clock.compiled import compiled
from distro_model.cluster import calls, torn
from distro_model.cluster.statement import Transition
from distro_model.cluster.values import Call, Life, Link, Phase
from distro_model.events import CallEnded, Event, Reply, Send
from distro_model.messages import Answer, CallResult, Change, Operation, Request, revision_of, subject_of
from distro_model.node import Addresses, NodeState, address_book
from distro_model.profiles import Profile
from distro_model.rules import torn as torn_rules
from distro_model.rules.ip_clients import changed_and_announced_late
from distro_model.rules.receive import fresh_copy
from distro_model.step import step


class Traffic(NamedTuple):
    """One finished Distro call (no reports), as its sender saw it end. A tuple, because long runs count thousands."""

    source: str
    target: str
    operation: Operation
    client: str | None
    revision: int | None
    outcome: CallResult

    @property
    def is_seen(self) -> bool:
        """Somebody besides the sender can know of it: with no connection to send it on, a request is seen by nobody."""
        return self.outcome is not CallResult.UNREACHABLE

    def __str__(self) -> str:
        about = "" if self.client is None else f" {self.client}"
        revision = "" if self.revision is None else f" revision {self.revision}"
        return f"{self.operation} {self.source}->{self.target}{about}{revision}: {self.outcome}"


@dataclass(frozen=True)
class Plan:
    """What never changes in a run: the names of the nodes, ascending, and the profile that they follow."""

    names: tuple[str, ...]
    profile: Profile

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All links, as (source, target) positions."""
        return tuple((source, target) for source, others in enumerate(self.other_positions) for target in others)

    @cached_property
    def other_positions(self) -> tuple[tuple[int, ...], ...]:
        size = range(len(self.names))
        return tuple(tuple(other for other in size if other != position) for position in size)

    @cached_property
    def applies_in_parts(self) -> bool:
        return self.profile.has(torn_rules.on_change)

    @cached_property
    def makes_in_parts(self) -> bool:
        return self.profile.has(torn_rules.on_task_due)

    @cached_property
    def has_native_copies(self) -> bool:
        return not self.profile.has(fresh_copy)

    @cached_property
    def takes_parts(self) -> bool:
        """What a node does may take several steps, with others between them."""
        late = self.profile.has(changed_and_announced_late) or self.profile.event_queue > 0
        return self.applies_in_parts or self.makes_in_parts or late

    @cached_property
    def addresses(self) -> Addresses:
        return address_book(self.names)

    def others(self, position: int) -> tuple[str, ...]:
        return tuple(self.names[other] for other in self.other_positions[position])


@dataclass(frozen=True, slots=True)
class Wire:
    """What whoever holds the clock has decided about the requests of one link, by its position."""

    held: bool = False
    faults: tuple[Fault, ...] = ()

    def fault_for(self, request: Request) -> Fault | None:
        """The fault armed first among those that match."""
        return next((fault for fault in self.faults if matches(fault, request)), None)

    def without(self, fault: Fault) -> Wire:
        position = self.faults.index(fault)
        return replace(self, faults=(*self.faults[:position], *self.faults[position + 1 :]))


Key = TypeVar("Key")
Nodes = tuple[NodeState | None, ...]
Links = tuple[Link, ...]
Wires = tuple[Wire, ...]
Lives = tuple[Life, ...]
Since = tuple[tuple[Key, int], ...]
"""Pairs (who, since when in ms), in the order in which it came to that."""

NOT_MET = {Swallow: (Operation.REPORT, Operation.SNAPSHOT), Duplicate: (Operation.REPORT, Operation.SNAPSHOT)}
"""A SNAPSHOT cannot be swallowed: there is no content to acknowledge it with."""


def matches(fault: Fault, request: Request) -> bool:
    if fault.client is not None and subject_of(request) != fault.client:
        return False
    if fault.operation is not None:
        return request.operation == fault.operation
    return request.operation not in NOT_MET.get(type(fault), (Operation.REPORT,))


# What a clock calls, with the parameters that it gives.

ON_LINK = ("source", "target")
ARRIVE_AT_ONCE = compiled(calls.DELIVER, *ON_LINK, "call").run
BEGIN = compiled(torn.BEGIN, *ON_LINK, "call")
FATES: dict[type[Fault], Transition] = {
    Drop: calls.LOSE,
    Swallow: calls.SWALLOW,
    LoseReply: calls.LOSE_REPLY,
    Duplicate: calls.DUPLICATE,
}


class Board:
    """Mutable columns of one cluster; the link from source to target is `links[source * size + target]`."""

    __slots__ = ("links", "lives", "nodes", "now_ms", "paused", "plan", "quiet", "sent", "size", "traffic", "wires")

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
        traffic: tuple[Traffic, ...] = (),
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
        self.traffic = list(traffic)
        self.sent: list[tuple[int, int, Request]] = []

    def fork(self) -> Board:
        return Board(self.plan, self.now_ms, *self.columns, tuple(self.traffic))

    @property
    def columns(self) -> tuple[Nodes, Links, Wires, Lives, Since[int], Since[str]]:
        """All that is not the time, as a value."""
        return (
            tuple(self.nodes),
            tuple(self.links),
            tuple(self.wires),
            tuple(self.lives.values()),
            tuple(self.paused.items()),
            tuple(self.quiet.items()),
        )

    def is_same(self, other: Board) -> bool:
        """But for traffic. Compared one by one: boards are few and share most nodes, which nobody then has to hash."""
        mine = (self.nodes, self.links, self.wires, self.lives, self.paused, self.quiet)
        return mine == (other.nodes, other.links, other.wires, other.lives, other.paused, other.quiet)

    # One transition

    def take(self, transition: Transition, **given: Hashable) -> str | None:
        """Do it, with all that follows at once; else the guard that was false. `given`: where, and what is chosen."""
        done = compiled(transition, *given)
        board = self.fork() if done.is_tentative else self
        guard = done.run(board, **given)
        if guard is None:
            if board is not self:
                self.become(board)
            self.settle()
        return guard

    def become(self, other: Board) -> None:
        self.nodes, self.links, self.wires = other.nodes, other.links, other.wires
        self.lives, self.traffic = other.lives, other.traffic
        self.sent += other.sent

    def told(self, position: int, event: Event) -> None:
        """The node gets the event, and what it sends arrives."""
        self.tell(position, event)
        self.settle()

    def tell(self, position: int, event: Event) -> Answer | None:
        """One input to one node; what it sends is put aside until the transition is done."""
        node = self.nodes[position]
        if node is None:
            return None
        if type(event) is CallEnded and event.request.operation is not Operation.REPORT:
            self._ended(position, event)
        result = step(node, event, self.plan.profile)
        self.nodes[position] = result.node
        answer = None
        for output in result.outputs:
            if type(output) is Send:
                self.sent.append((position, self.plan.index[output.target], output.request))
            elif type(output) is Reply:
                answer = output.answer
        return answer

    def _ended(self, source: int, event: CallEnded) -> None:
        request = event.request
        self.traffic.append(
            Traffic(
                self.plan.names[source],
                event.target,
                request.operation,
                subject_of(request),
                revision_of(request),
                event.answer.result,
            )
        )

    # Requests

    def settle(self) -> None:
        """Everything that was sent meets its fate, in the order of sending."""
        sent = self.sent
        while sent:
            source, target, request = sent.pop(0)
            self._send(source, target, request)

    def _send(self, source: int, target: int, request: Request) -> None:
        at = source * self.size + target
        link, wire = self.links[at], self.wires[at]
        fault = wire.fault_for(request) if wire.faults else None
        if link.down or link.cut:
            self.take_on(calls.FAIL, source, target, Call(request, Phase.REFUSED))
            return
        call = Call(request, deadline_ms=self._deadline_ms(request))
        if link.half_open:
            self.links[at] = link.with_call(call)
        elif fault is not None:
            self.wires[at] = wire.without(fault)
            self.links[at] = link.with_call(call)
            self.decide(fault, source, target, call)
        elif wire.held or target in self.paused:
            self.links[at] = link.with_call(call)
        else:
            self.arrive(source, target, call)

    def arrive(self, source: int, target: int, call: Call) -> None:
        """Of a call that is not on its link. Where CHANGEs are applied in parts, its end comes later."""
        at = source * self.size + target
        if self.plan.applies_in_parts and isinstance(call.request, Change):
            board = self.fork()
            board.links[at] = board.links[at].with_call(call)
            if BEGIN.run(board, source, target, call) is None:
                self.become(board)
                self.settle()
                return
        ARRIVE_AT_ONCE(self, source, target, call)
        self.settle()

    def decide(self, fault: Fault, source: int, target: int, call: Call) -> None:
        """What the fault makes of a call that is on its link."""
        self.take(FATES[type(fault)], source=source, target=target, call=call)
        if isinstance(fault, Duplicate) and not fault.held:
            self.deliver(source, target, call)

    def deliver(self, source: int, target: int, call: Call) -> None:
        """A call that is on its link arrives."""
        self._take_off(source, target, call)
        self.arrive(source, target, call)

    def take_on(self, transition: Transition, source: int, target: int, call: Call) -> None:
        """The call is on its link no more, or never was: its sender hears how it ended."""
        self.take(transition, source=source, target=target, call=call)

    def end(self, transition: Transition, source: int, target: int, call: Call) -> None:
        self._take_off(source, target, call)
        self.take_on(transition, source, target, call)

    def _take_off(self, source: int, target: int, call: Call) -> None:
        at = source * self.size + target
        self.links[at] = self.links[at].without(self.links[at].calls.index(call))

    def release(self, source: int, target: int) -> None:
        """What waits is delivered, in order; what its sender has given up arrives too."""
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
        """Who waited on a connection that has ended is told."""
        for source, target in self.plan.pairs:
            for call in self.links[source * self.size + target].calls:
                if call.phase is Phase.REFUSED:
                    self.end(calls.FAIL, source, target, call)

    def _deadline_ms(self, request: Request) -> int:
        profile = self.plan.profile
        waits_ms = profile.load_timeout_ms if request.operation is Operation.SNAPSHOT else profile.call_timeout_ms
        return self.now_ms + waits_ms
