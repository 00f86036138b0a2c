"""Clients of the HTTP API, observed from outside: their differences at a node whose inside is not observed.

The node's clock determines their state: it checks their beats and leases once in a period, at an unknown moment, so
such a check happens at its earliest or any time until the period is over. Their owner follows from the node's beliefs
about its members, which are known in parts only. And each node computes their revision as a hash in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from distro_model.clock.traffic import compared_revision
from distro_model.events import AnnounceDue, BeatCheckDue, Event, HttpAction, HttpReceived, LeaseCheckDue
from distro_model.messages import Change, Request, Verify, shown
from distro_model.node import Member, MemberState, NodeState
from distro_model.profile import Profile
from distro_model.rules.owners import is_alive, is_ip_client, owner_of
from distro_model.step import step

Alive = Mapping[str, frozenset[bool]]
"""Peer -> whether the node believes it to be not DOWN; both where that is not known."""


def as_seen(request: Request) -> Request:
    """The part of a request that can be compared outside of its sender."""
    if isinstance(request, Change) and is_ip_client(request.client):
        return Change(request.client, 0, shown(request.content))
    if isinstance(request, Verify):
        return replace(request, revision=compared_revision(request.client, request.revision) or 0)
    return request


def does_nothing(event: Event, before: NodeState, after: NodeState) -> bool:
    """A node may not know a service that its client does not publish there; then it ignores the request, even for the
    lease of the client (docs/protocol #http-v1)."""
    if not isinstance(event, HttpReceived) or event.action is not HttpAction.DEREGISTER:
        return False
    held, left = before.client(event.client), after.client(event.client)
    return held is not None and left is not None and held.content == left.content


def announced(node: NodeState, at_ms: int, profile: Profile) -> NodeState:
    """Where changes are announced by an event (B22): it is handled at once."""
    while node.unannounced:
        node = step(node, AnnounceDue(at_ms, node.unannounced[0]), profile).node
    return node


def is_publishing(node: NodeState, client: str) -> bool:
    held = node.client(client)
    return held is not None and bool(held.content)


def checked(node: NodeState, client: str, until_ms: int, profile: Profile) -> Iterator[tuple[int, NodeState]]:
    """The results of checks of its beats and its lease, each with its earliest time."""
    held = node.client(client)
    if held is None:
        return
    beats = {at_ms for _, beat_ms in held.beats for at_ms in _ends_of_beat(beat_ms, profile)}
    leases = {held.renewed_ms + lease_ms + 1 for lease_ms in (profile.empty_lease_ms, profile.lease_ms)}
    checks: list[BeatCheckDue | LeaseCheckDue] = [BeatCheckDue(at_ms, (client,)) for at_ms in sorted(beats)]
    for check in (*checks, *map(LeaseCheckDue, sorted(leases))):
        if check.at_ms <= until_ms:
            after = announced(step(node, check, profile).node, check.at_ms, profile)
            if after != node:
                yield check.at_ms, after


def _ends_of_beat(beat_ms: int, profile: Profile) -> tuple[int, int]:
    return beat_ms + profile.beat_timeout_ms, beat_ms + profile.beat_delete_ms


def believing(node: NodeState, client: str, alive: Alive, profile: Profile) -> Iterator[NodeState]:
    """The same node, by whom it may take for the owner of the client: itself, if it may be so.

    Whom it believes gone shows besides only in what it does not send, and nothing says when it must: for each owner
    those are kept in which as many members are alive as can be.
    """
    kept: dict[str, list[frozenset[str]]] = {}
    for there in sorted(_possible(alive), key=len, reverse=True):
        after = node
        for peer in alive:
            state = MemberState.UP if peer in there else MemberState.DOWN
            after = after if is_alive(after, peer) is (peer in there) else after.with_member(Member(peer, state))
        larger = kept.setdefault(owner_of(after, client, profile), [])
        if not any(there < each for each in larger):
            larger.append(there)
            yield after


def _possible(alive: Alive) -> list[frozenset[str]]:
    """The sets of peers that it may believe alive."""
    choices = product(*alive.values())
    return [frozenset(peer for peer, is_there in zip(alive, each, strict=True) if is_there) for each in choices]
