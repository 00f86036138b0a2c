"""A cluster with a clock: its state as a value, and what each action makes of it.

`apply` is deterministic up to one thing: timers that are due in the same instant fire in an order that nothing
prescribes, so an action may have several outcomes (`timers.py`). RPCs take no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    AnswerLate,
    Connect,
    Crash,
    Cut,
    Deliver,
    Deregister,
    Disconnect,
    FallSilent,
    Fault,
    Heal,
    Hold,
    HttpBeat,
    HttpDeregister,
    HttpRegister,
    LinkAction,
    ListMembers,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Reply,
    Restart,
    Resume,
)
from distro_model.clock.board import Board, Links, Lives, Nodes, Plan, Since, Traffic, Wire, Wires
from distro_model.clock.guards import guard_of, held_call
from distro_model.clock.timers import LEASES, advanced, at_once, different, instant, missed_timers
from distro_model.cluster import calls, clients, connections, crashes, http_clients, links, members
from distro_model.cluster.values import Connection, Life, Link
from distro_model.events import HttpAction, HttpReceived
from distro_model.messages import Content
from distro_model.node import NodeState
from distro_model.profiles import Profile


@dataclass(frozen=True, slots=True)
class ClusterState:
    plan: Plan
    now_ms: int
    nodes: Nodes  # by position in plan.names; None: down
    links: Links  # by source * len(nodes) + target
    wires: Wires
    lives: Lives = ()
    paused: Since[int] = ()
    quiet: Since[str] = ()

    def life(self, client: str) -> Life | None:
        """The client, once it has connected."""
        return next((each for each in self.lives if each.client == client), None)

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

    def is_paused(self, name: str) -> bool:
        return any(position == self.plan.index[name] for position, _ in self.paused)

    def board(self) -> Board:
        columns = (self.nodes, self.links, self.wires, self.lives, self.paused, self.quiet)
        return Board(self.plan, self.now_ms, *columns)


def state_on(board: Board) -> ClusterState:
    nodes, links, wires, lives, paused, quiet = board.columns
    return ClusterState(
        board.plan, board.now_ms, nodes, links, wires, tuple(sorted(lives, key=lambda each: each.client)), paused, quiet
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
    size = len(names) ** 2
    return ClusterState(Plan(names, profile), 0, (None,) * len(names), (Link(down=True),) * size, (Wire(),) * size)


def enabled(state: ClusterState, action: Action) -> str | None:
    """None when the action is legal in this state, else the guard that forbids it, as a clause."""
    return guard_of(state, action)


def apply(state: ClusterState, action: Action) -> tuple[Outcome, ...]:
    """All possible results of an action, without duplicates. Raises IllegalActionError when a guard forbids it."""
    guard = guard_of(state, action)
    if guard is not None:
        raise IllegalActionError(f"{action}: {guard}")
    board = state.board()
    if isinstance(action, Advance):
        boards = advanced(board, state.now_ms + action.ms)
    elif isinstance(action, Resume):
        boards = _resumed(board, board.plan.index[action.node])
    else:
        _carry_out(state, board, action)
        boards = at_once_without_ticks(board)
    return tuple(Outcome(state_on(each), tuple(each.traffic)) for each in boards)


def observe(state: ClusterState) -> Mapping[str, Mapping[str, View] | None]:
    """What each node shows to whoever asks: node -> client -> view. None: the node is down.

    Without revisions on the wire (before 2.1.2) an owner still counts, and shows 0 to everybody
    (docs/protocol #distro-content).
    """
    shows = state.plan.profile.revisions_travel
    return {
        name: None
        if node is None
        else {each.name: View(each.revision if shows else 0, each.content) for each in node.clients}
        for name, node in zip(state.plan.names, state.nodes, strict=True)
    }


def _carry_out(state: ClusterState, board: Board, action: Action) -> None:
    index = board.plan.index
    match action:
        case Connect(client, node):
            board.lives[client] = Life(client, node, ((),), 0, "")
            board.take(clients.CONNECT, at=index[node], client=client)
        case Register(client) | RegisterBatch(client) | Deregister(client):
            board.take(clients.CHANGE, at=index[board.lives[client].home], client=client, action=action)
        case Disconnect(client):
            board.take(clients.DISCONNECT, at=index[board.lives[client].home], client=client)
        case FallSilent(client):
            board.take(connections.FALL_SILENT, client=client)
            board.quiet[client] = board.now_ms
        case AnswerAgain(client):
            board.take(connections.ANSWER_AGAIN, client=client)
            board.quiet.pop(client)
        case HttpRegister() | HttpDeregister() | HttpBeat():
            _ask_over_http(board, index[action.node], action)
        case Crash(node):
            board.take(crashes.CRASH, at=index[node])
            board.paused.pop(index[node], None)
            board.fail_refused()
        case Restart(node):
            board.take(crashes.RESTART, at=index[node])
        case Pause(node):
            board.paused[index[node]] = board.now_ms
        case ListMembers(node, listed):
            others = tuple(sorted(name for name in listed if name != node))
            board.take(members.REREAD_LIST, at=index[node], listed=others)
        case Advance() | Resume():
            raise AssertionError("these may have several results")
        case _:
            _change_link(state, board, index[action.source], index[action.target], action)


_HTTP = {HttpRegister: HttpAction.REGISTER, HttpDeregister: HttpAction.DEREGISTER, HttpBeat: HttpAction.BEAT}


def _ask_over_http(board: Board, asked: int, action: HttpRegister | HttpDeregister | HttpBeat) -> None:
    """The node that is asked handles it, or the one to which it forwards it; a forward that does not arrive is lost."""
    kind = _HTTP[type(action)]
    instance = "" if kind is HttpAction.DEREGISTER else action.instance
    asking = HttpReceived(0, action.client, kind, action.service, instance)
    for handling in (asked, *board.plan.other_positions[asked]):
        link = board.links[asked * board.size + handling]
        reached = handling == asked or not (link.down or link.cut or link.half_open or handling in board.paused)
        ends = {"asked": asked, "handling": handling}
        if reached and board.take(http_clients.HTTP_CHANGE, **ends, asking=asking, wanted=None) is None:
            return


def _change_link(state: ClusterState, board: Board, source: int, target: int, action: LinkAction) -> None:
    at, ends = source * board.size + target, {"source": source, "target": target}
    match action:
        case Cut():
            board.take(links.CUT, **ends)
            board.fail_refused()
        case Heal():
            board.take(links.HEAL, **ends)
        case Hold():
            board.wires[at] = replace(board.wires[at], held=True)
        case Release():
            board.wires[at] = replace(board.wires[at], held=False)
            board.release(source, target)
        case Fault(held=False):
            board.wires[at] = replace(board.wires[at], faults=(*board.wires[at].faults, action))
        case _:
            _decide(state, board, source, target, action)


def _decide(state: ClusterState, board: Board, source: int, target: int, action: LinkAction) -> None:
    """What becomes of one call that waits."""
    assert isinstance(action, Fault | Deliver | AnswerLate | Reply)
    call = held_call(state, action)
    assert call is not None  # `guard_of` has found it
    match action:
        case Fault():
            board.decide(action, source, target, call)
        case Deliver():
            board.deliver(source, target, call)
        case AnswerLate():
            board.take(calls.REPLY_LATE, source=source, target=target, call=call)
        case Reply():
            board.end(calls.REPLY_ARRIVES, source, target, call)


def _resumed(board: Board, position: int) -> list[Board]:
    """What waited for the node arrives, and every timer that was due meanwhile fires once, in any order.

    The check of leases can know that the one before it is long ago (B23); it comes before the arrivals or after them.
    """
    since_ms = board.paused.pop(position)
    missed, leases = missed_timers(board, position, since_ms), (position, LEASES.kind)
    results = []
    for checks_first in (True, False) if leases in missed else (False,):
        fork = board.fork()
        if checks_first:
            fork.take(LEASES, at=position, last_ms=since_ms)
        for source in board.plan.other_positions[position]:
            fork.release(source, position)
        if leases in missed and not checks_first:
            fork.take(LEASES, at=position, last_ms=since_ms)
        results += instant(fork, missed - {leases})
    return different(results)


def at_once_without_ticks(board: Board) -> list[Board]:
    return at_once(board, ticks=False)
