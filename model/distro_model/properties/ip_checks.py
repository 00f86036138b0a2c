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
    LookupChains,
    Nodes,
    after_each,
    all_slices,
    at_rest,
    contents_text,
    held_by,
    peers_of,
    settled_lookup,
    sliced,
    stable,
)
from distro_model.rules.owners import is_responsible, owner_of
from distro_model.search.system import Alternative, Finding, Lookup


def of_settled_ip_clients(function: Callable[[Profile], Function]) -> LookupChains:
    """The state of one ip:port client at all nodes, in settled states."""

    def lookup_chains(layout: Layout) -> Iterator[tuple[Lookup, ...]]:
        found = function(layout.profile)
        for client in layout.ip_clients:
            reads = ("all nodes", ip_column(client))
            is_unknown = may_be_unknown_to_owner(layout.bounds)
            beat = Lookup("a beat would change it", unchanged_by_beat(layout.profile), reads)
            yield (
                *at_rest(layout),
                *((beat,) if is_unknown else ()),
                Lookup("as it should be", found, reads, ("found",)),
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
        reads = ("all nodes", ip_column(client), STALE)
        found = Lookup("as it should be", _misowned(layout.profile), reads, ("found",))
        yield (*all_slices(layout, client), found)


@cache
def _misowned(profile: Profile) -> Function:
    """There is an owner once no node can still believe a stopped node alive; there is exactly one when all beliefs are
    fresh."""

    def found(nodes: Nodes, life: IpLife, stale: Pairs) -> Sequence[Alternative]:
        running = [node for node in nodes if node is not None]
        lists = {tuple(sorted((node.name, *node.others))) for node in running}
        names = {node.name for node in running}
        if not life.published or len(lists) != 1 or any(node in names and other not in names for node, other in stale):
            return ()
        owners = [node.name for node in running if _owns(node, life.client, profile)]
        fresh = all(node not in names for node, _ in stale)
        if not owners or (fresh and len(owners) > 1):
            return ((Finding("INV-OWNER", f"{life.client} is owned by {' and '.join(owners) or 'no node'}"),),)
        return ()

    return found


def _owns(node: NodeState, client: str, profile: Profile) -> bool:
    held = node.client(client)
    return owner_of(node, client, profile) == node.name if held is None else is_responsible(node, held, profile)


def ip_diverged(nodes: Nodes, life: IpLife) -> Sequence[Alternative]:
    held = held_by(nodes, life.client)
    if not stable(nodes) or not life.published or life.silence or len(set(held.values())) < 2:
        return ()
    return ((Finding("INV-CONV", f"{life.client}: {contents_text(held)}"),),)


def unshown(nodes: Nodes, life: IpLife) -> Sequence[Alternative]:
    """All nodes show the content last acknowledged to the client. (Deregistered: see INV-RESURRECT.)"""
    held = held_by(nodes, life.client)
    claimed = life.published and life.sure and not life.silence and stable(nodes)
    if not claimed or set(map(shown, held.values())) == {life.published}:
        return ()
    what = f"{life.client} was answered for {text_of(life.published)}: {contents_text(held)}"
    return ((Finding("INV-CLIENTACK", what),),)


@cache
def shown_after_silence(profile: Profile) -> Function:
    """From here on the client is silent: after both time-outs and the checks of beats no node shows it any more."""

    def found(nodes: Nodes, life: IpLife) -> Sequence[Alternative]:
        held = [node for node in nodes if node is not None and node.client(life.client) is not None]
        owners = [node.name for node in held if _owns(node, life.client, profile)]
        if not owners:
            return ()
        left = nodes
        for silent_ms in (profile.beat_timeout_ms, profile.beat_delete_ms):
            silent = tuple(node and _silent_for(node, life.client, silent_ms) for node in left)
            left, _ = after_each(silent, BeatCheckDue(0), profile)
        peers = [node for owner in owners for node in peers_of(left, owner)]
        holders = [name for name, content in held_by(tuple(peers), life.client).items() if content]
        if not holders:
            return ()
        where = ", ".join(holders)
        return ((Finding("INV-DEAD", f"{life.client} falls silent here and is shown for ever by {where}"),),)

    return found


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
            slices = (at[one], at[other])
            reads = [register for each in slices for register in each.writes]
            yield (*slices, Lookup("equal", _misrevised(client), tuple(reads), ("found",)))


@cache
def _misrevised(client: str) -> Function:
    def found(one: NodeState | None, other: NodeState | None) -> Sequence[Alternative]:
        held = None if one is None else one.client(client)
        copy = None if other is None else other.client(client)
        if one is None or other is None or held is None or copy is None:
            return ()
        if held.revision != copy.revision or held.content == copy.content or not held.revision:
            return ()
        contents = {one.name: held.content, other.name: copy.content}
        return ((Finding("INV-REV", f"{client} at one revision: {contents_text(contents)}"),),)

    return found
