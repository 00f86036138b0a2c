"""Anti-entropy and leases: the owner asks, the holder of a copy confirms and renews, or forgets.

A verify is sent for native clients only, and only once the own load is finished. A typed failure brings a full copy to
the one peer that failed; every other bad end of a verify brings nothing (D10).
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import CallEnded, LeaseCheckDue, Reply, RequestReceived, Send, VerifyDue
from distro_model.local_events import ClientVerifyFailed
from distro_model.messages import FAIL, SUCCESS, CallResult, OwnedList, Verify
from distro_model.node import Client, NodeState, Step
from distro_model.profiles import Profile
from distro_model.rules.ip_clients import verified
from distro_model.rules.notify import audited, published, removed
from distro_model.rules.owners import is_ip_client, is_responsible, owner_of
from distro_model.rules.rule import rule
from distro_model.rules.sync import is_reachable


@rule("verify round", source="wire-protocol.md 6.5; DistroVerifyTimedTask, DistroVerifyExecuteTask")
def on_verify_due(node: NodeState, event: VerifyDue, profile: Profile) -> Step:
    node = audited(node, event.at_ms, profile)
    if not node.loaded or not profile.verifies:
        return Step(node)
    owned = [client for client in node.clients if is_responsible(node, client, profile)]
    targets = [target for target in node.others if event.only in (None, target) and is_reachable(node, target, profile)]
    verifies = tuple(
        Send(target, Verify(client.name, client.revision if profile.revisions_travel else 0))
        for client in owned
        for target in targets
    )
    if profile.verify_lists_owned:
        names = tuple(client.name for client in owned if is_ip_client(client.name))
        verifies += tuple(Send(target, OwnedList(names)) for target in targets)
    return Step(node, verifies)


@rule("list of owned clients received", source="wire-protocol.md 6.9, known-bugs.md 3, v1-checksum-dual-owner-delete")
def on_owned_list(node: NodeState, event: RequestReceived, owned: OwnedList, profile: Profile) -> Step:
    """Whatever this node attributes to the sender, and the sender does not name, is gone."""
    for client in node.clients:
        unnamed = is_ip_client(client.name) and client.name not in owned.clients
        if unnamed and owner_of(node, client.name, profile) == event.source:
            node = removed(node, client, event.at_ms, profile)
    return Step(node, (Reply(SUCCESS),))


@rule("VERIFY received", source="wire-protocol.md 6.5; ConnectionBasedClientManager.verifyClient")
def on_verify(node: NodeState, event: RequestReceived, verify: Verify, profile: Profile) -> Step:
    held = node.client(verify.client)
    if held is None and profile.verify_creates:
        created = Client(verify.client, profile.replicas_are_native, 0, (), event.at_ms)
        return Step(node.with_client(created), (Reply(FAIL),))
    if held is None or not is_confirmed(held, verify, profile):
        return Step(node, (Reply(FAIL),))
    if is_ip_client(held.name):
        return Step(node.with_client(verified(node, held, event.source, event.at_ms, profile)), (Reply(SUCCESS),))
    if held.native or held.renewed_ms == event.at_ms:
        return Step(node, (Reply(SUCCESS),))
    return Step(node.with_client(replace(held, renewed_ms=event.at_ms)), (Reply(SUCCESS),))


def is_confirmed(held: Client, verify: Verify, profile: Profile) -> bool:
    """2.0.x tests existence only (B02); from 2.1.2 the revision, except that 0 always passes (D11)."""
    if not profile.verify_tests_revision:
        return True
    return verify.revision == held.revision or (profile.revision_zero_passes and verify.revision == 0)


@rule("verify ended", source="wire-protocol.md 5.4, 6.1, 6.5; ClientVerifyFailedEvent")
def on_verify_ended(node: NodeState, event: CallEnded, verify: Verify, profile: Profile) -> Step:
    """Only a typed failure counts, and only while the node still owns the client: then it is synced with delay 0."""
    held = node.client(verify.client)
    if event.answer.result is not CallResult.FAIL or held is None or not is_responsible(node, held, profile):
        return Step(node)
    for target in (event.target,) if profile.repairs_only_the_failed else node.others:
        node = published(node, ClientVerifyFailed(verify.client, target), event.at_ms, profile)
    return Step(node)


@rule("lease check", source="wire-protocol.md 6.7; ConnectionBasedClientManager.ExpiredClientCleaner")
def on_lease_check_due(node: NodeState, event: LeaseCheckDue, profile: Profile) -> Step:
    if profile.grace_after_pause and is_after_pause(event, profile):
        return Step(_leases_anew(node, event.at_ms))
    for client in node.clients:
        if is_expired(client, event.at_ms, profile):
            node = removed(node, client, event.at_ms, profile)
    gone = tuple(each for each in node.gone if not is_forgotten(each[1], event.at_ms, profile))
    return Step(node if len(gone) == len(node.gone) else replace(node, gone=gone))


def is_after_pause(event: LeaseCheckDue, profile: Profile) -> bool:
    """A check was missed altogether: the node was suspended, or its clock jumped, and renewals may still be waiting."""
    return event.last_ms is not None and event.at_ms - event.last_ms > 2 * profile.lease_check_ms


def _leases_anew(node: NodeState, at_ms: int) -> NodeState:
    """Of tombstones too: what they guard against has been waiting as well."""
    return replace(
        node,
        clients=tuple(each if each.native else replace(each, renewed_ms=at_ms) for each in node.clients),
        gone=tuple((client, at_ms) for client, _ in node.gone),
    )


def is_expired(client: Client, at_ms: int, profile: Profile) -> bool:
    """Strictly longer than the lease without a renewal. Not native clients; ip:port clients have their own check."""
    if is_ip_client(client.name) or (client.native and not profile.natives_expire):
        return False
    return at_ms - client.renewed_ms > profile.lease_ms


def is_forgotten(since_ms: int, at_ms: int, profile: Profile) -> bool:
    """A tombstone has outlived every copy that could still be on its way: it is kept as long as a lease."""
    return at_ms - since_ms > profile.lease_ms
