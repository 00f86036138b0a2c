"""Crashes and restarts of nodes."""

from __future__ import annotations

from dataclasses import replace

from distro_model.actions import Crash, Restart
from distro_model.cluster.registers import Node
from distro_model.cluster.statement import Transition, handles, of, records, writes
from distro_model.cluster.values import Connection, IpLife, Life, Link
from distro_model.events import LoadDue
from distro_model.node import Addresses, NodeState, fresh_node
from distro_model.search.system import Fairness

Pairs = tuple[tuple[str, str], ...]
"""(node, other): the node's belief about the other may legitimately be out of date."""


def stop(node: NodeState | None) -> Node | None:
    return None if node is None else Node(None)


def vanish(outgoing: Link) -> Link:
    return Link(outgoing.down, cut=outgoing.cut)


def refuse(incoming: Link) -> Link:
    return Link(True, incoming.refused().calls, cut=incoming.cut)


def disconnect(life: Life, node_name: str, period: int) -> Life:
    """The client's own node has crashed, and its connection with it; other nodes may keep copies that no node
    removes."""
    if life.home != node_name or not life.is_up:
        return replace(life, left_cleanly=False)
    return replace(life, connection=Connection.ENDED, silent=False, ended_period=period)


def with_possible_loss(ip_life: IpLife) -> IpLife:
    """A node has crashed, or left a list: state that only it held is lost, or not sent to every node."""
    return replace(ip_life, sure=False)


def with_pairs(stale: Pairs, *pairs: tuple[str, str]) -> Pairs:
    return tuple(sorted({*stale, *pairs}))


def stop_unobserved(stale: Pairs, node_name: str, others: tuple[str, ...]) -> Pairs:
    """No node has observed yet that it has stopped, including those that believed it DOWN before."""
    kept = tuple(pair for pair in stale if pair[0] != node_name)
    return with_pairs(kept, *((other, node_name) for other in others))


CRASH = Transition(
    "crash",
    (
        writes(stop, "{node_name} is down"),
        writes(vanish),
        writes(refuse),
        writes(disconnect),
        records(with_possible_loss),
        records(stop_unobserved),
    ),
    of(Crash, "node_name"),
    cost="crashes",
)
"""The node loses its memory; calls that wait for it fail, calls for whose answers it waited vanish."""


def start(
    node: NodeState | None, node_name: str, others: tuple[str, ...], addresses: Addresses, now: int
) -> Node | None:
    return None if node is not None else Node(fresh_node(node_name, others, now, addresses))


def restore_link(incoming: Link) -> Link:
    return Link(False, incoming.calls, cut=incoming.cut)


def start_unobserved(stale: Pairs, node_name: str, others: tuple[str, ...]) -> Pairs:
    """It believes all members UP, and the others have not observed that it runs again."""
    return with_pairs(stale, *((node_name, each) for each in others), *((each, node_name) for each in others))


RESTART = Transition(
    "restart",
    (
        writes(start, "{node_name} runs"),
        writes(restore_link),
        records(start_unobserved),
        handles("node", of(LoadDue, "now")),
    ),
    of(Restart, "node_name"),
    fair=Fairness.STRONG,
)
"""The node starts empty and loads at once. Calls that were waiting for the previous process still fail."""
