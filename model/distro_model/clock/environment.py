"""The environment's actions: for each, the guard that forbids it in a state, and its effect on a cluster.

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
from distro_model.clock.mutable_cluster import MutableCluster
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


def guard_of(cluster: MutableCluster, action: Action) -> str | None:
    """None when the action is legal now, else the guard that forbids it."""
    match action:
        case Connect(client, node):
            if cluster.life(client) is not None:
                return f"{client} has been connected before, and a connection id is never used twice"
            return _unless_awake(cluster, node)
        case RegisterBatch() if (unknown := unknown_to(cluster.plan.profile, action)) is not None:
            return unknown
        case Register(client) | RegisterBatch(client) | Disconnect(client) | FallSilent(client):
            return _unless_active(cluster, client)
        case AnswerAgain(client):
            life = cluster.life(client)
            return _unless_connected(cluster, client) or (None if life and life.silent else f"{client} is not silent")
        case Deregister(client, service):
            return _unless_active(cluster, client) or _unless_published(cluster, client, service)
        case BaseHttpRequest():
            return unknown_to(cluster.plan.profile, action) or _unless_awake(cluster, action.node)
        case Advance(ms):
            return None if ms >= 0 else "time does not run backwards"
        case Crash(node):
            return _unless_running(cluster, node)
        case Restart(node):
            return _unless_known(cluster, node) or ("it is running" if cluster.node(node) is not None else None)
        case Move(node, address):
            still_runs = _unless_known(cluster, node) or (
                f"{node} is running" if cluster.node(node) is not None else None
            )
            return still_runs or guard_of(cluster, Restart(address))
        case Pause(node):
            return _unless_awake(cluster, node)
        case ListMembers(node, listed):
            guards = (_unless_known(cluster, each) for each in listed)
            return _unless_awake(cluster, node) or next(filter(None, guards), None)
        case Resume(node):
            stands_still = cluster.plan.index.get(node) in cluster.paused
            return _unless_running(cluster, node) or (None if stands_still else f"{node} does not stand still")
        case PeerRequest(peer) | PeerAnswer(peer):
            return f"{peer} is a node, not a played member"
        case _:
            return _link_guard(cluster, action)


def perform(cluster: MutableCluster, action: Action) -> None:
    """Actions that take no time and have one result; their guard is true."""
    index = cluster.plan.index
    match action:
        case Connect(client, node):
            cluster.lives[client] = Life(client, node, ((),), 0, "")
            cluster.take(clients.CONNECT, at=index[node], client=client)
        case Register(client) | RegisterBatch(client) | Deregister(client):
            cluster.take(clients.CHANGE, at=index[cluster.lives[client].home], client=client, action=action)
        case Disconnect(client):
            cluster.take(clients.DISCONNECT, at=index[cluster.lives[client].home], client=client)
        case FallSilent(client):
            cluster.take(connections.FALL_SILENT, client=client)
            cluster.quiet[client] = cluster.now_ms
        case AnswerAgain(client):
            cluster.take(connections.ANSWER_AGAIN, client=client)
            cluster.quiet.pop(client)
            _answer_what_was_asked(cluster, client)
        case BaseHttpRequest():
            _ask_over_http(cluster, index[action.node], action)
        case Crash(node):
            cluster.take(crashes.CRASH, at=index[node])
            cluster.paused.pop(index[node], None)
            cluster.fail_refused()
        case Restart(node):
            cluster.take(crashes.RESTART, at=index[node])
        case Move(node, address):
            others = cluster.others(index[node])
            cluster.lists[index[address]] = tuple(other for other in others if other != address)
            cluster.take(crashes.RESTART, at=index[address])
        case Pause(node):
            cluster.paused[index[node]] = cluster.now_ms
        case ListMembers(node, listed):
            others = tuple(sorted(name for name in listed if name != node))
            cluster.lists[index[node]] = others
            cluster.take(members.REREAD_LIST, at=index[node], listed=others)
        case Advance() | Resume() | PeerRequest() | PeerAnswer():
            raise AssertionError("these may have several results, or are forbidden")
        case _:
            _change_link(cluster, index[action.source], index[action.target], action)


def _answer_what_was_asked(cluster: MutableCluster, client: str) -> None:
    """A check of connections that waits for no other client ends with this answer."""
    at = cluster.plan.index[cluster.lives[client].home]
    if cluster.take(connections.ANSWER, at=at, client=client) is None:
        cluster.take(connections.HANDLE_ANSWER, at=at, client=client)
    node = cluster.nodes[at]
    if node is not None and node.detections and all(each.recorded and each.counted for each in node.detections):
        cluster.take(connections.END_CHECK, at=at)


def crashed(cluster: MutableCluster, action: Crash) -> list[MutableCluster]:
    """A loading node whose peer stops asks the next member at once (docs/protocol #load-asks). Where several load,
    their order is not defined, nor whether they ask before they receive anything."""
    gone, names = cluster.plan.index[action.node], cluster.plan.names
    loading = [at for at in range(cluster.size) if any(map(_asks_all, cluster.links[at * cluster.size + gone].calls))]
    between = [(names[one], names[other]) for one, other in permutations(loading, 2) if _flows(cluster, one, other)]
    _perform_all(cluster, (*(Hold(*ends) for ends in between), action))
    asked = [ends for ends in between if guard_of(cluster, Deliver(*ends, "SNAPSHOT")) is None]
    ways: list[list[Action]] = [[Deliver(*ends, "SNAPSHOT") for ends in order] for order in permutations(asked)]
    if len(asked) > 1:
        ways.append([kind(*ends, "SNAPSHOT") for kind in (AnswerLate, Reply) for ends in asked])
    clusters = [cluster.fork() for _ in ways]
    for each, way in zip(clusters, ways, strict=True):
        _perform_all(each, (*way, *(Release(*ends) for ends in between)))
    return clusters


def _flows(cluster: MutableCluster, source: int, target: int) -> bool:
    """A request that is sent there arrives at once, if the link works at all."""
    at = source * cluster.size + target
    return not (cluster.wires[at].held or cluster.links[at].half_open or target in cluster.paused)


def _perform_all(cluster: MutableCluster, actions: Iterable[Action]) -> None:
    """The actions that are legal at their turn."""
    for each in actions:
        if guard_of(cluster, each) is None:
            perform(cluster, each)


def _asks_all(call: Call) -> bool:
    return isinstance(call.request, Snapshot)


def deregistered(cluster: MutableCluster, action: HttpDeregister) -> list[MutableCluster]:
    """A node may not know a service that its client does not publish there, and then the request has no effect, not
    even on the lease of the client. The services that a node knows are not in the model (docs/protocol #http-v1)."""
    before, held = cluster.fork(), _contents(cluster, action.client)
    perform(cluster, action)
    before.answer = cluster.answer
    return [cluster] if _contents(cluster, action.client) != held else [cluster, before]


def _contents(cluster: MutableCluster, client: str) -> list[Content | None]:
    held = (None if node is None else node.client(client) for node in cluster.nodes)
    return [None if each is None else each.content for each in held]


_HTTP: Mapping[type[BaseHttpRequest], HttpAction] = {request: action for action, request in HTTP_REQUESTS.items()}


def asked_over_http(action: BaseHttpRequest) -> HttpReceived:
    kind = _HTTP[type(action)]
    instance = "" if kind is HttpAction.DEREGISTER else action.instance
    return HttpReceived(0, action.client, kind, action.service, instance, by_v2=action.by_v2)


def _ask_over_http(cluster: MutableCluster, asked: int, action: BaseHttpRequest) -> None:
    """The node that receives it handles it, or the one to which it forwards it. A forward goes to that one's main port
    and over no link: it is lost only where the node is down or paused."""
    asking, handling = asked_over_http(action), asked
    answer = _answer_to(cluster, asked, asking)
    if isinstance(answer, Forward):
        handling = cluster.plan.index[answer.target]
        there = _answer_to(cluster, handling, replace(asking, forwarded=True))
        assert not isinstance(there, Forward), "a request is passed on once"
        answer = there
    if answer.result is CallResult.SUCCESS:
        refused = cluster.take(http_clients.HTTP_CHANGE, asked=asked, handling=handling, asking=asking, wanted=None)
        assert refused is None, refused
    cluster.answer = answer


def _answer_to(cluster: MutableCluster, position: int, asking: HttpReceived) -> Answer | Forward:
    node = cluster.nodes[position]
    if node is None or position in cluster.paused:
        return UNREACHABLE
    outputs = step(node, asking, cluster.plan.profile).outputs
    output = next(each for each in outputs if isinstance(each, Answered | Forward))
    return output.answer if isinstance(output, Answered) else output


def unreached(cluster: MutableCluster, action: Action) -> str | None:
    """Why an action of a client reaches no node, or None: the node is down, or the connection has ended."""
    match action:
        case BaseHttpRequest():
            return _unless_running(cluster, action.node)
        case Register() | RegisterBatch() | Deregister() | Disconnect() | FallSilent() | AnswerAgain():
            is_known = cluster.life(action.client) is not None
            return _unless_connected(cluster, action.client) if is_known else None
    return None


def _change_link(cluster: MutableCluster, source: int, target: int, action: LinkAction) -> None:
    at, ends = source * cluster.size + target, {"source": source, "target": target}
    match action:
        case Cut():
            cluster.take(links.CUT, **ends)
            cluster.fail_refused()
        case Heal():
            cluster.wires[at] = replace(cluster.wires[at], refuses=False)
            cluster.take(links.HEAL, **ends)
        case Refuse():
            cluster.wires[at] = replace(cluster.wires[at], refuses=True)
        case Hold(distro=reports_pass):
            cluster.wires[at] = replace(cluster.wires[at], held=True, reports_pass=reports_pass)
        case Release():
            cluster.wires[at] = replace(cluster.wires[at], held=False)
            cluster.release(source, target)
        case Fault(held=False):
            cluster.wires[at] = replace(cluster.wires[at], faults=(*cluster.wires[at].faults, action))
        case _:
            _decide(cluster, source, target, action)


def _decide(cluster: MutableCluster, source: int, target: int, action: LinkAction) -> None:
    """The outcome of one waiting call."""
    assert isinstance(action, Fault | Deliver | AnswerLate | Reply)
    call = held_call(cluster, action)
    assert call is not None  # `guard_of` has found it
    match action:
        case Fault():
            cluster.decide(action, source, target, call)
        case Deliver():
            cluster.deliver(source, target, call)
        case AnswerLate() if cluster.refuses(source, target, call):
            cluster.deliver(source, target, call)
        case AnswerLate():
            cluster.take(calls.REPLY_LATE, source=source, target=target, call=call)
        case Reply():
            cluster.end(calls.REPLY_ARRIVES, source, target, call)


# Guards


def _unless_known(cluster: MutableCluster, node: str) -> str | None:
    return None if node in cluster.plan.index else f"there is no node {node}"


def _unless_running(cluster: MutableCluster, node: str) -> str | None:
    return _unless_known(cluster, node) or (f"{node} is down" if cluster.node(node) is None else None)


def _unless_awake(cluster: MutableCluster, node: str) -> str | None:
    return _unless_running(cluster, node) or (
        f"{node} stands still" if cluster.plan.index[node] in cluster.paused else None
    )


def _unless_connected(cluster: MutableCluster, client: str) -> str | None:
    life = cluster.life(client)
    if life is None:
        return f"{client} has never been connected"
    return f"{client} is no longer connected" if life.connection is not Connection.OPEN else None


def _unless_active(cluster: MutableCluster, client: str) -> str | None:
    guard, life = _unless_connected(cluster, client), cluster.life(client)
    if guard is not None or life is None:
        return guard
    return f"{client} is silent" if life.silent else _unless_awake(cluster, life.home)


def _unless_published(cluster: MutableCluster, client: str, service: str) -> str | None:
    """Whether such a request still counts as a change depends on whether any client publishes the service."""
    life = cluster.life(client)
    node = None if life is None else cluster.node(life.home)
    held = None if node is None else node.client(client)
    published = held is not None and any(name == service for name, _ in held.content)
    return None if published else f"{client} does not publish {service}"


def _link_guard(cluster: MutableCluster, action: LinkAction) -> str | None:
    source, target = action.source, action.target
    unknown = _unless_known(cluster, source) or _unless_known(cluster, target)
    if unknown is not None or source == target:
        return unknown or f"{source} has no link to itself"
    link, wire = cluster.link(source, target), cluster.wire(source, target)
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
            return _request_guard(cluster, action)
        case _:
            return beyond_the_model(action)


def _request_guard(cluster: MutableCluster, action: BaseRequestAction) -> str | None:
    if action.operation is not None and action.operation not in action.applicable_operations:
        return f"{action.operation} is none of {', '.join(action.applicable_operations)}"
    waits = isinstance(action, Deliver | AnswerLate | Reply) or (isinstance(action, Fault) and action.held)
    if waits:
        return None if held_call(cluster, action) is not None else f"no such {_waiting(action)} waits"
    # before a client connects, the connection id of its name is not known
    known = action.client is None or "#" in action.client or cluster.life(action.client) is not None
    return None if known else f"{action.client} has never been connected"


def held_call(cluster: MutableCluster, action: BaseRequestAction) -> Call | None:
    """The first call on the link that matches the action."""
    phase = Phase.ANSWERED if isinstance(action, Reply) else Phase.SENT
    calls = (call for call in cluster.link(action.source, action.target).calls if call.phase is phase)
    return next((call for call in calls if action.matches(call.request.operation, subject_of(call.request))), None)


def _waiting(action: BaseRequestAction) -> str:
    return "reply" if isinstance(action, Reply) else "request"
