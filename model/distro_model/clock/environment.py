"""The environment's actions: for each, the guard that forbids it in a state, and its effect on a board.

An action is a transition whose choices come from outside: a scenario, a Hypothesis machine, the seed of a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import permutations

from distro_model.actions import (
    Action,
    Advance,
    AnswerAgain,
    AnswerLate,
    BaseHttpRequest,
    BaseRequestAction,
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
    HttpDeregister,
    LinkAction,
    ListMembers,
    Move,
    Pause,
    PeerAnswer,
    PeerRequest,
    Refuse,
    Register,
    RegisterBatch,
    Release,
    Reorder,
    Reply,
    Restart,
    Resume,
    beyond_the_model,
)
from distro_model.clock.board import Board
from distro_model.cluster import calls, clients, connections, crashes, http_clients, links, members
from distro_model.cluster.values import Call, Connection, Life, Phase
from distro_model.events import Forward, HttpAction, HttpReceived
from distro_model.events import Reply as Answered
from distro_model.messages import UNREACHABLE, Answer, CallResult, Content, Snapshot, subject_of
from distro_model.profile import Profile
from distro_model.rules.ip_clients import has_v2
from distro_model.step import step
from distro_model.transitions import HTTP_REQUESTS


def unknown_to(profile: Profile, action: Action) -> str | None:
    """Why nodes of a release do not support it, in any state, or None."""
    says_batch = isinstance(action, PeerRequest) and any(", " in published for _, published in action.content)
    if (isinstance(action, RegisterBatch) or says_batch) and not profile.batches:
        return f"nodes of {profile.name} know no batches"
    if isinstance(action, BaseHttpRequest) and action.by_v2 and not has_v2(profile):
        return f"nodes of {profile.name} know no version 2 of the HTTP API"
    return None


def guard_of(board: Board, action: Action) -> str | None:
    """None when the action is legal now, else the guard that forbids it."""
    match action:
        case Connect(client, node):
            if board.life(client) is not None:
                return f"{client} has been connected before, and a connection id is never used twice"
            return _unless_awake(board, node)
        case RegisterBatch() if (unknown := unknown_to(board.plan.profile, action)) is not None:
            return unknown
        case Register(client) | RegisterBatch(client) | Disconnect(client) | FallSilent(client):
            return _unless_active(board, client)
        case AnswerAgain(client):
            life = board.life(client)
            return _unless_connected(board, client) or (None if life and life.silent else f"{client} is not silent")
        case Deregister(client, service):
            return _unless_active(board, client) or _unless_published(board, client, service)
        case BaseHttpRequest():
            return unknown_to(board.plan.profile, action) or _unless_awake(board, action.node)
        case Advance(ms):
            return None if ms >= 0 else "time does not run backwards"
        case Crash(node):
            return _unless_running(board, node)
        case Restart(node):
            return _unless_known(board, node) or ("it is running" if board.node(node) is not None else None)
        case Move(node, address):
            still_runs = _unless_known(board, node) or (f"{node} is running" if board.node(node) is not None else None)
            return still_runs or guard_of(board, Restart(address))
        case Pause(node):
            return _unless_awake(board, node)
        case ListMembers(node, listed):
            guards = (_unless_known(board, each) for each in listed)
            return _unless_awake(board, node) or next(filter(None, guards), None)
        case Resume(node):
            stands_still = board.plan.index.get(node) in board.paused
            return _unless_running(board, node) or (None if stands_still else f"{node} does not stand still")
        case PeerRequest(peer) | PeerAnswer(peer):
            return f"{peer} is a node, not a played member"
        case _:
            return _link_guard(board, action)


def perform(board: Board, action: Action) -> None:
    """Actions that take no time and have one result; their guard is true."""
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
            _answer_what_was_asked(board, client)
        case BaseHttpRequest():
            _ask_over_http(board, index[action.node], action)
        case Crash(node):
            board.take(crashes.CRASH, at=index[node])
            board.paused.pop(index[node], None)
            board.fail_refused()
        case Restart(node):
            board.take(crashes.RESTART, at=index[node])
        case Move(node, address):
            others = board.others(index[node])
            board.lists[index[address]] = tuple(other for other in others if other != address)
            board.take(crashes.RESTART, at=index[address])
        case Pause(node):
            board.paused[index[node]] = board.now_ms
        case ListMembers(node, listed):
            others = tuple(sorted(name for name in listed if name != node))
            board.lists[index[node]] = others
            board.take(members.REREAD_LIST, at=index[node], listed=others)
        case Advance() | Resume() | PeerRequest() | PeerAnswer():
            raise AssertionError("these may have several results, or are forbidden")
        case _:
            _change_link(board, index[action.source], index[action.target], action)


def _answer_what_was_asked(board: Board, client: str) -> None:
    """A check of connections that waits for no other client ends with this answer."""
    at = board.plan.index[board.lives[client].home]
    if board.take(connections.ANSWER, at=at, client=client) is None:
        board.take(connections.HANDLE_ANSWER, at=at, client=client)
    node = board.nodes[at]
    if node is not None and node.detections and all(each.recorded and each.counted for each in node.detections):
        board.take(connections.END_CHECK, at=at)


def crashed(board: Board, action: Crash) -> list[Board]:
    """A loading node whose peer stops asks the next member at once (docs/protocol #load-asks). Where several load,
    their order is not defined, nor whether they ask before they receive anything."""
    gone, names = board.plan.index[action.node], board.plan.names
    loading = [at for at in range(board.size) if any(map(_asks_all, board.links[at * board.size + gone].calls))]
    between = [(names[one], names[other]) for one, other in permutations(loading, 2) if _flows(board, one, other)]
    _perform_all(board, (*(Hold(*ends) for ends in between), action))
    asked = [ends for ends in between if guard_of(board, Deliver(*ends, "SNAPSHOT")) is None]
    ways: list[list[Action]] = [[Deliver(*ends, "SNAPSHOT") for ends in order] for order in permutations(asked)]
    if len(asked) > 1:
        ways.append([kind(*ends, "SNAPSHOT") for kind in (AnswerLate, Reply) for ends in asked])
    boards = [board.fork() for _ in ways]
    for each, way in zip(boards, ways, strict=True):
        _perform_all(each, (*way, *(Release(*ends) for ends in between)))
    return boards


def _flows(board: Board, source: int, target: int) -> bool:
    """A request that is sent there arrives at once, if the link works at all."""
    at = source * board.size + target
    return not (board.wires[at].held or board.links[at].half_open or target in board.paused)


def _perform_all(board: Board, actions: Iterable[Action]) -> None:
    """The actions that are legal at their turn."""
    for each in actions:
        if guard_of(board, each) is None:
            perform(board, each)


def _asks_all(call: Call) -> bool:
    return isinstance(call.request, Snapshot)


def deregistered(board: Board, action: HttpDeregister) -> list[Board]:
    """A node may not know a service that its client does not publish there, and then the request has no effect, not
    even on the lease of the client. The services that a node knows are not in the model (docs/protocol #http-v1)."""
    before, held = board.fork(), _contents(board, action.client)
    perform(board, action)
    before.answer = board.answer
    return [board] if _contents(board, action.client) != held else [board, before]


def _contents(board: Board, client: str) -> list[Content | None]:
    held = (None if node is None else node.client(client) for node in board.nodes)
    return [None if each is None else each.content for each in held]


_HTTP: Mapping[type[BaseHttpRequest], HttpAction] = {request: action for action, request in HTTP_REQUESTS.items()}


def asked_over_http(action: BaseHttpRequest) -> HttpReceived:
    kind = _HTTP[type(action)]
    instance = "" if kind is HttpAction.DEREGISTER else action.instance
    return HttpReceived(0, action.client, kind, action.service, instance, by_v2=action.by_v2)


def _ask_over_http(board: Board, asked: int, action: BaseHttpRequest) -> None:
    """The node that receives it handles it, or the one to which it forwards it. A forward goes to that one's main port
    and over no link: it is lost only where the node is down or paused."""
    asking, handling = asked_over_http(action), asked
    answer = _answer_to(board, asked, asking)
    if isinstance(answer, Forward):
        handling = board.plan.index[answer.target]
        there = _answer_to(board, handling, replace(asking, forwarded=True))
        assert not isinstance(there, Forward), "a request is passed on once"
        answer = there
    if answer.result is CallResult.SUCCESS:
        refused = board.take(http_clients.HTTP_CHANGE, asked=asked, handling=handling, asking=asking, wanted=None)
        assert refused is None, refused
    board.answer = answer


def _answer_to(board: Board, position: int, asking: HttpReceived) -> Answer | Forward:
    node = board.nodes[position]
    if node is None or position in board.paused:
        return UNREACHABLE
    outputs = step(node, asking, board.plan.profile).outputs
    output = next(each for each in outputs if isinstance(each, Answered | Forward))
    return output.answer if isinstance(output, Answered) else output


def unreached(board: Board, action: Action) -> str | None:
    """Why an action of a client reaches no node, or None: the node is down, or the connection has ended."""
    match action:
        case BaseHttpRequest():
            return _unless_running(board, action.node)
        case Register() | RegisterBatch() | Deregister() | Disconnect() | FallSilent() | AnswerAgain():
            is_known = board.life(action.client) is not None
            return _unless_connected(board, action.client) if is_known else None
    return None


def _change_link(board: Board, source: int, target: int, action: LinkAction) -> None:
    at, ends = source * board.size + target, {"source": source, "target": target}
    match action:
        case Cut():
            board.take(links.CUT, **ends)
            board.fail_refused()
        case Heal():
            board.wires[at] = replace(board.wires[at], refuses=False)
            board.take(links.HEAL, **ends)
        case Refuse():
            board.wires[at] = replace(board.wires[at], refuses=True)
        case Hold(distro=reports_pass):
            board.wires[at] = replace(board.wires[at], held=True, reports_pass=reports_pass)
        case Release():
            board.wires[at] = replace(board.wires[at], held=False)
            board.release(source, target)
        case Fault(held=False):
            board.wires[at] = replace(board.wires[at], faults=(*board.wires[at].faults, action))
        case _:
            _decide(board, source, target, action)


def _decide(board: Board, source: int, target: int, action: LinkAction) -> None:
    """The outcome of one waiting call."""
    assert isinstance(action, Fault | Deliver | AnswerLate | Reply)
    call = held_call(board, action)
    assert call is not None  # `guard_of` has found it
    match action:
        case Fault():
            board.decide(action, source, target, call)
        case Deliver():
            board.deliver(source, target, call)
        case AnswerLate() if board.refuses(source, target, call):
            board.deliver(source, target, call)
        case AnswerLate():
            board.take(calls.REPLY_LATE, source=source, target=target, call=call)
        case Reply():
            board.end(calls.REPLY_ARRIVES, source, target, call)


# Guards


def _unless_known(board: Board, node: str) -> str | None:
    return None if node in board.plan.index else f"there is no node {node}"


def _unless_running(board: Board, node: str) -> str | None:
    return _unless_known(board, node) or (f"{node} is down" if board.node(node) is None else None)


def _unless_awake(board: Board, node: str) -> str | None:
    return _unless_running(board, node) or (f"{node} stands still" if board.plan.index[node] in board.paused else None)


def _unless_connected(board: Board, client: str) -> str | None:
    life = board.life(client)
    if life is None:
        return f"{client} has never been connected"
    return f"{client} is no longer connected" if life.connection is not Connection.OPEN else None


def _unless_active(board: Board, client: str) -> str | None:
    guard, life = _unless_connected(board, client), board.life(client)
    if guard is not None or life is None:
        return guard
    return f"{client} is silent" if life.silent else _unless_awake(board, life.home)


def _unless_published(board: Board, client: str, service: str) -> str | None:
    """Whether such a request still counts as a change depends on whether any client publishes the service."""
    life = board.life(client)
    node = None if life is None else board.node(life.home)
    held = None if node is None else node.client(client)
    published = held is not None and any(name == service for name, _ in held.content)
    return None if published else f"{client} does not publish {service}"


def _link_guard(board: Board, action: LinkAction) -> str | None:
    source, target = action.source, action.target
    unknown = _unless_known(board, source) or _unless_known(board, target)
    if unknown is not None or source == target:
        return unknown or f"{source} has no link to itself"
    link, wire = board.link(source, target), board.wire(source, target)
    match action:
        case Cut():
            return "the link is cut already" if link.cut else None
        case Heal():
            return None if link.cut or wire.refuses else "the link is not cut, and the target refuses nothing"
        case Refuse():
            return f"{target} refuses already what {source} asks" if wire.refuses else None
        case Hold():
            return "the link is held already" if wire.held else None
        case Release():
            return None if wire.held else "the link is not held"
        case BaseRequestAction() if not isinstance(action, Reorder):
            return _request_guard(board, action)
        case _:
            return beyond_the_model(action)


def _request_guard(board: Board, action: BaseRequestAction) -> str | None:
    if action.operation is not None and action.operation not in action.applicable_operations:
        return f"{action.operation} is none of {', '.join(action.applicable_operations)}"
    waits = isinstance(action, Deliver | AnswerLate | Reply) or (isinstance(action, Fault) and action.held)
    if waits:
        return None if held_call(board, action) is not None else f"no such {_waiting(action)} waits"
    # before a client connects, the connection id of its name is not known
    known = action.client is None or "#" in action.client or board.life(action.client) is not None
    return None if known else f"{action.client} has never been connected"


def held_call(board: Board, action: BaseRequestAction) -> Call | None:
    """The first call on the link that matches the action."""
    phase = Phase.ANSWERED if isinstance(action, Reply) else Phase.SENT
    calls = (call for call in board.link(action.source, action.target).calls if call.phase is phase)
    return next((call for call in calls if action.matches(call.request.operation, subject_of(call.request))), None)


def _waiting(action: BaseRequestAction) -> str:
    return "reply" if isinstance(action, Reply) else "request"
