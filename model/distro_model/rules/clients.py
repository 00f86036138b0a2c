"""A client and its own server: connect, register, deregister, disconnect.

Only the node that holds the connection runs these rules. Each change of what a client publishes, and its removal, is
published to the node's own notify centre (`notify.py`), and so announced to all other members.

A set-up and a request may happen in two halves, because a server runs them on one thread while another thread ends the
connection: a condition that held in the first half need not hold in the second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from distro_model.events import (
    BatchRegistered,
    ClientConnected,
    ClientDisconnected,
    InstanceDeregistered,
    InstanceRegistered,
    InstanceRequest,
    Reply,
    RequestFinished,
    RequestStarted,
    SetupFinished,
    SetupStarted,
)
from distro_model.local_events import ServiceDeregistered, ServiceRegistered
from distro_model.messages import FAIL, SUCCESS, Answer, Content, batch_of
from distro_model.node import Client, Local, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.notify import operated, reindexed
from distro_model.rules.receive import deleted
from distro_model.rules.rule import guard, instead_of, rule


@rule("connect", source="client-connect; ConnectionBasedClientManager.clientConnected")
def on_connected(node: NodeState, event: ClientConnected, profile: Profile) -> Step:
    """A connection makes a native client at once. Nothing is announced: the next verify round is the first message to
    the peers."""
    if not takes_over(node, event.client, profile):
        return Step(node)
    held, client = node.client(event.client), fresh_native(event, profile)
    before = () if held is None else held.content
    return Step(reindexed(node.with_client(client), client, before, event.at_ms, profile))


@guard(source="client-connect")
def takes_over(_node: NodeState, _client: str, _: Profile) -> bool:
    """A connection makes its client native, even where a copy of that id is held."""
    return True


@instead_of(takes_over)
def leaves_copy(node: NodeState, client: str, _: Profile) -> bool:
    """A client is created only if there is none of that id; an existing copy is not changed."""
    return node.client(client) is None


@rule("create-a-native-client", source="client-connect")
def fresh_native(event: ClientConnected, _: Profile) -> Client:
    """It begins empty, with revision 0, and has no lease."""
    return Client(event.client, native=True, revision=0, content=(), renewed_ms=0)


@rule("start-a-setup", source="connection-setup; ConnectionManager.register")
def on_setup_started(node: NodeState, event: SetupStarted, _: Profile) -> Step:
    """The transport is open; no other condition is checked before the connection is inserted."""
    local = node.local
    return Step(_with(node, replace(local, setups=tuple(sorted((*local.setups, (event.client, True)))))))


@rule("finish-a-setup", source="connection-setup; ConnectionManager.register")
def on_setup_finished(node: NodeState, event: SetupFinished, profile: Profile) -> Step:
    """The connection is inserted, and with it its client."""
    is_open = dict(node.local.setups).get(event.client)
    if is_open is None:
        return Step(node)
    node = _without_setup(node, event.client)
    if not transport_is_open(is_open, profile):
        return Step(node)
    return on_connected(node, ClientConnected(event.at_ms, event.client), profile)


@guard(source="connection-setup")
def transport_is_open(is_open: bool, _: Profile) -> bool:
    """A transport that has ended leaves no client: its end would never be reported again."""
    return is_open


@instead_of(transport_is_open)
def transport_was_open(_is_open: bool, _: Profile) -> bool:
    """The transport was open when the set-up began, and is not checked again (B40)."""
    return True


@rule("register", source="client-change, revision-connection; EphemeralClientOperationServiceImpl")
def on_registered(node: NodeState, event: InstanceRegistered, profile: Profile) -> Step:
    """One instance of a client per service: a second registration replaces the first, and counts as a change."""
    client = _asking(node, event.client, profile)
    if client is None:
        return _unknown(node, profile)
    content = {**dict(client.content), event.service: event.instance}
    return _published(node, client, tuple(sorted(content.items())), event, profile)


@rule("register-a-batch", source="client-batch, revision-connection; EphemeralClientOperationServiceImpl")
def on_batch_registered(node: NodeState, event: BatchRegistered, profile: Profile) -> Step:
    """Replaces what the client published there, a batch or a single instance."""
    client = _asking(node, event.client, profile)
    if client is None:
        return _unknown(node, profile)
    content = tuple(sorted({**dict(client.content), event.service: batch_of(event.instances)}.items()))
    return _published(node, client, content, event, profile, revision_of_batch(client.revision, profile))


@rule("number-a-batch", source="revision-connection")
def revision_of_batch(revision: int, _: Profile) -> int:
    """A batch registration counts as a change."""
    return revision + 1


@instead_of(revision_of_batch)
def revision_forgotten(revision: int, _: Profile) -> int:
    """A batch registration leaves the revision as it was (B18)."""
    return revision


@rule("deregister", source="client-change, revision-connection; EphemeralClientOperationServiceImpl")
def on_deregistered(node: NodeState, event: InstanceDeregistered, profile: Profile) -> Step:
    """Counts as a change even where nothing was published."""
    client = _asking(node, event.client, profile)
    if client is None:
        return _unknown(node, profile)
    content = tuple(pair for pair in client.content if pair[0] != event.service)
    return _published(node, client, content, event, profile)


@rule("start-a-request", source="client-request; EphemeralClientOperationServiceImpl")
def on_request_started(node: NodeState, event: RequestStarted, profile: Profile) -> Step:
    """The client of the request is looked up."""
    if _asking(node, event.request.client, profile) is None:
        return _unknown(node, profile)
    requests = tuple(sorted((*node.local.requests, event.request), key=str))
    return Step(_with(node, replace(node.local, requests=requests)))


@rule("finish-a-request", source="client-request; EphemeralClientOperationServiceImpl")
def on_request_finished(node: NodeState, event: RequestFinished, profile: Profile) -> Step:
    """The client may have left the table since: the request is then carried out and announced as if it had not (B25),
    or refused."""
    left = list(node.local.requests)
    if event.request not in left:
        return Step(node)
    left.remove(event.request)
    node = _with(node, replace(node.local, requests=tuple(left)))
    request = replace(event.request, at_ms=event.at_ms)
    if node.client(request.client) is None and not looks_again(node, request.client, profile):
        return Step(operated(node, _event_of(request), True, event.at_ms, profile), (Reply(SUCCESS),))
    match request:
        case InstanceRegistered():
            return on_registered(node, request, profile)
        case BatchRegistered():
            return on_batch_registered(node, request, profile)
        case InstanceDeregistered():
            return on_deregistered(node, request, profile)
    assert_never(request)


@guard(source="client-request")
def looks_again(_node: NodeState, _client: str, _: Profile) -> bool:
    """A request that has looked up its client checks again before it changes and announces it."""
    return True


@instead_of(looks_again)
def looked_before(_node: NodeState, _client: str, _: Profile) -> bool:
    """A request changes and announces the client that it looked up, even if that has left the table since (B25)."""
    return False


@rule("disconnect", source="client-disconnect; DistroClientDataProcessor")
def on_disconnected(node: NodeState, event: ClientDisconnected, profile: Profile) -> Step:
    """The client is removed with its connection, and all other members are notified.

    A connection that is not inserted yet has no client to remove; only its closed transport remains.
    """
    if event.client in dict(node.local.setups):
        closed = _without_setup(node, event.client).local
        return Step(_with(node, replace(closed, setups=tuple(sorted((*closed.setups, (event.client, False)))))))
    return Step(disconnected(node, event.client, event.at_ms, profile))


def disconnected(node: NodeState, name: str, at_ms: int, profile: Profile) -> NodeState:
    """Whichever way a connection ends, its client is removed with it, and all other members are notified.

    A snapshot that was taken before the removal must not restore the client either.
    """
    return deleted(node, name, at_ms, profile)


def _published(
    node: NodeState,
    client: Client,
    content: Content,
    request: InstanceRequest,
    profile: Profile,
    revision: int | None = None,
) -> Step:
    """A client that is not native here is not announced (only a client whose connection found a copy, see
    `on_connected`)."""
    number = client.revision + 1 if revision is None else revision
    changed = node.with_client(Client(client.name, client.native, number, content, client.renewed_ms))
    node = operated(changed, _event_of(request), client.native, request.at_ms, profile)
    return Step(node, (Reply(SUCCESS),))


def _asking(node: NodeState, name: str, profile: Profile) -> Client | None:
    held = node.client(name)
    return held if held is not None and may_ask(held, profile) else None


@guard(source="client-unknown; EphemeralClientOperationServiceImpl")
def may_ask(held: Client, _: Profile) -> bool:
    """A client that is held under the id of a connection is the client of that connection, and not a copy."""
    return held.native


@instead_of(may_ask)
def copy_may_ask(_held: Client, _: Profile) -> bool:
    """A request changes the client that is held under the id of its connection, a copy too
    (native-connect-onto-synced)."""
    return True


def _event_of(request: InstanceRequest) -> ServiceRegistered | ServiceDeregistered:
    kind = ServiceDeregistered if isinstance(request, InstanceDeregistered) else ServiceRegistered
    return kind(request.client, request.service)


def _unknown(node: NodeState, profile: Profile) -> Step:
    return Step(node, (Reply(answer_to_unknown(profile)),))


@rule("answer-an-unknown-client", source="client-unknown; EphemeralClientOperationServiceImpl")
def answer_to_unknown(_: Profile) -> Answer:
    """A request of a client that this node does not know, yet or any more, is refused."""
    return FAIL


@instead_of(answer_to_unknown)
def success_to_unknown(_: Profile) -> Answer:
    """A request of a client that this node does not know is answered with SUCCESS (B12)."""
    return SUCCESS


def _with(node: NodeState, local: Local) -> NodeState:
    return node.changed(local=local)


def _without_setup(node: NodeState, client: str) -> NodeState:
    kept = tuple(setup for setup in node.local.setups if setup[0] != client)
    return _with(node, replace(node.local, setups=kept))
