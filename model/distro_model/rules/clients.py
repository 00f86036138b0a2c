"""A client and its own server: connect, register, deregister, go away.

Only the node that holds the connection runs these rules. Each change of what a client publishes, and its leaving, is
told to the node's own notify centre (`notify.py`), and so announced to all other members.

A set-up and a request may happen in two halves, because a server does them on one thread while another thread ends the
connection: what the first half found to be so need not be so any more in the second.
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
from distro_model.messages import FAIL, SUCCESS, Content, batch_of
from distro_model.node import Client, Local, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.notify import operated
from distro_model.rules.receive import deleted
from distro_model.rules.rule import rule


@rule("client connected", source="wire-protocol.md 2.1, 6.1; ConnectionBasedClientManager")
def on_connected(node: NodeState, event: ClientConnected, profile: Profile) -> Step:
    """A connection makes a native client at once. Nothing is announced: only the next verify round tells the peers.

    The releases create a client only if there is none of that id, and leave a copy what it is.
    """
    if node.client(event.client) is not None and not profile.connection_takes_over:
        return Step(node)
    since_ms = event.at_ms if profile.natives_expire else 0
    return Step(node.with_client(Client(event.client, native=True, revision=0, content=(), renewed_ms=since_ms)))


@rule("set-up started", source="wire-protocol.md 2.1; ConnectionManager.register")
def on_setup_started(node: NodeState, event: SetupStarted, _: Profile) -> Step:
    """The transport is open; that is all that is checked before the connection is inserted."""
    local = node.local
    return Step(_with(node, replace(local, setups=tuple(sorted((*local.setups, (event.client, True)))))))


@rule("set-up finished", source="wire-protocol.md 2.1; ConnectionManager.register")
def on_setup_finished(node: NodeState, event: SetupFinished, profile: Profile) -> Step:
    """Of a transport that has ended since, nobody will ever be told again: look once more before it is too late."""
    is_open = dict(node.local.setups).get(event.client)
    if is_open is None:
        return Step(node)
    node = _without_setup(node, event.client)
    if not is_open and profile.rechecks_transport:
        return Step(node)
    return on_connected(node, ClientConnected(event.at_ms, event.client), profile)


@rule("instance registered", source="wire-protocol.md 6.1, 6.5; EphemeralClientOperationServiceImpl")
def on_registered(node: NodeState, event: InstanceRegistered, profile: Profile) -> Step:
    """One instance of a client per service: a second registration replaces the first, and counts as a change."""
    client = node.client(event.client)
    if client is None:
        return _unknown(node, profile)
    content = {**dict(client.content), event.service: event.instance}
    return _published(node, client, tuple(sorted(content.items())), event, profile)


@rule("batch registered", source="wire-protocol.md 3.2, 6.5; EphemeralClientOperationServiceImpl")
def on_batch_registered(node: NodeState, event: BatchRegistered, profile: Profile) -> Step:
    """Replaces what the client published there, a batch or a single instance; 2.1.2-2.2.4 forget the revision (B18)."""
    client = node.client(event.client)
    if client is None:
        return _unknown(node, profile)
    content = tuple(sorted({**dict(client.content), event.service: batch_of(event.instances)}.items()))
    bump = 1 if profile.batch_bumps_revision else 0
    return _published(node, client, content, event, profile, bump)


@rule("instance deregistered", source="wire-protocol.md 6.1, 6.5; EphemeralClientOperationServiceImpl")
def on_deregistered(node: NodeState, event: InstanceDeregistered, profile: Profile) -> Step:
    client = node.client(event.client)
    if client is None:
        return _unknown(node, profile)
    content = tuple(pair for pair in client.content if pair[0] != event.service)
    return _published(node, client, content, event, profile)


@rule("request started", source="wire-protocol.md 6.1; EphemeralClientOperationServiceImpl")
def on_request_started(node: NodeState, event: RequestStarted, profile: Profile) -> Step:
    if node.client(event.request.client) is None:
        return _unknown(node, profile)
    requests = tuple(sorted((*node.local.requests, event.request), key=str))
    return Step(_with(node, replace(node.local, requests=requests)))


@rule("request finished", source="wire-protocol.md 6.1; EphemeralClientOperationServiceImpl")
def on_request_finished(node: NodeState, event: RequestFinished, profile: Profile) -> Step:
    """The client may have left the table since: then it is changed and announced as if it had not (B25), or refused."""
    left = list(node.local.requests)
    if event.request not in left:
        return Step(node)
    left.remove(event.request)
    node = _with(node, replace(node.local, requests=tuple(left)))
    request = replace(event.request, at_ms=event.at_ms)
    if node.client(request.client) is None and not profile.rechecks_client:
        return Step(operated(node, _said(request), event.at_ms, profile), (Reply(SUCCESS),))
    match request:
        case InstanceRegistered():
            return on_registered(node, request, profile)
        case BatchRegistered():
            return on_batch_registered(node, request, profile)
        case InstanceDeregistered():
            return on_deregistered(node, request, profile)
    assert_never(request)


@rule("client disconnected", source="wire-protocol.md 2.1, 6.1; DistroClientDataProcessor")
def on_disconnected(node: NodeState, event: ClientDisconnected, profile: Profile) -> Step:
    """A connection that is not inserted yet has no client to remove; all that is left of it is its closed transport."""
    if event.client in dict(node.local.setups):
        closed = _without_setup(node, event.client).local
        return Step(_with(node, replace(closed, setups=tuple(sorted((*closed.setups, (event.client, False)))))))
    return Step(disconnected(node, event.client, event.at_ms, profile))


def disconnected(node: NodeState, name: str, at_ms: int, profile: Profile) -> NodeState:
    """However a connection ends, its client goes with it, and all others are told.

    Its own echo, in a snapshot that was cut before it left, must not bring it back either.
    """
    return deleted(node, name, at_ms, profile)


def _published(
    node: NodeState, client: Client, content: Content, request: InstanceRequest, profile: Profile, bump: int = 1
) -> Step:
    """What is not native here is not announced (only a client whose connection found a copy, see `on_connected`)."""
    changed = node.with_client(Client(client.name, client.native, client.revision + bump, content, client.renewed_ms))
    node = operated(changed, _said(request), request.at_ms, profile, native=client.native)
    return Step(node, (Reply(SUCCESS),))


def _said(request: InstanceRequest) -> ServiceRegistered | ServiceDeregistered:
    kind = ServiceDeregistered if isinstance(request, InstanceDeregistered) else ServiceRegistered
    return kind(request.client, request.service)


def _unknown(node: NodeState, profile: Profile) -> Step:
    """A client that this node does not know, yet or any more."""
    return Step(node, (Reply(FAIL if profile.refuses_unknown_client else SUCCESS),))


def _with(node: NodeState, local: Local) -> NodeState:
    return replace(node, local=local)


def _without_setup(node: NodeState, client: str) -> NodeState:
    kept = tuple(setup for setup in node.local.setups if setup[0] != client)
    return _with(node, replace(node.local, setups=kept))
