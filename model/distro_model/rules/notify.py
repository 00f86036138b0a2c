"""The notify centre of one node: from the change of a client to the sync tasks and to the service index.

An event is handled at once, in the thread that publishes it, unless the profile has queues (`event_queue`). With
queues, each holds so many events, and the node handles the first of any of them when it comes to it (`LocalEventDue`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from distro_model.events import LocalEventDue
from distro_model.local_events import (
    ClientChanged,
    ClientReleased,
    ClientRemoved,
    ClientVerifyFailed,
    IndexEntryDue,
    LocalEvent,
    ServiceChanged,
    ServiceDeregistered,
    ServiceRegistered,
)
from distro_model.messages import Content
from distro_model.node import Action, Client, NodeState, Step, Task
from distro_model.profiles import Profile
from distro_model.rules.index import corrections, indexed, pushed, unindexed
from distro_model.rules.owners import is_responsible
from distro_model.rules.rule import rule
from distro_model.rules.sync import announced, queued


@rule("local event published", source="wire-protocol.md 6.1; NotifyCenter, NamingEventPublisher")
def published(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    """Queue the event, or handle it at once. A queue that is full is worked off first, or overtaken (B28)."""
    if not profile.event_queue:
        return handled(node, event, at_ms, profile)
    if isinstance(event, ServiceChanged) and event in node.local.events:
        return node
    queue = queue_of(event, profile)
    waiting = [each for each in node.local.events if queue_of(each, profile) == queue]
    if len(waiting) < profile.event_queue:
        return _waiting(node, (*node.local.events, event), profile)
    if profile.overflow_overtakes:
        return handled(node, event, at_ms, profile)
    return published(_taken(node, waiting[0], at_ms, profile), event, at_ms, profile)


@rule("local event handled", source="wire-protocol.md 6.1, 6.4; DistroClientDataProcessor, ClientServiceIndexesManager")
def handled(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    match event:
        case ClientChanged(client):
            return announced(node, client, Action.CHANGE, at_ms, profile)
        case ClientRemoved(client, native):
            if profile.keeps_index and not profile.releases_in_order:
                node = _unindexed(node, client, None, at_ms, profile)
            return announced(node, client, Action.DELETE, at_ms, profile) if native else node
        case ClientVerifyFailed(client, target):
            held = node.client(client)
            owned = held is not None and is_responsible(node, held, profile)
            return queued(node, Task(client, target, Action.CHANGE, at_ms, 0)) if owned else node
        case ServiceRegistered(client, service):
            return _registered(node, client, service, at_ms, profile)
        case ServiceDeregistered(client, service):
            return _unindexed(node, client, service, at_ms, profile)
        case ClientReleased(client):
            return _unindexed(node, client, None, at_ms, profile)
        case IndexEntryDue(client, service):
            return indexed(node, client, service)
        case ServiceChanged(service):
            return pushed(node, service)
    assert_never(event)


def on_local_event_due(node: NodeState, event: LocalEventDue, profile: Profile) -> Step:
    if event.event not in first_events(node, profile):
        return Step(node)
    return Step(_taken(node, event.event, event.at_ms, profile))


def first_events(node: NodeState, profile: Profile) -> tuple[LocalEvent, ...]:
    """The first event of each queue."""
    first: dict[str, LocalEvent] = {}
    for event in node.local.events:
        first.setdefault(queue_of(event, profile), event)
    return tuple(first.values())


def queue_of(event: LocalEvent, profile: Profile) -> str:
    return type(event).__name__ if profile.queue_per_event_class else event.queue


@rule("client operated", source="wire-protocol.md 6.1, 6.4; EphemeralClientOperationServiceImpl")
def operated(
    node: NodeState,
    event: ServiceRegistered | ServiceDeregistered,
    at_ms: int,
    profile: Profile,
    *,
    native: bool = True,
) -> NodeState:
    """A client's own request was carried out: say so to Distro if it is native, then to the index."""
    if native:
        node = published(node, ClientChanged(event.client), at_ms, profile)
    return published(node, event, at_ms, profile) if profile.keeps_index else node


@rule("client upgraded", source="wire-protocol.md 6.1, 6.4; DistroClientDataProcessor.upgradeClient")
def upgraded(node: NodeState, client: Client, before: Content, at_ms: int, profile: Profile) -> NodeState:
    """A peer's doing brought the client up to date: say what differs to the index, and to Distro if it is an own one.

    An ip:port client is so only where acceptance does not count: whoever accepted the change has told everybody.
    """
    own = client.native or (not profile.hands_over and is_responsible(node, client, profile))
    if own and client.content != before:
        node = published(node, ClientChanged(client.name), at_ms, profile)
    return reindexed(node, client, before, at_ms, profile)


def reindexed(node: NodeState, client: Client, before: Content, at_ms: int, profile: Profile) -> NodeState:
    """Say to the index what differs between this client and its content before."""
    if not profile.keeps_index:
        return node
    for service, _ in sorted(set(client.content) - set(before)):
        node = published(node, ServiceRegistered(client.name, service), at_ms, profile)
    for service in sorted(dict(before).keys() - dict(client.content).keys()):
        node = published(node, ServiceDeregistered(client.name, service), at_ms, profile)
    return node


@rule("client removed", source="wire-protocol.md 6.1, 6.4; ConnectionBasedClientManager.clientDisconnected")
def removed(node: NodeState, client: Client, at_ms: int, profile: Profile) -> NodeState:
    """Take the client out of the table and say so: its connection ended, a DELETE arrived or its lease did."""
    own = is_responsible(node, client, profile)
    node = node.without_client(client.name)
    if profile.keeps_index and profile.releases_in_order:
        node = published(node, ClientReleased(client.name), at_ms, profile)
    if own or (profile.keeps_index and not profile.releases_in_order):
        node = published(node, ClientRemoved(client.name, own), at_ms, profile)
    return node


@rule("index audited", source="wire-protocol.md 6.4; no release does (known-bugs.md B14)")
def audited(node: NodeState, at_ms: int, profile: Profile) -> NodeState:
    """Once every verify interval: what the index or the last push has wrong is published again."""
    if profile.keeps_index and profile.audits_index and not node.local.events:
        for event in corrections(node):
            node = published(node, event, at_ms, profile)
    return node


def _registered(node: NodeState, client: str, service: str, at_ms: int, profile: Profile) -> NodeState:
    if profile.indexes_before_push:
        return published(indexed(node, client, service), ServiceChanged(service), at_ms, profile)
    node = published(node, ServiceChanged(service), at_ms, profile)
    if not profile.event_queue:
        return indexed(node, client, service)
    return _waiting(node, (IndexEntryDue(client, service), *node.local.events), profile)


def _unindexed(node: NodeState, client: str, service: str | None, at_ms: int, profile: Profile) -> NodeState:
    after = unindexed(node, client, service)
    for changed_service, _ in sorted(set(node.local.index) - set(after.local.index)):
        after = published(after, ServiceChanged(changed_service), at_ms, profile)
    return after


def _taken(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    left = list(node.local.events)
    left.remove(event)  # the first of its queue: an equal one behind it stays
    return handled(_waiting(node, tuple(left), profile), event, at_ms, profile)


def _waiting(node: NodeState, events: tuple[LocalEvent, ...], profile: Profile) -> NodeState:
    """Only the order within a queue means anything: keep the queues apart, so that equal knowledge is equal."""
    in_order = tuple(sorted(events, key=lambda event: queue_of(event, profile)))
    return replace(node, local=replace(node.local, events=in_order))
