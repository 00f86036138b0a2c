"""Checks of every state about clients of the HTTP API: one owner, one content, and an end when their beats end.

*Settled* is defined in `checks.py`; where an owner may not have received a change, it also requires that the next beat
of the client changes nothing: beats are the anti-entropy of such an owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.layout import STALE, Layout, ip_column
from distro_model.cluster.crashes import Pairs
from distro_model.cluster.values import IpLife
from distro_model.events import BeatCheckDue
from distro_model.messages import shown, text_of
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.properties.checks import (
    Function,
    Judge,
    LookupChains,
    Nodes,
    after_each,
    all_slices,
    at_rest,
    contents_text,
    finds,
    held_by,
    peers_of,
    settled_lookup,
    sliced,
    stable,
)
from distro_model.rules.owners import is_responsible, owner_of
from distro_model.search.system import Alternative, Lookup


def of_settled_ip_clients(property_id: str, judge_by: Callable[[Profile], Judge]) -> LookupChains:
    """The state of one ip:port client at all nodes, in settled states."""

    def lookup_chains(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
        judge = judge_by(layout.profile)
        for client in layout.ip_clients:
            reads = ("all nodes", ip_column(client))
            is_unknown = may_be_unknown_to_owner(layout.bounds)
            beat = Lookup("a beat would change it", unchanged_by_beat(layout.profile), reads)
            yield (
                *at_rest(layout),
                *((beat,) if is_unknown else ()),
                finds(property_id, judge, *reads),
                settled_lookup(layout),
            )

    return lookup_chains


def may_be_unknown_to_owner(bounds: Bounds) -> bool:
    """The owner may not hold an accepted change, until the next beat: another node accepted it, which believed the
    owner DOWN and whose single announcement may be lost; or the owner has crashed, and while it loaded no other node
    was on its list. In all other bounds the owner has accepted it and has to hold it."""
    return bounds.flips > 0 or (bounds.swallows > 0 and bounds.watches_members) or (bounds.crashes * bounds.leaves > 0)


@cache
def unchanged_by_beat(profile: Profile) -> Function:
    """The next beat creates nothing at the node that handles it, whichever node receives it."""

    def unchanged(nodes: Nodes, life: IpLife) -> Sequence[Alternative]:
        if not life.published or life.silence:
            return ((),)
        owners = [node for node in nodes if node is not None and _owns(node, life.client, profile)]
        return ((),) if all(node.client(life.client) is not None for node in owners) else ()

    return unchanged


def of_ownership(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    if not layout.bounds.watches_members:
        return
    for client in layout.ip_clients:
        found = finds("INV-OWNER", _misowned(layout.profile), "all nodes", ip_column(client), STALE)
        yield (*all_slices(layout, client), found)


@cache
def _misowned(profile: Profile) -> Judge:
    """There is an owner once no node can still believe a stopped node alive; there is exactly one when all beliefs are
    fresh."""

    def judge(nodes: Nodes, life: IpLife, stale: Pairs) -> str | None:
        running = [node for node in nodes if node is not None]
        lists = {tuple(sorted((node.name, *node.others))) for node in running}
        names = {node.name for node in running}
        if not life.published or len(lists) != 1 or any(node in names and other not in names for node, other in stale):
            return None
        owners = [node.name for node in running if _owns(node, life.client, profile)]
        fresh = all(node not in names for node, _ in stale)
        if owners and not (fresh and len(owners) > 1):
            return None
        return f"{life.client} is owned by {' and '.join(owners) or 'no node'}"

    return judge


def _owns(node: NodeState, client: str, profile: Profile) -> bool:
    held = node.client(client)
    return owner_of(node, client, profile) == node.name if held is None else is_responsible(node, held, profile)


def ip_diverged(nodes: Nodes, life: IpLife) -> str | None:
    held = held_by(nodes, life.client)
    if not stable(nodes) or not life.published or life.silence or len(set(held.values())) < 2:
        return None
    return f"{life.client}: {contents_text(held)}"


def unshown(nodes: Nodes, life: IpLife) -> str | None:
    """All nodes show the content last acknowledged to the client. (Deregistered: see INV-RESURRECT.)"""
    held = held_by(nodes, life.client)
    claimed = life.published and life.sure and not life.silence and stable(nodes)
    if not claimed or set(map(shown, held.values())) == {life.published}:
        return None
    return f"{life.client} was answered for {text_of(life.published)}: {contents_text(held)}"


@cache
def shown_after_silence(profile: Profile) -> Judge:
    """From here on the client is silent: after both time-outs and the checks of beats no node shows it any more."""

    def judge(nodes: Nodes, life: IpLife) -> str | None:
        held = [node for node in nodes if node is not None and node.client(life.client) is not None]
        owners = [node.name for node in held if _owns(node, life.client, profile)]
        if not owners:
            return None
        left = nodes
        for silent_ms in (profile.beat_timeout_ms, profile.beat_delete_ms):
            silent = tuple(node and _silent_for(node, life.client, silent_ms) for node in left)
            left, _ = after_each(silent, BeatCheckDue(0), profile)
        peers = [node for owner in owners for node in peers_of(left, owner)]
        holders = [name for name, content in held_by(tuple(peers), life.client).items() if content]
        where = ", ".join(holders)
        return f"{life.client} falls silent here and is shown for ever by {where}" if holders else None

    return judge


def _silent_for(node: NodeState, client: str, silent_ms: int) -> NodeState:
    held = node.client(client)
    if held is None:
        return node
    beats = tuple((service, -silent_ms) for service, _ in held.beats)
    return node.with_client(replace(held, beats=beats))


def of_equal_revisions(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
    """INV-REV for ip:port clients, whose revisions are hashes: nodes with the same revision have the same content."""
    for client in layout.ip_clients:
        at = sliced(layout, client)
        for one, other in combinations(layout.nodes, 2):
            yield (at[one], at[other], finds("INV-REV", _misrevised(client), *at[one].writes, *at[other].writes))


@cache
def _misrevised(client: str) -> Judge:
    def judge(one: NodeState | None, other: NodeState | None) -> str | None:
        held = None if one is None else one.client(client)
        copy = None if other is None else other.client(client)
        if one is None or other is None or held is None or copy is None:
            return None
        if held.revision != copy.revision or held.content == copy.content or not held.revision:
            return None
        return f"{client} at one revision: {contents_text({one.name: held.content, other.name: copy.content})}"

    return judge
