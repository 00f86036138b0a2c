"""Metadata that an operator has set of an instance, its weight for example. It belongs to an address, not to a client.

All nodes agree on the values (they travel through the raft log, which is not part of Distro and takes no time here),
but each node decides separately whether an instance is gone: it marks the address when a publisher goes, removes the
mark when one comes, and after a minute under the mark has the metadata deleted everywhere. A client that comes back on
a new connection is two publishers of one address for a while, and the older one may go last (B43).
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import MetadataDeleted, OperatorSet
from distro_model.messages import addresses_of
from distro_model.node import Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.rule import instead_of, rule


@rule("set-metadata", source="metadata-set; NamingMetadataManager")
def on_operator_set(node: NodeState, event: OperatorSet, _: Profile) -> Step:
    """The metadata that an operator has set of an address holds on every node."""
    metadata = {**dict(node.metadata), event.address: event.value}
    return Step(node.changed(metadata=tuple(sorted(metadata.items()))))


@rule("delete-metadata", source="metadata-expiry; ExpiredMetadataCleaner")
def on_metadata_deleted(node: NodeState, event: MetadataDeleted, _: Profile) -> Step:
    """All nodes have agreed that the metadata is deleted."""
    return Step(
        node.changed(
            metadata=tuple(pair for pair in node.metadata if pair[0] != event.address),
            expiring=tuple(address for address in node.expiring if address != event.address),
        )
    )


@rule("mark-metadata", source="metadata-expiry; NamingMetadataManager.handleClientDisconnectEvent")
def with_marks(before: NodeState, after: Step, profile: Profile) -> Step:
    """Mark addresses that this step leaves without a publisher; remove the mark from addresses that it publishes."""
    marks = set(after.node.expiring)
    for address, _ in after.node.metadata:
        old, new = publishers(before, address), publishers(after.node, address)
        if new - old:
            marks.discard(address)
        elif {client.name for client in old} - {client.name for client in new} and is_marked(new, profile):
            marks.add(address)
    return Step(after.node.changed(expiring=tuple(sorted(marks))), after.outputs)


@rule("choose-what-to-mark", source="metadata-expiry")
def is_marked(left: frozenset[Client], _: Profile) -> bool:
    """The metadata of an address stays while any client publishes the address."""
    return not left


@instead_of(is_marked)
def is_always_marked(_left: frozenset[Client], _: Profile) -> bool:
    """When a publisher goes, the node does not look for another (B43)."""
    return True


def publishers(node: NodeState, address: str) -> frozenset[Client]:
    """Without their leases, so that a renewal is no new publication."""
    found = (client for client in node.clients if address in addresses_of(client.content))
    return frozenset(replace(client, renewed_ms=0) for client in found)
