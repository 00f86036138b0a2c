"""Guarantees to a client of one node: its requests took effect, and lists show what is published.

Both are checked where the node has *drained*: no local event waits and no request or set-up is half done. A lost event
leaves the index wrong for a while even where it is repaired, so after one the lists are checked in settled states
(`checks.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from distro_model.bounded.layout import BUDGET, Layout, client_column, node_column
from distro_model.cluster.budget import Budget
from distro_model.cluster.values import Connection, Life
from distro_model.messages import text_of
from distro_model.node import NodeState
from distro_model.properties.checks import Function, at_rest, finds, settled_lookup, sliced
from distro_model.rules.index import projection
from distro_model.search.system import Alternative, Lookup


def of_homes(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-CLIENTACK: each client at the node that it is connected to."""
    for client in layout.clients:
        home = sliced(layout, client)[layout.home(client)]
        yield (home, finds("INV-CLIENTACK", differs_from_acknowledged, *home.writes, client_column(client)))


def differs_from_acknowledged(node: NodeState | None, life: Life) -> str | None:
    """The node holds content that differs from the content acknowledged to the client."""
    if node is None or node.local.is_busy or life.connection is not Connection.OPEN:
        return None
    held = node.client(life.client)
    content = () if held is None else held.content
    if content == life.acknowledged:
        return None
    return (
        f"{life.client} has the acknowledged content {text_of(life.acknowledged)}, {node.name} has {text_of(content)}"
    )


def of_indexes(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-INDEX: the index and the last push of each node."""
    if not layout.bounds.index:
        return
    for node in layout.nodes:
        found = finds("INV-INDEX", misindexed, node_column(node))
        if not layout.bounds.lost_events:
            yield (found,)
            continue
        yield (Lookup("an event was lost", lost_none(layout.bounds.lost_events), (BUDGET,)), found)
        yield (*at_rest(layout), found, settled_lookup(layout))


@cache
def lost_none(lost_events: int) -> Function:
    def has_all(budget: Budget) -> Sequence[Alternative]:
        return ((),) if budget.of("lost_events") == lost_events else ()

    return has_all


def misindexed(node: NodeState | None) -> str | None:
    """With nothing left to handle, the index or the last push disagrees with the table of clients."""
    if node is None or node.local.is_busy:
        return None
    truth = projection(node)
    index, pushed = set(node.local.index), set(node.local.pushed)
    surplus = sorted(index - {shown[:2] for shown in truth})
    missing = sorted({shown[:2] for shown in truth} - index)
    if surplus:
        what = f"has {surplus[0][1]} under {surplus[0][0]}, which it does not publish"
    elif missing:
        what = f"does not have {missing[0][1]} under {missing[0][0]}, which it publishes"
    elif pushed != set(truth):
        what = f"is right, its last push is not: it showed {_text(node.local.pushed)} instead of {_text(truth)}"
    else:
        return None
    return f"the index of {node.name} {what}"


def _text(shown: tuple[tuple[str, str, str], ...]) -> str:
    return ", ".join(f"{service} {instance}" for service, _, instance in shown) or "nothing"
