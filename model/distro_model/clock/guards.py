"""Which actions make sense in a state, and the guard that forbids the others, as a clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    OfRequest,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Reply,
    Restart,
    Resume,
)
from distro_model.clock.board import NOT_MET, matches
from distro_model.cluster.values import Call, Connection, Phase
from distro_model.messages import Operation

if TYPE_CHECKING:
    from distro_model.clock.cluster import ClusterState


def guard_of(state: ClusterState, action: Action) -> str | None:
    """None when the action is legal in this state, else the guard that forbids it."""
    match action:
        case Connect(client, node):
            if state.life(client) is not None:
                return f"{client} has been connected before, and a connection id is never used twice"
            return _unless_awake(state, node)
        case Register(client) | RegisterBatch(client) | Disconnect(client) | FallSilent(client):
            return _unless_active(state, client)
        case AnswerAgain(client):
            life = state.life(client)
            return _unless_connected(state, client) or (None if life and life.silent else f"{client} is not silent")
        case Deregister(client, service):
            return _unless_active(state, client) or _unless_published(state, client, service)
        case HttpRegister() | HttpDeregister() | HttpBeat():
            return _unless_awake(state, action.node)
        case Advance(ms):
            return None if ms >= 0 else "time does not run backwards"
        case Crash(node):
            return _unless_running(state, node)
        case Restart(node):
            return _unless_known(state, node) or ("it is running" if state.node(node) is not None else None)
        case Pause(node) | ListMembers(node):
            listed = isinstance(action, ListMembers)
            return _unless_awake(state, node) or (_list_guard(state, action) if listed else None)  # type: ignore[arg-type]
        case Resume(node):
            return _unless_running(state, node) or (None if state.is_paused(node) else f"{node} does not stand still")
        case _:
            return _link_guard(state, action)


def _unless_known(state: ClusterState, node: str) -> str | None:
    return None if node in state.plan.index else f"there is no node {node}"


def _unless_running(state: ClusterState, node: str) -> str | None:
    return _unless_known(state, node) or (f"{node} is down" if state.node(node) is None else None)


def _unless_awake(state: ClusterState, node: str) -> str | None:
    return _unless_running(state, node) or (f"{node} stands still" if state.is_paused(node) else None)


def _unless_connected(state: ClusterState, client: str) -> str | None:
    life = state.life(client)
    if life is None:
        return f"{client} has never been connected"
    return f"{client} is no longer connected" if life.connection is not Connection.OPEN else None


def _unless_active(state: ClusterState, client: str) -> str | None:
    guard, life = _unless_connected(state, client), state.life(client)
    if guard is not None or life is None:
        return guard
    return f"{client} is silent" if life.silent else _unless_awake(state, life.home)


def _unless_published(state: ClusterState, client: str, service: str) -> str | None:
    """Whether such a request still counts as a change depends on whether anybody publishes the service (6.5)."""
    life = state.life(client)
    node = None if life is None else state.node(life.home)
    held = None if node is None else node.client(client)
    published = held is not None and any(name == service for name, _ in held.content)
    return None if published else f"{client} does not publish {service}"


def _list_guard(state: ClusterState, action: ListMembers) -> str | None:
    unknown = next((guard for name in action.members if (guard := _unless_known(state, name)) is not None), None)
    missing = action.node not in action.members
    return unknown or (f"a list that lacks {action.node} itself is not in the model" if missing else None)


def _link_guard(state: ClusterState, action: LinkAction) -> str | None:
    source, target = action.source, action.target
    unknown = _unless_known(state, source) or _unless_known(state, target)
    if unknown is not None or source == target:
        return unknown or f"{source} has no link to itself"
    link, wire = state.link(source, target), state.wire(source, target)
    match action:
        case Cut():
            return "the link is cut already" if link.cut else None
        case Heal():
            return None if link.cut else "the link is not cut"
        case Hold():
            return "the link is held already" if wire.held else None
        case Release():
            return None if wire.held else "the link is not held"
        case _:
            return _request_guard(state, action)


def _request_guard(state: ClusterState, action: OfRequest) -> str | None:
    excluded = NOT_MET.get(type(action), (Operation.REPORT,)) if isinstance(action, Fault) else (Operation.REPORT,)
    allowed = [str(each) for each in Operation if each not in excluded]
    if action.operation is not None and action.operation not in allowed:
        return f"{action.operation} is none of {', '.join(allowed)}"
    waits = isinstance(action, Deliver | AnswerLate | Reply) or (isinstance(action, Fault) and action.held)
    if waits:
        return None if held_call(state, action) is not None else f"no such {_waiting(action)} waits"
    # before a client connects, nobody can tell which connection id its name will stand for
    known = action.client is None or "#" in action.client or state.life(action.client) is not None
    return None if known else f"{action.client} has never been connected"


def held_call(state: ClusterState, action: OfRequest) -> Call | None:
    """The first call on the link that the action means."""
    phase = Phase.ANSWERED if isinstance(action, Reply) else Phase.SENT
    meant = (
        action if isinstance(action, Fault) else Fault(action.source, action.target, action.operation, action.client)
    )
    calls = state.link(action.source, action.target).calls
    return next((call for call in calls if call.phase is phase and matches(meant, call.request)), None)


def _waiting(action: OfRequest) -> str:
    return "reply" if isinstance(action, Reply) else "request"
