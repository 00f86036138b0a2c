"""Receiving a peer's state: CHANGE, DELETE, and being asked for a snapshot.

A release checks neither who sent a request nor whether the client is native here (B01, B41). Where a profile protects
native clients, a request about one is answered with FAIL rather than ignored with SUCCESS: a SUCCESS must mean that the
data was applied (INV-ACK), and a sender that claims somebody else's client should be loud, not silently right.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import Reply, RequestReceived
from distro_model.messages import FAIL, SUCCESS, Answer, CallResult, Change, Delete
from distro_model.node import Action, Client, NodeState, Step
from distro_model.profiles import Profile, TakesRevision
from distro_model.rules.ip_clients import is_superseded
from distro_model.rules.owners import is_ip_client, is_responsible
from distro_model.rules.rule import rule
from distro_model.rules.sync import announced, copy_of


@rule("CHANGE received", source="wire-protocol.md 6.4; DistroClientDataProcessor.handlerClientSyncData")
def on_change(node: NodeState, event: RequestReceived, change: Change, profile: Profile) -> Step:
    if is_protected(node, change.client, profile) or is_superseded(node, event.source, change):
        return Step(node, (Reply(FAIL),))
    return Step(with_copy(node, change, event.at_ms, profile), (Reply(SUCCESS),))


@rule("DELETE received", source="wire-protocol.md 6.4; DistroClientDataProcessor.processData")
def on_delete(node: NodeState, event: RequestReceived, delete: Delete, profile: Profile) -> Step:
    """Removes the client whoever owns it; an unknown one is a success. The loss of a native one is announced."""
    if is_protected(node, delete.client, profile):
        return Step(node, (Reply(FAIL),))
    held = node.client(delete.client)
    if held is not None:
        after = node.without_client(delete.client)
        responsible = is_responsible(node, held, profile)
        node = announced(after, held.name, Action.DELETE, event.at_ms, profile) if responsible else after
    return Step(node, (Reply(SUCCESS),))


@rule("SNAPSHOT received", source="wire-protocol.md 6.8; DistroClientDataProcessor.getDatumSnapshot")
def on_snapshot(node: NodeState, profile: Profile) -> Step:
    """Answers with everything it holds, own clients and copies, whether or not it is loaded itself (D14)."""
    given = [client for client in node.clients if not profile.loads_ranges or is_responsible(node, client, profile)]
    copies = tuple(copy_of(client, profile) for client in given)
    return Step(node, (Reply(Answer(CallResult.SUCCESS, copies)),))


@rule("copy applied", source="wire-protocol.md 6.4; DistroClientDataProcessor.upgradeClient")
def with_copy(node: NodeState, copy: Change, at_ms: int, profile: Profile) -> NodeState:
    """Create or bring up to date what is held of a client; an own one that really changed is announced again.

    An ip:port client is so only where acceptance does not count: whoever accepted the change has told everybody.
    """
    held = node.client(copy.client)
    if held is None:
        client = Client(copy.client, profile.replicas_are_native, copy.revision, copy.content, at_ms)
        changed = bool(copy.content)
    else:
        revision = copy.revision if profile.takes_revision is TakesRevision.ALWAYS else held.revision
        renewed_ms = at_ms if profile.sync_renews_lease else held.renewed_ms
        client = replace(held, revision=revision, content=copy.content, renewed_ms=renewed_ms)
        changed = held.content != copy.content
    if is_ip_client(client.name):
        own = is_responsible(node, client, profile)
        client = replace(client, beats=_beats(held, client, at_ms, renews=profile.sync_renews_lease and not own))
    node = node.with_client(client)
    announces = changed and (client.native or (not profile.hands_over and is_responsible(node, client, profile)))
    return announced(node, copy.client, Action.CHANGE, at_ms, profile) if announces else node


def _beats(before: Client | None, after: Client, at_ms: int, *, renews: bool) -> tuple[tuple[str, int], ...]:
    """A new or changed instance begins with a beat; an old one keeps its own, unless a sync to a copy renews all."""
    old, beats = (before.content, dict(before.beats)) if before is not None else ((), {})
    keeps = set() if renews else set(old)
    return tuple((pair[0], beats.get(pair[0], at_ms) if pair in keeps else at_ms) for pair in after.content)


def is_protected(node: NodeState, name: str, profile: Profile) -> bool:
    """The client is connected to this very node and the profile lets nobody else touch it."""
    held = node.client(name)
    return profile.protects_native and held is not None and held.native
