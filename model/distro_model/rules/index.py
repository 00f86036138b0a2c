"""The service index: from a service to the clients that publish it; queries and pushes use it.

It is maintained by events only, beside the table of clients; the two agree when every event was handled, once and in
order. A push is assumed to reach its subscriber at once: only its content and the time of its computation matter here.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.local_events import LocalEvent, ServiceChanged, ServiceDeregistered, ServiceRegistered
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules.rule import rule

Entry = tuple[str, str]
"""(service, client)"""
Shown = tuple[str, str, str]
"""(service, client, instance)"""


@rule("index-a-service", source="index-entries; ClientServiceIndexesManager.addPublisherIndexes")
def indexed(node: NodeState, client: str, service: str, _: Profile) -> NodeState:
    """The service has this client among its publishers.

    The rule does not check that the client still exists: it assumes the order of the events (B13).
    """
    return _with_index(node, {*node.local.index, (service, client)})


@rule("unindex-a-service", source="index-entries; ClientServiceIndexesManager.removePublisherIndexes")
def unindexed(node: NodeState, client: str, service: str | None, _: Profile) -> NodeState:
    """Remove the entries of the client: under one service, or (None) under all."""
    return _with_index(
        node, {entry for entry in node.local.index if entry[1] != client or service not in (None, entry[0])}
    )


@rule("push-a-service", source="index-push; ServiceStorage, PushExecuteTask")
def pushed(node: NodeState, service: str, _: Profile) -> NodeState:
    """The current service, by the index and the table, is pushed to the subscriber."""
    kept = [shown for shown in node.local.pushed if shown[0] != service]
    now = [shown for shown in queried(node) if shown[0] == service]
    return node.changed(local=replace(node.local, pushed=tuple(sorted((*kept, *now)))))


def queried(node: NodeState) -> tuple[Shown, ...]:
    """The result of a query for each service: its entries in the index, as far as the table has such a client."""
    published = set(projection(node))
    return tuple(shown for shown in sorted(published) if shown[:2] in node.local.index)


def projection(node: NodeState) -> tuple[Shown, ...]:
    """The publishers by the table of clients, ascending."""
    return tuple(
        sorted((service, client.name, instance) for client in node.clients for service, instance in client.content)
    )


def corrections(node: NodeState) -> tuple[LocalEvent, ...]:
    """The events that would make index and last push agree with the table; none where they agree already."""
    truth = projection(node)
    entries, index = {shown[:2] for shown in truth}, set(node.local.index)
    missing = tuple(ServiceRegistered(client, service) for service, client in sorted(entries - index))
    surplus = tuple(ServiceDeregistered(client, service) for service, client in sorted(index - entries))
    differing = sorted({shown[0] for shown in set(truth) ^ set(node.local.pushed)})
    return (*missing, *surplus) or tuple(ServiceChanged(service) for service in differing)


def _with_index(node: NodeState, index: set[Entry]) -> NodeState:
    return node.changed(local=replace(node.local, index=tuple(sorted(index))))
