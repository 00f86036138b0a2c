"""A client and its own server: connect, register, deregister, go away.

Only the node that holds the connection runs these rules. Each change of what a client publishes, and its leaving, is
announced to all other members through the delay tasks of `sync.py`.
"""

from __future__ import annotations

from distro_model.events import ClientConnected, ClientDisconnected, InstanceDeregistered, InstanceRegistered
from distro_model.messages import Content
from distro_model.node import Action, Client, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.receive import deleted
from distro_model.rules.rule import rule
from distro_model.rules.sync import announced


@rule("client connected", source="wire-protocol.md 2.1, 6.1; ConnectionBasedClientManager")
def on_connected(node: NodeState, event: ClientConnected, profile: Profile) -> Step:
    """A connection makes a native client at once. Nothing is announced: only the next verify round tells the peers.

    The releases create a client only if there is none of that id, and leave a copy what it is.
    """
    if node.client(event.client) is not None and not profile.connection_takes_over:
        return Step(node)
    since_ms = event.at_ms if profile.natives_expire else 0
    return Step(node.with_client(Client(event.client, native=True, revision=0, content=(), renewed_ms=since_ms)))


@rule("instance registered", source="wire-protocol.md 6.1, 6.5; EphemeralClientOperationServiceImpl")
def on_registered(node: NodeState, event: InstanceRegistered, profile: Profile) -> Step:
    """One instance of a client per service: a second registration replaces the first, and counts as a change."""
    client = node.client(event.client)
    if client is None:
        return Step(node)
    content = {**dict(client.content), event.service: event.instance}
    return _published(node, client, tuple(sorted(content.items())), event.at_ms, profile)


@rule("instance deregistered", source="wire-protocol.md 6.1, 6.5; EphemeralClientOperationServiceImpl")
def on_deregistered(node: NodeState, event: InstanceDeregistered, profile: Profile) -> Step:
    client = node.client(event.client)
    if client is None:
        return Step(node)
    content = tuple(pair for pair in client.content if pair[0] != event.service)
    return _published(node, client, content, event.at_ms, profile)


@rule("client disconnected", source="wire-protocol.md 2.1, 6.1; DistroClientDataProcessor")
def on_disconnected(node: NodeState, event: ClientDisconnected, profile: Profile) -> Step:
    """Its own echo, in a snapshot that was cut before it left, must not bring it back either."""
    held = node.client(event.client)
    node = deleted(node, event.client, event.at_ms, profile)
    return Step(
        node if held is None or not held.native else announced(node, event.client, Action.DELETE, event.at_ms, profile)
    )


def _published(node: NodeState, client: Client, content: Content, at_ms: int, profile: Profile) -> Step:
    """What is not native here is not announced (only a client whose connection found a copy, see `on_connected`)."""
    changed = node.with_client(Client(client.name, client.native, client.revision + 1, content, client.renewed_ms))
    if not client.native:
        return Step(changed)
    return Step(announced(changed, client.name, Action.CHANGE, at_ms, profile))
