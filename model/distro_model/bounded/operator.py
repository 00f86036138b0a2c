"""An operator sets the weight of an instance, and nodes have it deleted when they believe that the instance is gone.

Both are agreed on by all nodes at once. A mark may stay for any time before its minute is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distro_model.bounded.draft import BUDGET, Draft, Layout, client_column, node_column
from distro_model.bounded.values import Budget, Life
from distro_model.events import MetadataDeleted, OperatorSet
from distro_model.messages import addresses_of
from distro_model.node import NodeState
from distro_model.rules.metadata import publishers
from distro_model.search.system import Alternative, Chain, Fairness, Finding
from distro_model.transitions import DeletesMetadata, OperatorSets


def operator_chains(layout: Layout) -> Iterator[Chain]:
    if not layout.bounds.operator_changes:
        return
    for client in layout.clients:
        yield _sets(layout, client)
    for node in layout.nodes:
        yield _deletes(layout, node)


def _sets(layout: Layout, client: str) -> Chain:
    draft = Draft(layout, "operator sets", client)
    draft.look("nothing to set", sets, (client_column(client), BUDGET), (BUDGET, "event"))
    for node in layout.nodes:
        draft.tell(node, "event")
    return draft.chain(lambda value: _operator_sets(value("event")), fair=Fairness.NONE)


def sets(life: Life, budget: Budget) -> Sequence[Alternative]:
    less = budget.less("operator_changes")
    if less is None or life.address not in addresses_of(life.contents[-1]) or not life.acts:
        return ()
    return ((less, OperatorSet(0, life.address, f"weight {budget.operator_changes}")),)


def _operator_sets(event: object) -> OperatorSets:
    assert isinstance(event, OperatorSet)
    return OperatorSets(event.address, event.value)


def _deletes(layout: Layout, node: str) -> Chain:
    draft = Draft(layout, "delete metadata", node)
    draft.look("no metadata is marked", expired, (node_column(node),), ("event",))
    draft.alarm(of_published, (node_column(node), "event"))
    for each in layout.nodes:
        draft.tell(each, "event")
    return draft.chain(lambda value: _node_deletes(node, value("event")), fair=Fairness.STRONG)


def expired(node: NodeState | None) -> Sequence[Alternative]:
    return () if node is None else tuple((MetadataDeleted(0, address),) for address in node.expiring)


def of_published(node: NodeState, event: MetadataDeleted) -> Sequence[Alternative]:
    """INV-METADATA. It asks the node itself: of a publisher elsewhere it may not have heard yet."""
    names = sorted(client.name for client in publishers(node, event.address))
    if not names:
        return ((None,),)
    what = f"{node.name} has what an operator set of {event.address} deleted, which {' and '.join(names)} publishes"
    return ((Finding("INV-METADATA", what),),)


def _node_deletes(node: str, event: object) -> DeletesMetadata:
    assert isinstance(event, MetadataDeleted)
    return DeletesMetadata(node, event.address)
