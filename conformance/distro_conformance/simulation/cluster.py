"""The model in time: one cluster, one order of events, as fast as Python lets it.

`distro_model.clock.apply` follows every order of timers that fall into one instant; a simulation needs one of them,
chosen by the seed. So this is a driver of its own: the nodes as values of the model, their timers on an agenda, and the
model's `step` for everything that a node does. Where messages take no time, every run is one that `apply` allows too;
a test compares the two.

Timers stand in phase with their node's start, as in the model's clock. A timer of a node that crashed since is
void (`life`). Actions of the environment are those of the model's vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from distro_conformance.simulation.agenda import Agenda
from distro_conformance.simulation.journal import LEASE, SimulationJournal
from distro_conformance.simulation.network import Call, Network
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deregister,
    Disconnect,
    Drop,
    Heal,
    Hold,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.cluster.nodes import is_being_read
from distro_model.events import (
    ApplyDue,
    CallEnded,
    ClientConnected,
    ClientDisconnected,
    Event,
    InstanceDeregistered,
    InstanceRegistered,
    LeaseCheckDue,
    LoadDue,
    ReadDue,
    Reply,
    ReportDue,
    ReportToNotUpDue,
    RequestReceived,
    Send,
    TaskDue,
    VerifyDue,
)
from distro_model.messages import Answer, Change, Delete
from distro_model.node import NodeState, fresh_node
from distro_model.profiles import Profile
from distro_model.step import whole_step
from distro_traces.event import Kind

LATENCY_MS = 4
"""Every message takes less than this, as between machines of one site."""


class SimulatedCluster:
    """Nodes (all down at first), links and clients of one run. Whoever has the agenda lets time pass."""

    def __init__(
        self,
        names: Sequence[str],
        profile: Profile,
        agenda: Agenda,
        journal: SimulationJournal,
        *,
        latency_ms: int = LATENCY_MS,
    ) -> None:
        self.names = tuple(sorted(names))
        self.clients: dict[str, str] = {}  # those that are connected, with their node
        self._index = {name: position for position, name in enumerate(self.names)}
        self._profile, self._agenda, self._journal = profile, agenda, journal
        self._network = Network(self.names, profile, agenda, journal, self._receive, self._hear, latency_ms=latency_ms)
        self._nodes: list[NodeState | None] = [None for _ in self.names]
        self._life = [0 for _ in self.names]  # how often each node has started
        self._tick_at: list[int | None] = [None for _ in self.names]  # the next one that finds a due task
        self._ticked_at = [-1 for _ in self.names]  # the last one that did
        self._applying: list[list[Call]] = [[] for _ in self.names]  # CHANGEs that are being applied in parts (B05)
        self._checkpoints = 0

    def nodes(self) -> Mapping[str, NodeState | None]:
        """What every node knows; None for one that is down."""
        return dict(zip(self.names, self._nodes, strict=True))

    def services(self, client: str) -> tuple[str, ...]:
        """What its own node thinks a connected client publishes; a peer may have changed that (B01)."""
        node = self._nodes[self._index[self.clients[client]]] if client in self.clients else None
        held = None if node is None else node.client(client)
        return () if held is None else tuple(service for service, _ in held.content)

    # The environment

    def perform(self, action: Action) -> None:
        """Do it now. What makes no sense now (a restart of a node that is up, a word of a client that left) is ignored.

        Time is not an action here: it passes on the agenda.
        """
        now_ms = self._agenda.now_ms
        match action:
            case Connect(client, node):
                if self._nodes[self._index[node]] is not None and client not in self.clients:
                    self.clients[client] = node
                    self._say(client, ClientConnected(now_ms, client), Kind.CLIENT_CONNECTED)
            case Register(client, service, instance):
                self._say(client, InstanceRegistered(now_ms, client, service, instance), Kind.CLIENT_CHANGED)
            case Deregister(client, service):
                if service in self.services(client):
                    self._say(client, InstanceDeregistered(now_ms, client, service), Kind.CLIENT_CHANGED)
            case Disconnect(client):
                self._disconnect(client)
            case Crash(node):
                self._crash(self._index[node])
            case Restart(node):
                self._restart(self._index[node])
            case Cut() | Heal() | Hold() | Release() | Drop() | Swallow():
                self._network.change(action, self._index[action.source], self._index[action.target])
            case Advance():
                raise ValueError("time passes on the agenda")
            case _:
                raise ValueError(f"a simulation cannot do this: {action}")

    def heal(self) -> None:
        """Every link is whole and every node is up: from here on the protocol must find back by itself."""
        self._network.heal()
        for position in range(len(self.names)):
            self._restart(position)

    def checkpoint(self) -> None:
        """Into the trace: the nodes that are up are held to agree from here on."""
        self._checkpoints += 1
        for name, node in zip(self.names, self._nodes, strict=True):
            if node is not None:
                self._journal.checkpoint(self._agenda.now_ms, name, self._checkpoints)

    def _say(self, client: str, event: Event, kind: Kind) -> None:
        """The client's connection says something to its node; there is a row of it if the node knows the client."""
        if client not in self.clients:
            return
        position = self._index[self.clients[client]]
        self._tell(position, event)
        node = self._nodes[position]
        held = None if node is None else node.client(client)
        if held is not None:
            self._journal.own(self._agenda.now_ms, position, kind, held)

    def _disconnect(self, client: str) -> None:
        if client not in self.clients:
            return
        position = self._index[self.clients.pop(client)]
        node, now_ms = self._nodes[position], self._agenda.now_ms
        if node is not None and node.client(client) is not None:
            self._journal.disconnected(now_ms, position, client)
        self._tell(position, ClientDisconnected(now_ms, client))

    def _crash(self, position: int) -> None:
        if self._nodes[position] is None:
            return
        name = self.names[position]
        self._journal.node_stopped(self._agenda.now_ms, name, "crash")
        self._nodes[position] = None
        self._applying[position].clear()
        self.clients = {client: node for client, node in self.clients.items() if node != name}
        self._network.source_gone(position)
        self._network.target_gone(position)

    def _restart(self, position: int) -> None:
        if self._nodes[position] is not None:
            return
        name, profile, now_ms = self.names[position], self._profile, self._agenda.now_ms
        self._journal.node_started(now_ms, name)
        self._nodes[position] = fresh_node(name, [other for other in self.names if other != name], now_ms)
        self._network.up[position] = True
        self._tick_at[position], self._ticked_at[position] = None, -1
        life = self._life[position] = self._life[position] + 1
        at = self._agenda.at
        at(now_ms + profile.verify_interval_ms, self._timer, position, life, profile.verify_interval_ms, VerifyDue)
        at(now_ms + profile.lease_check_ms, self._lease_check, position, life)
        if len(self.names) > 1:
            at(now_ms + profile.report_first_ms, self._timer, position, life, profile.report_interval_ms, ReportDue)
            if profile.reports_to_members_not_up:
                period_ms = profile.report_not_up_interval_ms
                at(now_ms + period_ms, self._timer, position, life, period_ms, ReportToNotUpDue)
        self._tell(position, LoadDue(now_ms))

    # Nodes

    def _tell(self, position: int, event: Event) -> Answer | None:
        """One input to one node: what it sends is sent, what it answers is returned. None from one that is down."""
        node = self._nodes[position]
        if node is None:
            return None
        result = whole_step(node, event, self._profile)
        after = self._nodes[position] = result.node
        if after.tasks is not node.tasks:
            self._plan_tick(position, after)
        if after.load_at_ms is not None and after.load_at_ms != node.load_at_ms:
            self._agenda.at(after.load_at_ms, self._load, position, self._life[position])
        if after.applies or after.reads:
            self._agenda.at(
                self._agenda.now_ms + round(self._agenda.draw()), self._go_on, position, self._life[position]
            )
        answer = None
        for output in result.outputs:
            if isinstance(output, Send):
                self._network.send(position, self._index[output.target], output.request)
            elif isinstance(output, Reply):
                answer = output.answer
        return answer

    def _receive(self, call: Call) -> Answer | None:
        """None: it is still being handled."""
        position, request, now_ms = call.target, call.request, self._agenda.now_ms
        before = self._nodes[position]
        answer = self._tell(position, RequestReceived(now_ms, self.names[call.source], request))
        if before is None:
            raise AssertionError("a request reaches nodes that are up only")
        if answer is None:
            self._applying[position].append(call)
        if isinstance(request, Change):
            self._write_copy(position, before, request.client, call.message)
        elif isinstance(request, Delete) and self._is_new_loss(position, before, request.client):
            self._journal.removed(now_ms, position, request.client, call.message, None)
        return answer

    def _hear(self, call: Call, answer: Answer) -> None:
        before = self._nodes[call.source]
        event = CallEnded(self._agenda.now_ms, self.names[call.target], call.request, answer)
        self._tell(call.source, event)
        if before is not None:
            for copy in answer.copies:
                self._write_copy(call.source, before, copy.client, call.message)

    def _write_copy(self, position: int, before: NodeState, client: str, message: str | None) -> None:
        """A row for a copy that was applied, be it the same again; none where the node protected what it has."""
        after = self._nodes[position]
        held = None if after is None else after.client(client)
        if held is not None and held is not before.client(client):
            self._journal.applied(self._agenda.now_ms, position, held, message)

    def _is_new_loss(self, position: int, before: NodeState, client: str) -> bool:
        after = self._nodes[position]
        return before.client(client) is not None and after is not None and after.client(client) is None

    # Timers

    def _go_on(self, position: int, life: int) -> None:
        """The next part of something that is made or applied in parts; which, is drawn."""
        node, now_ms = self._nodes[position], self._agenda.now_ms
        if node is None or life != self._life[position] or not (node.applies or node.reads):
            return
        parts: tuple[ApplyDue | ReadDue, ...] = (
            *(ApplyDue(now_ms, each) for each in node.applies),
            *(ReadDue(now_ms, each) for each in node.reads),
        )
        part = parts[int(self._agenda.draw() * len(parts))]
        answer = self._tell(position, part)
        if answer is None or isinstance(part, ReadDue):
            return
        request, source = Change(part.apply.client, part.apply.revision, part.apply.content), part.apply.source
        for call in self._applying[position]:
            if call.request == request and self.names[call.source] == source:
                self._applying[position].remove(call)
                self._write_copy(position, node, request.client, call.message)
                self._network.reply(call, answer)
                return

    def _timer(self, position: int, life: int, period_ms: int, due: Callable[[int], Event]) -> None:
        if life == self._life[position] and self._nodes[position] is not None:
            now_ms = self._agenda.now_ms
            self._agenda.at(now_ms + period_ms, self._timer, position, life, period_ms, due)
            self._tell(position, due(now_ms))

    def _load(self, position: int, life: int) -> None:
        if life == self._life[position]:
            self._tell(position, LoadDue(self._agenda.now_ms))

    def _lease_check(self, position: int, life: int) -> None:
        before, now_ms = self._nodes[position], self._agenda.now_ms
        if before is None or life != self._life[position]:
            return
        self._agenda.at(now_ms + self._profile.lease_check_ms, self._lease_check, position, life)
        self._tell(position, LeaseCheckDue(now_ms))
        after = self._nodes[position]
        if after is not None and after.clients is not before.clients:
            kept = {client.name for client in after.clients}
            for client in before.clients:
                if client.name not in kept:
                    self._journal.removed(now_ms, position, client.name, None, LEASE)

    def _plan_tick(self, position: int, node: NodeState) -> None:
        """The next tick that finds a due task. One that is planned already and comes sooner will plan it anew."""
        if not node.tasks:
            return
        earliest_ms = max(self._agenda.now_ms, self._ticked_at[position] + 1)  # one tick in an instant
        due_ms = max(earliest_ms, min([task.since_ms + task.delay_ms for task in node.tasks]))
        at_ms = due_ms + (node.started_ms - due_ms) % self._profile.tick_ms
        planned = self._tick_at[position]
        if planned is None or at_ms < planned:
            self._tick_at[position] = at_ms
            self._agenda.at(at_ms, self._tick, position, self._life[position])

    def _tick(self, position: int, life: int) -> None:
        """Every due task of the node, in order of its key."""
        node, now_ms = self._nodes[position], self._agenda.now_ms
        if node is None or life != self._life[position] or self._tick_at[position] != now_ms:
            return
        self._tick_at[position], self._ticked_at[position] = None, now_ms
        for task in node.tasks:
            if task.due_ms <= now_ms and not is_being_read(node, task):
                self._tell(position, TaskDue(now_ms, task.client, task.target))
        after = self._nodes[position]
        if after is not None:
            self._plan_tick(position, after)
