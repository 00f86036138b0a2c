"""One cluster in time, in one order of events that is drawn, as fast as Python allows.

It extends the mutable cluster of the clock: requests and replies take a few milliseconds, and a scheduler has the
timers. Requests on one link never overtake each other, not even with a fault; replies may. Where messages take no
time, `clock.apply` allows each run, too; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Protocol, Self

from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    Crash,
    Disconnect,
    FallSilent,
    Heal,
    HttpRegister,
    Release,
    Restart,
    Resume,
)
from distro_model.clock.compiled import compiled
from distro_model.clock.environment import guard_of, perform
from distro_model.clock.mutable_cluster import ON_LINK, Handled, MutableCluster
from distro_model.clock.plan import Plan
from distro_model.clock.timers import (
    BEATS,
    LEASES,
    PHASES,
    REPORTS,
    ROUND,
    TICK,
    do_part,
    give_up,
    is_calm,
    more_to_do,
    run,
    ways,
)
from distro_model.clock.wires import Wire
from distro_model.cluster import calls, connections, nodes, torn
from distro_model.cluster.statement import Transition
from distro_model.cluster.values import Call, Connection, Link, Phase
from distro_model.messages import Request
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.simulation.scheduler import Scheduler

REPORT_KINDS = frozenset(each.kind for each in REPORTS)

ALWAYS = (ROUND, LEASES, *REPORTS)
NEEDED_FOR: Mapping[type[Action], Sequence[Transition]] = {
    FallSilent: (connections.CHECK_CONNECTIONS, connections.END_CHECK),
    HttpRegister: (BEATS,),
}
"""The timers that are visited, and those only after the first action of a kind: before it they have no effect."""
LATENCY_MS = 4
"""The upper bound of the latency of every message, as between machines of one site."""

ANSWER_LATER = compiled(calls.REPLY_LATE, *ON_LINK, "call").run
REPLY = compiled(calls.REPLY_ARRIVES, *ON_LINK, "call").run


class Watch(Protocol):
    """An observer of a simulation."""

    def acted(self, at_ms: int, action: Action) -> None:
        """The environment is about to apply this action."""

    def sent(self, at_ms: int, source: int, target: int, call: Call) -> None: ...

    def handled(self, at_ms: int, handled: Handled) -> None: ...

    def checkpoint(self, at_ms: int, node: str, number: int) -> None:
        """Running nodes are expected to agree from here on."""


class SimulatedCluster(MutableCluster):
    """Nodes (all down at first), links and clients of one run. The owner of the scheduler lets time pass."""

    TAKES_TIME = True

    __slots__ = (
        "_arrivals",
        "_calls",
        "_checkpoints",
        "_crashes",
        "_latency_ms",
        "_missed",
        "_put_off",
        "_scheduler",
        "_tick_at",
        "_ticked_at",
        "_unfinished",
        "_visited",
        "_waiting",
        "_watch",
    )

    def __init__(
        self,
        names: Sequence[str],
        profile: Profile,
        scheduler: Scheduler,
        watch: Watch,
        *,
        latency_ms: int = LATENCY_MS,
    ) -> None:
        """A message takes a whole number of milliseconds below `latency_ms`, or none if that is 0."""
        size = len(names)
        plan = Plan(tuple(sorted(names)), profile)
        super().__init__(plan, 0, (None,) * size, (Link(down=True),) * size**2, (Wire(),) * size**2)
        self._scheduler, self._watch, self._latency_ms = scheduler, watch, latency_ms
        self._arrivals = [(-1, 0.0)] * size**2  # of the last request on each link: its time and its tie
        self._calls = 0
        self._waiting: set[int] = set()  # the numbers of calls that only an action or a time-out changes
        self._crashes = [0] * size  # the number of crashes of each node: earlier plans are void
        self._missed: dict[tuple[int, Callable[..., None], tuple[object, ...]], None] = {}  # for suspended nodes
        self._tick_at: list[int | None] = [None] * size  # the next one that finds a due task
        self._ticked_at = [-1] * size  # the last one that found a due task
        self._put_off: list[Handled] | None = None  # on a fork: events to note later
        self._unfinished: list[int] = []  # nodes that resume at once, where nothing takes any time
        self._visited = [each.kind for each in ALWAYS]
        self._checkpoints = 0

    def by_name(self) -> Mapping[str, NodeState | None]:
        """The state of every node; None for one that is down."""
        return dict(zip(self.plan.names, self.nodes, strict=True))

    def homes(self) -> Mapping[str, str]:
        """The clients that are connected, with their nodes."""
        return {life.client: life.home for life in self.lives.values() if life.connection is Connection.OPEN}

    def services(self, client: str) -> tuple[str, ...]:
        """The content of a connected client at its own node; a peer may have changed it (B01)."""
        home = self.home(client)
        node = None if home is None else self.node(home)
        held = None if node is None else node.client(client)
        return () if held is None else tuple(service for service, _ in held.content)

    # The environment

    def perform(self, action: Action) -> None:
        """Apply it now. An action that is illegal now (a restart of a node that is up, a request of a client that left)
        is ignored.

        Time is not an action here: it passes on the scheduler.
        """
        if isinstance(action, Advance):
            raise ValueError("time passes on the scheduler")
        self.now_ms = self._scheduler.now_ms
        if guard_of(self, action) is not None:
            return
        self._watch.acted(self.now_ms, action)
        if isinstance(action, Resume):
            self._resume(self.plan.index[action.node])
            return
        perform(self, action)
        self._visited_too(NEEDED_FOR.get(type(action), ()))
        if isinstance(action, Restart):
            self._tick_at[self.plan.index[action.node]] = None
            for kind in self._visited:
                self._plan_visit(self.plan.index[action.node], kind)
        elif isinstance(action, Crash):
            self._crashes[self.plan.index[action.node]] += 1
        if isinstance(action, Disconnect | Crash):  # a client that has left never comes back
            self.lives = {name: life for name, life in self.lives.items() if life.connection is Connection.OPEN}

    def heal(self) -> None:
        """Every link works, no fault is pending, all nodes run and answer: from here on the protocol must converge by
        itself."""
        names = self.plan.names
        for source, target in self.plan.pairs:
            at, ends = source * self.size + target, (names[source], names[target])
            if self.wires[at].held:
                self.perform(Release(*ends))
            if self.links[at].cut:
                self.perform(Heal(*ends))
            elif self.wires[at].faults:
                self._watch.acted(self.now_ms, Heal(*ends))
            self.wires[at] = Wire()
        for name in names:
            self.perform(Resume(name))
            self.perform(Restart(name))
        for client in tuple(self.quiet):
            self.perform(AnswerAgain(client))

    def checkpoint(self) -> None:
        """For the trace: running nodes are expected to agree from here on."""
        self._checkpoints += 1
        for name, node in self.by_name().items():
            if node is not None:
                self._watch.checkpoint(self._scheduler.now_ms, name, self._checkpoints)

    # Transitions

    def fork(self) -> Self:
        """For a transition that may turn out to be disabled; events noted on it count when it was enabled."""
        fork = copy(self)
        fork.nodes, fork.links, fork.wires = list(self.nodes), list(self.links), list(self.wires)
        fork.lives, fork.sent, fork._put_off = dict(self.lives), [], []
        return fork

    def become(self, other: MutableCluster) -> None:
        super().become(other)
        assert isinstance(other, SimulatedCluster)
        for handled in other._put_off or ():
            self.note(handled)

    def note(self, handled: Handled) -> None:
        """Pass it to the observer, and set timers."""
        if self._put_off is not None:
            self._put_off.append(handled)
            return
        self._watch.handled(self.now_ms, handled)
        position, before, after = handled.position, handled.before, handled.after
        if after.tasks is not before.tasks:
            self._plan_tick(position, after)
        if after.load_at_ms is not None and after.load_at_ms != before.load_at_ms:
            self._at(after.load_at_ms, position, self._load, position)
        if after.applies or after.reads or (self.plan.has_events and more_to_do(after)):
            if self._latency_ms:
                self._at(self.now_ms + round(self._scheduler.draw()), position, self._go_on, position)
            else:
                self._unfinished.append(position)

    def settle(self) -> None:
        if self.sent:
            super().settle()
        while self._unfinished:
            self._go_on(self._unfinished.pop())

    # Calls

    def called(self, source: int, target: int, request: Request) -> Call:
        self._calls = number = self._calls + 1
        call = Call(request, deadline_ms=self.now_ms + self.waits_ms(request), number=number)
        self._watch.sent(self.now_ms, source, target, call)
        return call

    def wait(self, source: int, target: int, call: Call) -> None:
        super().wait(source, target, call)
        self._waiting.add(call.number)
        self._at(call.deadline_ms, source, self._time_out, source, target, call.number)

    def carry(self, source: int, target: int, call: Call) -> None:
        """It arrives after its latency, and not before what was sent earlier on this link."""
        at = source * self.size + target
        self.links[at] = self.links[at].with_call(call)
        draw, now_ms = self._scheduler.draw, self.now_ms
        at_ms, tie = now_ms + int(draw() * self._latency_ms), draw()
        if at_ms <= self._arrivals[at][0]:
            at_ms, tie = self._arrivals[at]
        elif at_ms == now_ms:
            self.deliver(source, target, call)
            return
        self._arrivals[at] = at_ms, tie
        self._scheduler.in_turn(at_ms, tie, self._arrive, source, target, call.number)

    def deliver(self, source: int, target: int, call: Call) -> None:
        """It arrives now, and its reply after a separate latency."""
        fault = self.wires[source * self.size + target].fault_met_by(call)
        if fault is not None:
            self._at(call.deadline_ms, source, self._time_out, source, target, call.number)
            self.decide(fault, source, target, call)
            return
        if self.plan.applies_in_parts and self.begins(source, target, call):
            return
        answer_ms = int(self._scheduler.draw() * self._latency_ms)
        if not answer_ms:
            self._take_off(source, target, call)
            self.exchange(source, target, call)
            return
        ANSWER_LATER(self, source, target, call)
        self.settle()
        self._at(self.now_ms + answer_ms, source, self._reply, source, target, call.number)

    def release(self, source: int, target: int) -> None:
        """Waiting calls continue, in order; calls that their sender has abandoned arrive."""
        at = source * self.size + target
        if self.wires[at].held or target in self.paused:
            return
        for call in self.links[at].calls:
            if call.phase is Phase.SENT and call.number in self._waiting:
                self._waiting.discard(call.number)
                self._take_off(source, target, call)
                self.carry(source, target, call)
            elif call.phase is Phase.ABANDONED:
                self._take_off(source, target, call)
                self.take(calls.ARRIVE, source=source, target=target, call=call)

    def _on_link(self, source: int, target: int, number: int) -> Call | None:
        for call in self.links[source * self.size + target].calls:
            if call.number == number:
                return call
        return None

    def _arrive(self, source: int, target: int, number: int) -> None:
        call = self._on_link(source, target, number)
        if call is None:
            return
        self.now_ms = self._scheduler.now_ms
        if target in self.paused:
            self._take_off(source, target, call)
            self.wait(source, target, call)
        else:
            self.deliver(source, target, call)

    def _reply(self, source: int, target: int, number: int) -> None:
        call = self._on_link(source, target, number)
        if call is not None:
            self._take_off(source, target, call)
            REPLY(self, source, target, call)
            self.settle()

    def _time_out(self, source: int, target: int, number: int) -> None:
        call = self._on_link(source, target, number)
        self._waiting.discard(number)
        if call is not None and call.phase is not Phase.ABANDONED:
            give_up(self, source, target, call)

    # Nodes

    def _at(self, at_ms: int, position: int, do: Callable[..., None], *arguments: object) -> None:
        """The node does it then, unless it has crashed; a suspended node does it when it resumes."""
        scheduler = self._scheduler
        scheduler.in_turn(at_ms, scheduler.draw(), self._turn, position, self._crashes[position], do, arguments)

    def _turn(self, position: int, crashes: int, do: Callable[..., None], arguments: tuple[object, ...]) -> None:
        self.now_ms = self._scheduler.now_ms
        if crashes != self._crashes[position]:
            return
        if position in self.paused:
            self._missed[position, do, arguments] = None
        else:
            do(*arguments)

    def _resume(self, position: int) -> None:
        """Calls that waited for the node arrive, and missed timers fire once, in any order."""
        since_ms = self.paused.pop(position)
        for source in self.plan.other_positions[position]:
            self.release(source, position)
        missed = [key for key in self._missed if key[0] == position]
        for key in missed:
            del self._missed[key]
            _, do, arguments = key
            if arguments == (position, LEASES.kind):  # it can detect that the check before it is long ago (B23)
                self._at(self.now_ms, position, self._late_check, position, since_ms)
            else:
                self._at(self.now_ms, position, do, *arguments)

    def _late_check(self, position: int, last_ms: int) -> None:
        self._plan_visit(position, LEASES.kind)
        self.take(LEASES, at=position, last_ms=last_ms)

    def _load(self, position: int) -> None:
        self.take(nodes.LOAD, at=position)

    def _visited_too(self, timers: Sequence[Transition]) -> None:
        for each in timers:
            if each.kind not in self._visited:
                self._visited.append(each.kind)
                for position in range(self.size):
                    self._plan_visit(position, each.kind)

    def _plan_visit(self, position: int, kind: str) -> None:
        node = self.nodes[position]
        at_ms = None if node is None else PHASES[kind](node, self.now_ms, self.plan.profile)
        if at_ms is not None:
            self._at(at_ms, position, self._visit, position, kind)

    def _visit(self, position: int, kind: str) -> None:
        """A timer fires, with or without effect; its exact effect may be open."""
        self._plan_visit(position, kind)
        if kind in REPORT_KINDS and is_calm(self):
            return
        several = ways(self, (position, kind))
        if several:
            run(self, (position, kind), several[int(self._scheduler.draw() * len(several))])

    def _plan_tick(self, position: int, node: NodeState) -> None:
        """The next tick that finds a due task, one in an instant. An earlier tick replaces it."""
        at_ms = nodes.next_tick(node, max(self.now_ms - 1, self._ticked_at[position]), self.plan.profile)
        planned = self._tick_at[position]
        if at_ms is not None and (planned is None or at_ms < planned):
            self._tick_at[position] = at_ms
            self._at(at_ms, position, self._tick, position)

    def _tick(self, position: int) -> None:
        """Every due task of the node, in order of its key."""
        planned, node = self._tick_at[position], self.nodes[position]
        if planned is None or node is None or self.now_ms < planned:
            return
        self._tick_at[position], self._ticked_at[position] = None, self.now_ms
        run(self, (position, TICK.kind), None)
        after = self.nodes[position]
        assert after is not None  # a task does not end its node
        self._plan_tick(position, after)

    def _go_on(self, position: int) -> None:
        """The next part of an operation in parts, or the next local event, drawn at random."""
        node, pick = self.nodes[position], self._scheduler.draw
        assert node is not None  # it has begun an operation
        several = torn.all_parts(node, self.now_ms)
        if several:
            do_part(self, position, several[int(pick() * len(several))])
            return
        kinds = more_to_do(node)
        if kinds:
            timer = (position, kinds[int(pick() * len(kinds))])
            events = ways(self, timer)
            run(self, timer, events[int(pick() * len(events))])
