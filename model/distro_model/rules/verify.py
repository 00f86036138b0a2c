"""Anti-entropy and leases: the owner verifies, the holder of a copy confirms and renews, or removes it.

A verify is sent for native clients only, and only once the node's own load is finished. A typed failure brings a full
copy to the one peer that failed; every other failure of a verify has no effect (D10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from distro_model.events import CallEnded, LeaseCheckDue, Reply, RequestReceived, Send, VerifyDue
from distro_model.local_events import ClientVerifyFailed
from distro_model.messages import FAIL, SUCCESS, CallResult, OwnedList, Verify
from distro_model.node import Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.ip_clients import ends_silent, verified
from distro_model.rules.notify import audited, published, removed
from distro_model.rules.owners import is_ip_client, is_responsible, owner_of
from distro_model.rules.rule import guard, instead_of, rule
from distro_model.rules.sync import is_reachable


@rule("verify", source="verify-round; DistroVerifyTimedTask, DistroVerifyExecuteTask")
def on_verify_due(node: NodeState, event: VerifyDue, profile: Profile) -> Step:
    """Once an interval, once loaded: ask each member about each client that this node owns."""
    node = audited(node, event.at_ms, profile)
    if not has_loaded(node, profile):
        return Step(node)
    owned = [client for client in node.clients if is_responsible(node, client, profile)]
    targets = verified_members(node, profile)
    verifies = tuple(
        Send(target, Verify(client.name, verified_revision(client, profile))) for client in owned for target in targets
    )
    return Step(node, (*verifies, *lists_sent(owned, targets, profile)))


@rule("number-a-verify", source="verify-round")
def verified_revision(client: Client, profile: Profile) -> int:
    """A verify carries the revision at which its owner has the client, or 0 where revisions do not travel."""
    return client.revision if profile.revisions_travel else 0


@guard(source="verify-round")
def has_loaded(node: NodeState, _: Profile) -> bool:
    """The node's own first load is finished."""
    return node.loaded


@rule("choose-whom-to-verify", source="verify-round")
def verified_members(node: NodeState, profile: Profile) -> tuple[str, ...]:
    """A verify round goes to every member that requests are sent to."""
    return tuple(target for target in node.others if is_reachable(node, target, profile))


@rule("list-what-is-owned", source="verify-v1")
def lists_sent(_owned: Sequence[Client], _targets: Sequence[str], _: Profile) -> tuple[Send, ...]:
    """A verify is about one client; clients that its sender does not name are not changed."""
    return ()


@rule("apply-a-list-of-what-is-owned", source="verify-v1")
def on_owned_list(node: NodeState, event: RequestReceived, owned: OwnedList, profile: Profile) -> Step:
    """Every client that this node attributes to the sender, and the sender does not name, is removed."""
    for client in node.clients:
        unnamed = is_ip_client(client.name) and client.name not in owned.clients
        if unnamed and owner_of(node, client.name, profile) == event.source:
            node = removed(node, client, event.at_ms, profile)
    return Step(node, (Reply(SUCCESS),))


@rule("confirm", source="verify-accept; ConnectionBasedClientManager.verifyClient")
def on_verify(node: NodeState, event: RequestReceived, verify: Verify, profile: Profile) -> Step:
    """A verify of a client that is held with its owner's revision renews the lease; any other fails."""
    held = node.client(verify.client)
    if not is_held(node, verify.client, profile) or held is None:
        return Step(of_unknown(node, verify, event.at_ms, profile), (Reply(FAIL),))
    if not revision_matches(verify.revision, held.revision, profile):
        return Step(node, (Reply(FAIL),))
    if is_ip_client(held.name):
        return Step(node.with_client(verified(node, held, event.source, event.at_ms, profile)), (Reply(SUCCESS),))
    if held.native or held.renewed_ms == event.at_ms:
        return Step(node, (Reply(SUCCESS),))
    return Step(node.with_client(replace(held, renewed_ms=event.at_ms)), (Reply(SUCCESS),))


@guard(source="verify-accept")
def is_held(node: NodeState, client: str, _: Profile) -> bool:
    """The client is known here, as a native one or as a copy."""
    return node.client(client) is not None


@guard(source="verify-accept, defect-d11; EphemeralClientOperationServiceImpl")
def revision_matches(verified_revision: int, held_revision: int, _: Profile) -> bool:
    """The verified revision equals the held one."""
    return verified_revision == held_revision


@instead_of(revision_matches)
def existence_is_enough(_verified: int, _held: int, _: Profile) -> bool:
    """A verify tests only that the client exists (B02)."""
    return True


@instead_of(revision_matches)
def zero_always_matches(verified_revision: int, held_revision: int, _: Profile) -> bool:
    """Revision 0 matches any copy."""
    return verified_revision in (0, held_revision)


@rule("answer-a-verify-of-an-unknown-client", source="verify-accept")
def of_unknown(node: NodeState, _verify: Verify, _at_ms: int, _: Profile) -> NodeState:
    """It creates no client: the failure brings the client."""
    return node


@rule("end-a-verify", source="verify-failed, sync-result; ClientVerifyFailedEvent")
def on_verify_ended(node: NodeState, event: CallEnded, verify: Verify, profile: Profile) -> Step:
    """Only a typed failure counts, and only while the node still owns the client: then it is synced with delay 0."""
    held = node.client(verify.client)
    if event.answer.result is not CallResult.FAIL or held is None or not is_responsible(node, held, profile):
        return Step(node)
    for target in repaired_members(node, event.target, profile):
        node = published(node, ClientVerifyFailed(verify.client, target), event.at_ms, profile)
    return Step(node)


@rule("choose-whom-to-repair", source="verify-failed")
def repaired_members(_node: NodeState, failed: str, _: Profile) -> tuple[str, ...]:
    """A failed verify brings a full sync to the member that failed it, and to no other."""
    return (failed,)


@rule("end-leases", source="lease-copies; ConnectionBasedClientManager.ExpiredClientCleaner")
def on_lease_check_due(node: NodeState, event: LeaseCheckDue, profile: Profile) -> Step:
    """Remove copies whose lease is over, and tombstones that are a lease old."""
    if not checks_in_time(event, profile):
        return Step(_with_new_leases(node, event.at_ms))
    for client in node.clients:
        if is_expired(client, event.at_ms, profile) or ends_silent(client, event.at_ms, profile):
            node = removed(node, client, event.at_ms, profile)
    gone = tuple(each for each in node.gone if not is_forgotten(each[1], event.at_ms, profile))
    forgets = len(gone) < len(node.gone)
    return Step(node.changed(gone=gone).with_unacknowledged(node.unacknowledged) if forgets else node)


@guard(source="lease-pause")
def checks_in_time(event: LeaseCheckDue, profile: Profile) -> bool:
    """No whole check was missed: else the node was suspended, or its clock jumped, and renewals may be waiting."""
    return event.last_ms is None or event.at_ms - event.last_ms <= 2 * profile.lease_check_ms


@instead_of(checks_in_time)
def checks_always(_event: LeaseCheckDue, _: Profile) -> bool:
    """A late check ends even the leases that could not be renewed meanwhile (B23)."""
    return True


def _with_new_leases(node: NodeState, at_ms: int) -> NodeState:
    """This holds for tombstones too: the requests that they refuse have been waiting as well."""
    return node.changed(
        clients=tuple(each if each.native else replace(each, renewed_ms=at_ms) for each in node.clients),
        gone=tuple((client, at_ms) for client, _ in node.gone),
    )


@rule("find-a-lease-over", source="lease-copies")
def is_expired(client: Client, at_ms: int, profile: Profile) -> bool:
    """Strictly longer than the lease without a renewal. Not native clients; ip:port clients have their own check."""
    return not client.native and is_over(client, at_ms, profile)


def is_over(client: Client, at_ms: int, profile: Profile) -> bool:
    return not is_ip_client(client.name) and at_ms - client.renewed_ms > profile.lease_ms


def is_forgotten(since_ms: int, at_ms: int, profile: Profile) -> bool:
    """A tombstone has outlived every copy that could still be on its way: it is kept as long as a lease."""
    return at_ms - since_ms > profile.lease_ms
