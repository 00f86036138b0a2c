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
from distro_model.profile import Profile
from distro_model.rules.index import corrections, indexed, pushed, unindexed
from distro_model.rules.owners import is_responsible
from distro_model.rules.rule import instead_of, rule
from distro_model.rules.sync import announced, queued


@rule("publish-an-event", source="notify-queues; NotifyCenter, NamingEventPublisher")
def published(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    """Queue the event, or handle it at once where the profile has no queues."""
    if not profile.event_queue:
        return handled(node, event, at_ms, profile)
    if isinstance(event, ServiceChanged) and event in node.local.events:
        return node
    queue = queue_of(event, profile)
    waiting = [each for each in node.local.events if queue_of(each, profile) == queue]
    if len(waiting) < profile.event_queue:
        return _waiting(node, (*node.local.events, event), profile)
    return overflowed(node, event, waiting[0], at_ms, profile)


@rule("publish-to-a-full-queue", source="notify-queues; DefaultPublisher.publish")
def overflowed(node: NodeState, event: LocalEvent, first: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    """A queue that is full is worked off first."""
    return published(_taken(node, first, at_ms, profile), event, at_ms, profile)


@instead_of(overflowed)
def overtaken(node: NodeState, event: LocalEvent, _first: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    """An event that finds its queue full is handled at once, before all that wait in it (B28)."""
    return handled(node, event, at_ms, profile)


@rule("handle-an-event", source="notify-events; DistroClientDataProcessor, ClientServiceIndexesManager")
def handled(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    """From an event to the tasks and the index entries that follow from it."""
    match event:
        case ClientChanged(client):
            return announced(node, client, Action.CHANGE, at_ms, profile)
        case ClientRemoved():
            return handled_removal(node, event, at_ms, profile)
        case ClientVerifyFailed(client, target):
            held = node.client(client)
            owned = held is not None and is_responsible(node, held, profile)
            return queued(node, Task(client, target, Action.CHANGE, at_ms, 0), profile) if owned else node
        case ServiceRegistered(client, service):
            return registered(node, client, service, at_ms, profile)
        case ServiceDeregistered(client, service):
            return _unindexed(node, client, service, at_ms, profile)
        case ClientReleased(client):
            return _unindexed(node, client, None, at_ms, profile)
        case IndexEntryDue(client, service):
            return indexed(node, client, service, profile)
        case ServiceChanged(service):
            return pushed(node, service, profile)
    assert_never(event)


@rule("handle-a-removal", source="notify-events, client-disconnect")
def handled_removal(node: NodeState, event: ClientRemoved, at_ms: int, profile: Profile) -> NodeState:
    """The removal of a native client is announced. The index receives it by another event."""
    return announced(node, event.client, Action.DELETE, at_ms, profile) if event.native else node


@instead_of(handled_removal)
def handled_removal_from_index_too(node: NodeState, event: ClientRemoved, at_ms: int, profile: Profile) -> NodeState:
    """The index receives the removal of a client in the queue of Distro, not in that of its registrations (B13)."""
    if profile.keeps_index:
        node = _unindexed(node, event.client, None, at_ms, profile)
    return announced(node, event.client, Action.DELETE, at_ms, profile) if event.native else node


@rule("take-an-event", source="notify-queues")
def on_local_event_due(node: NodeState, event: LocalEventDue, profile: Profile) -> Step:
    """The first event of a queue is handled."""
    if event.event not in first_events(node, profile):
        return Step(node)
    return Step(_taken(node, event.event, event.at_ms, profile))


def first_events(node: NodeState, profile: Profile) -> tuple[LocalEvent, ...]:
    """The first event of each queue."""
    first: dict[str, LocalEvent] = {}
    for event in node.local.events:
        first.setdefault(queue_of(event, profile), event)
    return tuple(first.values())


@rule("choose-a-queue", source="notify-queues")
def queue_of(event: LocalEvent, _: Profile) -> str:
    """Events of one client share a queue."""
    return event.queue


@instead_of(queue_of)
def queue_of_class(event: LocalEvent, _: Profile) -> str:
    """Each class of events has a separate queue: two events of one client may change places (B08)."""
    return type(event).__name__


@rule("publish-a-request", source="notify-events, sync-announce; EphemeralClientOperationServiceImpl")
def operated(
    node: NodeState,
    event: ServiceRegistered | ServiceDeregistered,
    native: bool,
    at_ms: int,
    profile: Profile,
) -> NodeState:
    """A client's own request was carried out: publish an event for Distro if it is native, then for the index."""
    if native:
        node = published(node, ClientChanged(event.client), at_ms, profile)
    return published(node, event, at_ms, profile) if profile.keeps_index else node


@rule("publish-an-upgrade", source="notify-events, receive-change; DistroClientDataProcessor.upgradeClient")
def upgraded(node: NodeState, client: Client, before: Content, at_ms: int, profile: Profile) -> NodeState:
    """A peer's request brought the client up to date: publish the differences for the index, and an event for Distro if
    it is native."""
    if client.content != before and announces_upgrade(node, client, profile):
        node = published(node, ClientChanged(client.name), at_ms, profile)
    return reindexed(node, client, before, at_ms, profile)


@rule("announce-an-upgrade", source="receive-change, owner-handover")
def announces_upgrade(_node: NodeState, client: Client, _: Profile) -> bool:
    """A peer's change of a client that is connected here is announced. A change of an ip:port client was announced to
    all members by the node that accepted it."""
    return client.native


@instead_of(announces_upgrade)
def announces_what_it_owns(node: NodeState, client: Client, profile: Profile) -> bool:
    """A peer's change of a native client is announced, an ip:port client too (B22)."""
    return is_responsible(node, client, profile)


def reindexed(node: NodeState, client: Client, before: Content, at_ms: int, profile: Profile) -> NodeState:
    """Publish for the index the differences between this client and its content before."""
    if not profile.keeps_index:
        return node
    for service, _ in sorted(set(client.content) - set(before)):
        node = published(node, ServiceRegistered(client.name, service), at_ms, profile)
    for service in sorted(dict(before).keys() - dict(client.content).keys()):
        node = published(node, ServiceDeregistered(client.name, service), at_ms, profile)
    return node


@rule("remove", source="notify-events, client-disconnect; ConnectionBasedClientManager.clientDisconnected")
def removed(node: NodeState, client: Client, at_ms: int, profile: Profile) -> NodeState:
    """Remove the client from the table and publish it: its connection ended, a DELETE arrived or its lease did.

    The index receives it in the queue of its registrations.
    """
    own = is_responsible(node, client, profile)
    node = _without(node, client, own, at_ms)
    if profile.keeps_index:
        node = published(node, ClientReleased(client.name), at_ms, profile)
    return published(node, ClientRemoved(client.name, own), at_ms, profile) if own else node


def _without(node: NodeState, client: Client, own: bool, at_ms: int) -> NodeState:
    """Without the client. If another node owns it, it is announced no longer: that node has deleted it, or has not
    verified it for a lease."""
    node = node.without_client(client.name)
    if node.superseded_of(client.name):
        node = node.with_gone(client.name, at_ms).superseding(client.name, (client.revision,))
    if own or not node.unacknowledged:
        return node
    return node.with_unacknowledged(each for each in node.unacknowledged if each[0] != client.name)


@instead_of(removed)
def removed_by_one_event(node: NodeState, client: Client, at_ms: int, profile: Profile) -> NodeState:
    """One event notifies Distro and the index, in the queue of Distro (B13)."""
    own = is_responsible(node, client, profile)
    node = _without(node, client, own, at_ms)
    return published(node, ClientRemoved(client.name, own), at_ms, profile) if own or profile.keeps_index else node


@rule("audit-the-index", source="index-audit")
def audited(node: NodeState, at_ms: int, profile: Profile) -> NodeState:
    """Once every verify interval: events for the errors of the index or of the last push are published again."""
    if profile.keeps_index and not node.local.events:
        for event in corrections(node):
            node = published(node, event, at_ms, profile)
    return node


@instead_of(audited)
def not_audited(node: NodeState, _at_ms: int, _: Profile) -> NodeState:
    """The index is never compared with the table of clients (B14)."""
    return node


@rule("handle-a-registration", source="index-entries, index-push; ClientServiceIndexesManager")
def registered(node: NodeState, client: str, service: str, at_ms: int, profile: Profile) -> NodeState:
    """The index has a new entry before the push of its service is published."""
    return published(indexed(node, client, service, profile), ServiceChanged(service), at_ms, profile)


@instead_of(registered)
def registered_after_push(node: NodeState, client: str, service: str, at_ms: int, profile: Profile) -> NodeState:
    """The push is published before the index has the entry that caused it (B44)."""
    node = published(node, ServiceChanged(service), at_ms, profile)
    if not profile.event_queue:
        return indexed(node, client, service, profile)
    return _waiting(node, (IndexEntryDue(client, service), *node.local.events), profile)


def _unindexed(node: NodeState, client: str, service: str | None, at_ms: int, profile: Profile) -> NodeState:
    after = unindexed(node, client, service, profile)
    for changed_service, _ in sorted(set(node.local.index) - set(after.local.index)):
        after = published(after, ServiceChanged(changed_service), at_ms, profile)
    return after


def _taken(node: NodeState, event: LocalEvent, at_ms: int, profile: Profile) -> NodeState:
    left = list(node.local.events)
    left.remove(event)  # the first of its queue: an equal one behind it stays
    return handled(_waiting(node, tuple(left), profile), event, at_ms, profile)


def _waiting(node: NodeState, events: tuple[LocalEvent, ...], profile: Profile) -> NodeState:
    """Only the order within a queue matters: keep the queues apart, so that equal states are equal."""
    in_order = tuple(sorted(events, key=lambda event: queue_of(event, profile)))
    return node.changed(local=replace(node.local, events=in_order))
