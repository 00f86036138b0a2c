"""An operator sets the weight of an instance, and nodes have the weight deleted when they believe that the instance is
gone.

All nodes agree on both at once. A mark may stay for any time before its minute is over.
"""

from __future__ import annotations

from typing import NamedTuple

from distro_model.cluster.budget import Budget
from distro_model.cluster.statement import Transition, chooses, handles, of, watches
from distro_model.cluster.values import Life
from distro_model.events import MetadataDeleted, OperatorSet
from distro_model.messages import addresses_of
from distro_model.node import NodeState
from distro_model.rules.metadata import publishers
from distro_model.search.system import Fairness, Finding
from distro_model.transitions import Happens


class OperatorSetting(NamedTuple):
    address: str
    value: str


class Expired(NamedTuple):
    address: str


def set_something(life: Life, budget: Budget) -> OperatorSetting | None:
    """A different value each time."""
    if life.address not in addresses_of(life.contents[-1]) or not life.acts:
        return None
    return OperatorSetting(life.address, f"weight {budget.of('operator_changes') + 1}")


OPERATOR_SETS = Transition(
    "operator sets",
    (chooses(set_something, "nothing to set"), handles("every_node", of(OperatorSet, "now", "address", "value"))),
    lambda address, value: Happens("", f"an operator sets {value} for {address}"),
    cost="operator_changes",
)


def expired(node: NodeState | None) -> list[Expired]:
    return [] if node is None else [Expired(address) for address in node.expiring]


def published_still(node: NodeState | None, address: str) -> Finding | None:
    """INV-METADATA. It checks only the node itself, which may not have received a publisher on another node yet."""
    names = [] if node is None else sorted(client.name for client in publishers(node, address))
    if node is None or not names:
        return None
    what = f"{node.name} deleted the metadata of {address}, which {' and '.join(names)} publishes"
    return Finding("INV-METADATA", what)


DELETE_METADATA = Transition(
    "delete metadata",
    (
        chooses(expired, "no metadata is marked"),
        watches(published_still),
        handles("every_node", of(MetadataDeleted, "now", "address")),
    ),
    lambda node_name, address: Happens(
        node_name, f"deletes the metadata of {address}, a minute after its last publisher went"
    ),
    fair=Fairness.STRONG,
)
