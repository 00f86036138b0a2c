"""A cluster in the timed mode: nodes, links, clients and a clock, and what each action makes of them.

`apply` is deterministic up to one thing: timers that are due in the same instant fire in an order that nothing
prescribes, so an `Advance` may have several outcomes (`schedule.py`). RPCs take no time. The order in which faults
decide about a request is written in `Turn.send`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    LinkAction,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.clock.network import Fate, Fault, Link
from distro_model.clock.schedule import advanced
from distro_model.clock.turn import Plan, Traffic, Turn
from distro_model.events import (
    ClientConnected,
    ClientDisconnected,
    Event,
    InstanceDeregistered,
    InstanceRegistered,
    LoadDue,
)
from distro_model.messages import Content, Operation
from distro_model.node import NodeState, fresh_node
from distro_model.profiles import Profile


@dataclass(frozen=True, slots=True)
class Connection:
    """A client's connection; `node` is None once it has ended. A name is never used again."""

    client: str
    node: str | None


@dataclass(frozen=True, slots=True)
class ClusterState:
    plan: Plan
    now_ms: int
    nodes: tuple[NodeState | None, ...]  # by position in plan.names; None: down
    links: tuple[Link, ...]  # by source * len(nodes) + target
    connections: tuple[Connection, ...]

    def connection(self, client: str) -> Connection | None:
        return next((each for each in self.connections if each.client == client), None)

    def node(self, name: str) -> NodeState | None:
        return self.nodes[self.plan.index[name]]

    def link(self, source: str, target: str) -> Link:
        return self.links[self.plan.index[source] * len(self.nodes) + self.plan.index[target]]

    def turn(self) -> Turn:
        return Turn(self.plan, self.now_ms, self.nodes, self.links)

    def after(self, turn: Turn, *, now_ms: int | None = None) -> ClusterState:
        return ClusterState(
            self.plan,
            self.now_ms if now_ms is None else now_ms,
            tuple(turn.nodes),
            tuple(turn.links),
            self.connections,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One possible result of an action, with the calls that finished in it, in the order in which they did.

    Results that differ only in that order, or in calls to unreachable peers, are one outcome and show one of them.
    """

    state: ClusterState
    traffic: tuple[Traffic, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What one node holds of one client."""

    revision: int
    content: Content


class IllegalActionError(ValueError):
    """The action makes no sense in this state; the message names the guard that forbids it."""


def start(nodes: Sequence[str], profile: Profile) -> ClusterState:
    """Nothing runs yet: t = 0 ms, every node down, every link whole."""
    names = tuple(sorted(nodes))
    if not names or len(set(names)) != len(names):
        raise ValueError(f"a cluster needs nodes with different names, not {', '.join(nodes) or 'none'}")
    return ClusterState(Plan(names, profile), 0, (None,) * len(names), (Link(),) * len(names) ** 2, ())


def apply(state: ClusterState, action: Action) -> tuple[Outcome, ...]:
    """All possible results of an action, without duplicates. Raises IllegalActionError when a guard forbids it."""
    guard = enabled(state, action)
    if guard is not None:
        raise IllegalActionError(f"{action}: {guard}")
    if isinstance(action, Advance):
        until_ms = state.now_ms + action.ms
        turns = advanced(state.turn(), until_ms)
        return tuple(Outcome(state.after(turn, now_ms=until_ms), tuple(turn.traffic)) for turn in turns)
    turn = state.turn()
    after = replace(state, connections=_connections_after(state, action))
    _carry_out(state, turn, action)
    return (Outcome(after.after(turn), tuple(turn.traffic)),)


def observe(state: ClusterState) -> Mapping[str, Mapping[str, View] | None]:
    """What each node shows to whoever asks: node -> client -> view. None: the node is down.

    Without revisions on the wire (before 2.1.2) an owner still counts, and shows 0 to everybody (section 5.2).
    """
    shows = state.plan.profile.revisions_travel
    return {
        name: None
        if node is None
        else {each.name: View(each.revision if shows else 0, each.content) for each in node.clients}
        for name, node in zip(state.plan.names, state.nodes, strict=True)
    }


def enabled(state: ClusterState, action: Action) -> str | None:
    """None when the action is legal in this state, else the guard that forbids it, as a clause."""
    match action:
        case Connect(client, node):
            if state.connection(client) is not None:
                return f"{client} has been connected before, and a connection id is never used twice"
            return _unless_running(state, node)
        case Register(client, _, _) | Disconnect(client):
            return _unless_connected(state, client)
        case Deregister(client, service):
            return _unless_connected(state, client) or _unless_published(state, client, service)
        case Advance(ms):
            return None if ms >= 0 else "time does not run backwards"
        case Crash(node):
            return _unless_running(state, node)
        case Restart(node):
            return _unless_known(state, node) or ("it is running" if state.node(node) is not None else None)
        case Cut() | Heal() | Hold() | Release() | Drop() | Swallow():
            held = isinstance(action, Drop | Swallow) and action.held
            return "the clock cannot decide a held request yet" if held else _link_guard(state, action)
        case _:
            return "the clock cannot do this yet"


def _unless_known(state: ClusterState, node: str) -> str | None:
    return None if node in state.plan.index else f"there is no node {node}"


def _unless_running(state: ClusterState, node: str) -> str | None:
    return _unless_known(state, node) or (f"{node} is down" if state.node(node) is None else None)


def _unless_connected(state: ClusterState, client: str) -> str | None:
    connection = state.connection(client)
    if connection is None:
        return f"{client} has never been connected"
    return f"{client} is no longer connected" if connection.node is None else None


def _unless_known_client(state: ClusterState, client: str | None) -> str | None:
    """Before a client connects, nobody can tell which connection id its name will stand for."""
    known = client is None or state.connection(client) is not None
    return None if known else f"{client} has never been connected"


def _unless_published(state: ClusterState, client: str, service: str) -> str | None:
    """Whether such a request still counts as a change depends on whether anybody publishes the service (6.5)."""
    connection = state.connection(client)
    node = state.node(connection.node) if connection is not None and connection.node is not None else None
    held = node.client(client) if node is not None else None
    published = held is not None and any(name == service for name, _ in held.content)
    return None if published else f"{client} does not publish {service}"


def _link_guard(state: ClusterState, action: LinkAction) -> str | None:
    ends = (action.source, action.target)
    unknown = _unless_known(state, ends[0]) or _unless_known(state, ends[1])
    if unknown is not None or ends[0] == ends[1]:
        return unknown or f"{ends[0]} has no link to itself"
    link = state.link(*ends)
    match action:
        case Cut():
            return "the link is cut already" if link.cut else None
        case Heal():
            return None if link.cut else "the link is not cut"
        case Hold():
            return "the link is held already" if link.held else None
        case Release():
            return None if link.held else "the link is not held"
        case Drop(operation=operation, client=client):
            return _unless_distro(operation, {Operation.REPORT}) or _unless_known_client(state, client)
        case Swallow(operation=operation, client=client):
            excluded = {Operation.REPORT, Operation.SNAPSHOT}
            return _unless_distro(operation, excluded) or _unless_known_client(state, client)
        case _:
            return "the clock cannot do this yet"


def _unless_distro(operation: str | None, excluded: set[Operation]) -> str | None:
    allowed = [str(each) for each in Operation if each not in excluded]
    return None if operation is None or operation in allowed else f"{operation} is none of {', '.join(allowed)}"


def _connections_after(state: ClusterState, action: Action) -> tuple[Connection, ...]:
    """Whose connection begins or ends by this action."""
    match action:
        case Connect(client, node):
            return tuple(sorted([*state.connections, Connection(client, node)], key=lambda each: each.client))
        case Disconnect(client):
            return tuple(Connection(client, None) if each.client == client else each for each in state.connections)
        case Crash(node):
            return tuple(Connection(each.client, None) if each.node == node else each for each in state.connections)
        case _:
            return state.connections


def _carry_out(state: ClusterState, turn: Turn, action: Action) -> None:
    match action:
        case Connect() | Register() | Deregister() | Disconnect():
            _tell_owner(state, turn, action)
        case Crash(node):
            _crash(turn, state.plan.index[node])
        case Restart(node):
            _restart(turn, state.plan.index[node])
        case Cut() | Heal() | Hold() | Release() | Drop() | Swallow():
            _change_link(turn, state.plan.index[action.source], state.plan.index[action.target], action)
        case _:
            raise AssertionError(f"{action}: time is the schedule's, and `enabled` refuses the rest")


def _tell_owner(state: ClusterState, turn: Turn, action: Connect | Register | Deregister | Disconnect) -> None:
    """A client's action reaches the node that holds its connection."""
    event: Event
    if isinstance(action, Connect):
        owner = action.node
    else:
        connection = state.connection(action.client)
        if connection is None or connection.node is None:
            raise IllegalActionError(f"{action}: {action.client} is not connected")
        owner = connection.node
    match action:
        case Connect(client):
            event = ClientConnected(turn.now_ms, client)
        case Register(client, service, instance):
            event = InstanceRegistered(turn.now_ms, client, service, instance)
        case Deregister(client, service):
            event = InstanceDeregistered(turn.now_ms, client, service)
        case Disconnect(client):
            event = ClientDisconnected(turn.now_ms, client)
    turn.tell(state.plan.index[owner], event)


def _crash(turn: Turn, position: int) -> None:
    """The node is gone; what was on its way to it fails, what it was waiting for vanishes."""
    turn.nodes[position] = None
    for other in range(turn.size):
        if other != position:
            outgoing = position * turn.size + other
            turn.links[outgoing] = turn.links[outgoing].with_calls(())
    for other in range(turn.size):
        if other != position:
            turn.refuse_all(other, position)


def _restart(turn: Turn, position: int) -> None:
    names = turn.plan.names
    others = [name for name in names if name != names[position]]
    turn.nodes[position] = fresh_node(names[position], others, turn.now_ms)
    turn.tell(position, LoadDue(turn.now_ms))


def _change_link(turn: Turn, source: int, target: int, action: LinkAction) -> None:
    at = source * turn.size + target
    link = turn.links[at]
    match action:
        case Cut():
            turn.links[at] = replace(link, cut=True)
            turn.refuse_all(source, target)
        case Heal():
            turn.links[at] = replace(link, cut=False)
        case Hold():
            turn.links[at] = replace(link, held=True)
        case Release():
            turn.links[at] = replace(link, held=False)
            for call in link.calls:
                if not call.lost:
                    turn.deliver(source, target, call)
        case Drop() | Swallow():
            fate = Fate.DROP if isinstance(action, Drop) else Fate.SWALLOW
            operation = None if action.operation is None else Operation(action.operation)
            turn.links[at] = replace(link, faults=(*link.faults, Fault(fate, operation, action.client)))
