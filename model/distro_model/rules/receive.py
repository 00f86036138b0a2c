"""Receiving a peer's state: CHANGE, DELETE, and being asked for a snapshot.

A release checks neither who sent a request nor whether the client is native here (B01, B41). Where a profile protects
native clients, a request about one is answered with FAIL rather than ignored with SUCCESS: a SUCCESS must mean that the
data was applied (INV-ACK), and a sender that claims somebody else's client should be loud, not silently right.
The same goes for a CHANGE that comes after the DELETE of its client: its sender finds the client gone when it tries
again, and sends the DELETE, which succeeds.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import HandlingRaised, Reply, RequestReceived
from distro_model.messages import FAIL, SUCCESS, Answer, CallResult, Change, Delete, is_batch
from distro_model.node import Client, NodeState, Step
from distro_model.profiles import Profile, TakesRevision
from distro_model.rules.ip_clients import is_superseded
from distro_model.rules.notify import removed, upgraded
from distro_model.rules.owners import is_ip_client, is_responsible
from distro_model.rules.rule import rule
from distro_model.rules.sync import copy_of


@rule("CHANGE received", source="wire-protocol.md 6.4; DistroClientDataProcessor.handlerClientSyncData")
def on_change(node: NodeState, event: RequestReceived, change: Change, profile: Profile) -> Step:
    if is_refused(node, change.client, profile) or is_superseded(node, event.source, change):
        return Step(node, (Reply(FAIL),))
    if is_poisoned(node, change, profile):
        return raised(node, profile)
    if profile.largest_revision is not None and change.revision > profile.largest_revision:
        held = node.client(change.client)
        content_only = replace(change, revision=0 if held is None else held.revision)
        return Step(with_copy(node, content_only, event.at_ms, profile), (Reply(FAIL),))
    return Step(with_copy(node, change, event.at_ms, profile), (Reply(SUCCESS),))


@rule("handler raised", source="wire-protocol.md 5.4, 6.10 (D5); known-bugs.md B16; DistroDataRequestHandler")
def on_handling_raised(node: NodeState, _: HandlingRaised, profile: Profile) -> Step:
    """Nothing was done; the releases before 2.5.1 say so in a code that nobody reads."""
    return raised(node, profile)


def raised(node: NodeState, profile: Profile) -> Step:
    return Step(node, (Reply(SUCCESS if profile.acknowledges_failed_applies else FAIL),))


@rule("DELETE received", source="wire-protocol.md 6.4; DistroClientDataProcessor.processData")
def on_delete(node: NodeState, event: RequestReceived, delete: Delete, profile: Profile) -> Step:
    """Removes the client whoever owns it; an unknown one is a success. The loss of a native one is announced."""
    if is_protected(node, delete.client, profile):
        return Step(node, (Reply(FAIL),))
    if node.client(delete.client) is None and not profile.unknown_delete_succeeds:
        return Step(node, (Reply(FAIL),))
    return Step(deleted(node, delete.client, event.at_ms, profile), (Reply(SUCCESS),))


@rule("SNAPSHOT received", source="wire-protocol.md 6.8; DistroClientDataProcessor.getDatumSnapshot")
def on_snapshot(node: NodeState, profile: Profile) -> Step:
    """Answers with everything it holds, own clients and copies; a release even when not loaded itself (D14)."""
    if profile.refuses_before_load and not node.loaded:
        return Step(node, (Reply(FAIL),))
    given = [client for client in node.clients if not profile.loads_ranges or is_responsible(node, client, profile)]
    copies = tuple(copy_of(client, profile) for client in given)
    if profile.largest_snapshot is not None and len(copies) > profile.largest_snapshot:
        return Step(node, (Reply(Answer(CallResult.ERROR)),))
    return Step(node, (Reply(Answer(CallResult.SUCCESS, copies)),))


@rule("copy applied", source="wire-protocol.md 6.4; DistroClientDataProcessor.upgradeClient")
def with_copy(node: NodeState, copy: Change, at_ms: int, profile: Profile) -> NodeState:
    """Create or bring up to date what is held of a client; an own one that really changed is announced again.

    An ip:port client is so only where acceptance does not count: whoever accepted the change has told everybody.
    """
    held = node.client(copy.client)
    if held is None:
        client = Client(copy.client, profile.replicas_are_native, copy.revision, copy.content, at_ms)
    else:
        revision = copy.revision if profile.takes_revision is TakesRevision.ALWAYS else held.revision
        renewed_ms = at_ms if profile.sync_renews_lease else held.renewed_ms
        client = replace(held, revision=revision, content=copy.content, renewed_ms=renewed_ms)
    if is_ip_client(client.name):
        own = is_responsible(node, client, profile)
        client = replace(client, beats=_beats(held, client, at_ms, renews=profile.sync_renews_lease and not own))
    before = () if held is None else held.content
    return upgraded(node.with_client(client), client, before, at_ms, profile)


def _beats(before: Client | None, after: Client, at_ms: int, *, renews: bool) -> tuple[tuple[str, int], ...]:
    """A new or changed instance begins with a beat; an old one keeps its own, unless a sync to a copy renews all."""
    old, beats = (before.content, dict(before.beats)) if before is not None else ((), {})
    keeps = set() if renews else set(old)
    return tuple((pair[0], beats.get(pair[0], at_ms) if pair in keeps else at_ms) for pair in after.content)


def deleted(node: NodeState, name: str, at_ms: int, profile: Profile) -> NodeState:
    """Gone, known or not, and with tombstones remembered as gone, so that nothing late brings it back (B26, B27).

    A connection id is never used twice, so nobody can miss it; an ip:port client may well come back.
    """
    held = node.client(name)
    if held is not None:
        node = removed(node, held, at_ms, profile)
    return node.with_gone(name, at_ms) if profile.tombstones and not is_ip_client(name) else node


def is_refused(node: NodeState, name: str, profile: Profile) -> bool:
    """What a peer says of this client is not applied: it is native here, or was deleted."""
    return is_protected(node, name, profile) or node.is_gone(name)


def is_poisoned(node: NodeState, copy: Change, profile: Profile) -> bool:
    """Applying this raises: a batch for a service under which the copy has a single instance (B19). Nothing changes.

    Batches are applied before single instances, so what is left half done is, at most, another batch of that client.
    """
    held = node.client(copy.client)
    if profile.batch_replaces_single or held is None:
        return False
    before = dict(held.content)
    return any(is_batch(after) and not is_batch(before.get(service, after)) for service, after in copy.content)


def is_protected(node: NodeState, name: str, profile: Profile) -> bool:
    """The client is connected to this very node and the profile lets nobody else touch it."""
    held = node.client(name)
    return profile.protects_native and held is not None and held.native
