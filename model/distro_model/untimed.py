"""The untimed mode: the same rules with time frozen, where whatever may happen next is a choice.

A `Situation` is a cluster at t = 0 ms under a profile whose delays are all zero, with what is left of the budgets and,
as ghost state that no rule can see, what each client has published so far. Every choice is a named transition.

What the environment may do: let a client act within its budget; execute a queued task; start a verify round; deliver
the first request of a link, lose it, lose its reply, or acknowledge it undelivered; let a lost call time out; crash a
node, start it again, let it retry its load. What it never does here: reorder a link, cut it, end a lease, or change a
member's state (everybody is UP throughout; a node that is down is found out by the call itself). Leases and members
need a clock, and are covered by the timed mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from distro_model.actions import Connect, Crash, Deregister, Disconnect, Register, Restart
from distro_model.cluster import ClusterState, connections_after, crash, restart, tell_owner
from distro_model.events import LoadDue, TaskDue, VerifyDue
from distro_model.messages import Content, Delete, Operation
from distro_model.network import Link
from distro_model.node import fresh_node
from distro_model.profiles import Profile
from distro_model.transitions import (
    ClientActs,
    Delivers,
    LoadRuns,
    Loses,
    LosesReply,
    NodeFails,
    OnLink,
    Swallows,
    TaskRuns,
    TimesOut,
    Transition,
    VerifyRuns,
)
from distro_model.turn import Plan, Traffic, Turn

SERVICE = "web"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large a cluster, and how much may happen to it. Raises ValueError when the bounds contradict themselves."""

    nodes: int = 2
    clients: int = 1
    changes: int = 2
    """Registrations and deregistrations of each client."""
    crashes: int = 0
    drops: int = 1
    """Requests that are lost, in the whole run."""
    lost_replies: int = 0
    """Requests that take effect but whose reply is lost, in the whole run. Not sayable as timed actions."""
    swallows: int = 1
    """Requests that are acknowledged and not delivered, in the whole run."""
    in_flight: int = 2
    """Unfinished calls on each link."""
    max_states: int = 1_000_000

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.clients < 0 or min(self._budgets) < 0:
            raise ValueError("bounds: at least one node, and no negative number of anything")
        if self.nodes > len(_LETTERS):
            raise ValueError(f"bounds: at most {len(_LETTERS)} nodes")
        if self.in_flight < max(1, self._clients_per_node):
            raise ValueError(
                f"bounds: in_flight={self.in_flight} is too small, a verify round of a node with"
                f" {self._clients_per_node} clients needs as many calls on each link; raise it"
            )

    @property
    def _budgets(self) -> tuple[int, ...]:
        return self.changes, self.crashes, self.drops, self.lost_replies, self.swallows

    @property
    def _clients_per_node(self) -> int:
        return -(-self.clients // self.nodes)

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(_LETTERS[: self.nodes])

    def home(self, client: int) -> str:
        """Client i always connects to node i modulo n: which node is whose does not matter, that they differ does."""
        return _LETTERS[client % self.nodes]


_LETTERS = "abcdefghi"


@dataclass(frozen=True, slots=True)
class Life:
    """Ghost: one client, and every content that it had so far; the index is the number of changes."""

    client: str
    home: str
    contents: tuple[Content, ...]
    changes_left: int
    left_cleanly: bool = False
    """It disconnected while every node was running and loaded, and since then no node has crashed and no DELETE of it
    was swallowed: the cases in which nothing but the lease could remove its copies."""


@dataclass(frozen=True, slots=True)
class Budget:
    crashes: int
    drops: int
    lost_replies: int
    swallows: int


@dataclass(frozen=True, slots=True)
class Situation:
    cluster: ClusterState
    lives: tuple[Life, ...]
    budget: Budget

    def life(self, client: str) -> Life:
        return next(life for life in self.lives if life.client == client)


@dataclass(frozen=True, slots=True)
class Move:
    """One transition with what was before and what is after it. `transition` is None at the very start."""

    before: Situation
    transition: Transition | None
    after: Situation
    traffic: tuple[Traffic, ...] = ()


def beginning(bounds: Bounds, profile: Profile) -> Situation:
    """Every node runs and is loaded (there was nothing to load), nobody is connected."""
    names = bounds.node_names
    nodes = tuple(
        replace(fresh_node(name, [other for other in names if other != name], 0), loaded=True) for name in names
    )
    cluster = ClusterState(Plan(names, profile.without_time()), 0, nodes, (Link(),) * len(names) ** 2, ())
    lives = tuple(Life(f"c{i + 1}", bounds.home(i), ((),), bounds.changes) for i in range(bounds.clients))
    return Situation(cluster, lives, Budget(bounds.crashes, bounds.drops, bounds.lost_replies, bounds.swallows))


def moves(before: Situation, bounds: Bounds) -> Iterator[Move]:
    """Everything that may happen next, within the bounds."""
    for transition in transitions(before):
        move = take(before, transition)
        if all(len(link.calls) <= bounds.in_flight for link in move.after.cluster.links):
            yield move


def transitions(situation: Situation) -> Iterator[Transition]:
    """Everything that may happen next, but for the limit of calls in flight."""
    yield from _of_clients(situation)
    for name, node in zip(situation.cluster.plan.names, situation.cluster.nodes, strict=True):
        if node is None:
            yield NodeFails(Restart(name))
            continue
        if situation.budget.crashes:
            yield NodeFails(Crash(name))
        for task in node.tasks:
            yield TaskRuns(name, task.target, task.client, task.action)
        if node.loaded and any(client.native for client in node.clients):
            yield VerifyRuns(name)
        if node.load_at_ms is not None:
            yield LoadRuns(name)
    yield from _of_links(situation)


def take(before: Situation, transition: Transition) -> Move:
    """What one transition makes of a situation."""
    turn = before.cluster.turn(instant=False)
    index = before.cluster.plan.index
    connections, lives, budget = before.cluster.connections, before.lives, before.budget
    match transition:
        case ClientActs(action):
            tell_owner(before.cluster, turn, action)
            connections = connections_after(before.cluster, action)
            lives = tuple(_life_after(life, action, before.cluster) for life in lives)
        case NodeFails(Crash(node)):
            crash(turn, index[node])
            connections = connections_after(before.cluster, transition.action)
            budget = replace(budget, crashes=budget.crashes - 1)
            lives = tuple(replace(life, left_cleanly=False) for life in lives)
        case NodeFails(Restart(node)):
            restart(turn, index[node])
        case TaskRuns(node, target, client):
            turn.tell(index[node], TaskDue(0, client, target))
        case VerifyRuns(node):
            turn.tell(index[node], VerifyDue(0))
        case LoadRuns(node):
            turn.tell(index[node], LoadDue(0))
        case OnLink():
            budget = _happens_to_call(turn, transition, budget)
            if isinstance(transition, Swallows) and isinstance(transition.request, Delete):
                deleted = transition.request.client
                lives = tuple(replace(life, left_cleanly=False) if life.client == deleted else life for life in lives)
    cluster = replace(before.cluster.after(turn), connections=connections)
    return Move(before, transition, Situation(cluster, lives, budget), tuple(turn.traffic))


def _happens_to_call(turn: Turn, transition: OnLink, budget: Budget) -> Budget:
    source, target = turn.plan.index[transition.source], turn.plan.index[transition.target]
    match transition:
        case Delivers():
            turn.deliver(source, target, transition.call)
        case TimesOut():
            turn.time_out(source, target, transition.call)
        case Loses():
            turn.lose(source, target, transition.call)
            return replace(budget, drops=budget.drops - 1)
        case LosesReply():
            turn.deliver_without_reply(source, target, transition.call)
            return replace(budget, lost_replies=budget.lost_replies - 1)
        case Swallows():
            turn.swallow(source, target, transition.call)
            return replace(budget, swallows=budget.swallows - 1)
    return budget


def _of_clients(situation: Situation) -> Iterator[Transition]:
    for life in situation.lives:
        connection = situation.cluster.connection(life.client)
        if connection is None:
            if situation.cluster.node(life.home) is not None:
                yield ClientActs(Connect(life.client, life.home))
        elif connection.node is not None:
            if life.changes_left:
                version = len(life.contents)
                yield ClientActs(Register(life.client, SERVICE, f"10.0.0.{life.client[1:]}:80 v={version}"))
                if life.contents[-1]:
                    yield ClientActs(Deregister(life.client, SERVICE))
            yield ClientActs(Disconnect(life.client))


def _of_links(situation: Situation) -> Iterator[Transition]:
    plan, budget = situation.cluster.plan, situation.budget
    for source, target in plan.pairs:
        ends = plan.names[source], plan.names[target]
        calls = situation.cluster.links[source * len(plan.names) + target].calls
        for lost in dict.fromkeys(call for call in calls if call.lost):
            yield TimesOut(*ends, lost)
        first = next((call for call in calls if not call.lost), None)
        if first is None:
            continue
        yield Delivers(*ends, first)
        if budget.drops:
            yield Loses(*ends, first)
        if budget.lost_replies:
            yield LosesReply(*ends, first)
        if budget.swallows and first.request.operation is not Operation.SNAPSHOT:
            yield Swallows(*ends, first)


def _life_after(life: Life, action: Connect | Register | Deregister | Disconnect, cluster: ClusterState) -> Life:
    if life.client != action.client:
        return life
    match action:
        case Register(_, service, instance):
            return replace(life, contents=(*life.contents, ((service, instance),)), changes_left=life.changes_left - 1)
        case Deregister():
            return replace(life, contents=(*life.contents, ()), changes_left=life.changes_left - 1)
        case Disconnect():
            return replace(life, left_cleanly=all(node is not None and node.loaded for node in cluster.nodes))
        case Connect():
            return life
