"""Receiving a peer's state: CHANGE, DELETE, and requests for a snapshot.

A release checks neither who sent a request nor whether the client is native here (B01, B41). Where a profile protects
native clients, a request about one is answered with FAIL and not ignored with SUCCESS: SUCCESS must mean that the data
was applied (INV-ACK), and a sender that claims a client of another node should receive an error. The same goes for a
CHANGE that arrives after the DELETE of its client: its sender finds the client gone when it retries, and sends the
DELETE, which succeeds.
"""

from __future__ import annotations

from dataclasses import replace

from distro_model.events import HandlingRaised, Reply, RequestReceived, UnknownReceived
from distro_model.messages import (
    FAIL,
    SUCCESS,
    WITHOUT_ID,
    Answer,
    CallResult,
    Change,
    Content,
    Delete,
    Snapshot,
    is_batch,
    without_clusters,
)
from distro_model.node import Client, NodeState, Step
from distro_model.profile import Profile
from distro_model.rules.ip_clients import is_not_superseded, turn_of
from distro_model.rules.notify import removed, upgraded
from distro_model.rules.owners import is_ip_client, is_responsible
from distro_model.rules.rule import guard, instead_of, rule
from distro_model.rules.sync import acknowledged, copy_of, sent_until_acknowledged


@rule("apply-a-change", source="receive-change; DistroClientDataProcessor.handlerClientSyncData")
def on_change(node: NodeState, event: RequestReceived, change: Change, profile: Profile) -> Step:
    """Apply what a peer sends of a client, in one step."""
    if not may_take(node, event.source, change, profile):
        return Step(refused(node, event.source, change, event.at_ms, profile), (Reply(FAIL),))
    if not is_applicable(node, change, profile):
        return raised(node, profile)
    if not revision_fits(change.revision, profile):
        held = node.client(change.client)
        content_only = replace(change, revision=0 if held is None else held.revision)
        return Step(with_copy(node, content_only, event.at_ms, profile), (Reply(FAIL),))
    return Step(taken(node, event.source, change, event.at_ms, profile), (Reply(SUCCESS),))


def taken(node: NodeState, source: str, copy: Change, at_ms: int, profile: Profile) -> NodeState:
    """The copy is applied, and its sender needs no other."""
    return acknowledged(with_copy(node, copy, at_ms, profile), source, copy)


def refused(node: NodeState, source: str, copy: Change, at_ms: int, profile: Profile) -> NodeState:
    """The sender of superseded content is sent what is held here, whatever it has acknowledged before."""
    is_superseded = not is_not_superseded(node, source, copy, profile)
    if not is_superseded or source not in node.others or node.client(copy.client) is None:
        return node
    return sent_until_acknowledged(node, copy.client, source, at_ms, profile)


def may_take(node: NodeState, source: str, copy: Change, profile: Profile) -> bool:
    """The content that this peer sends of this client may be applied."""
    return (
        is_not_native_here(node, copy.client, profile)
        and is_not_deleted(node, copy.client, profile)
        and is_not_superseded(node, source, copy, profile)
    )


@guard(source="receive-native, defect-d3")
def is_not_native_here(node: NodeState, client: str, _: Profile) -> bool:
    """A peer cannot change a client that is connected to this node."""
    held = node.client(client)
    return held is None or not held.native


@instead_of(is_not_native_here)
def natives_are_unprotected(_node: NodeState, _client: str, _: Profile) -> bool:
    """Any peer can overwrite or delete a client that is connected here (B01, B41)."""
    return True


@guard(source="receive-late")
def is_not_deleted(node: NodeState, client: str, _: Profile) -> bool:
    """The client was not deleted here within the last lease. An ip:port client may well come back."""
    return is_ip_client(client) or not node.is_gone(client)


@guard(source="receive-batch-over-single, defect-d8; BatchInstanceData")
def is_applicable(_node: NodeState, _copy: Change, _: Profile) -> bool:
    """Applying this does not raise: in a copy a batch replaces a single instance, and the other way round."""
    return True


@instead_of(is_applicable)
def no_batch_over_single(node: NodeState, copy: Change, _: Profile) -> bool:
    """A batch for a service under which the copy has a single instance raises, and nothing changes (B19).

    Batches are applied before single instances, so that at most another batch of that client is already applied.
    """
    held = node.client(copy.client)
    before = {} if held is None else dict(held.content)
    return not any(is_batch(after) and not is_batch(before.get(service, after)) for service, after in copy.content)


@guard(source="receive-revision")
def revision_fits(revision: int, profile: Profile) -> bool:
    """The revision can be read; else the exception comes after the content was applied."""
    return profile.largest_revision is None or revision <= profile.largest_revision


@rule("raise", source="receive-raised, defect-d5; DistroDataRequestHandler")
def on_handling_raised(node: NodeState, _event: HandlingRaised, profile: Profile) -> Step:
    """An exception left the handler before anything was done."""
    return raised(node, profile)


@rule("answer-an-exception", source="receive-raised, defect-d5; DistroDataRequestHandler")
def raised(node: NodeState, _: Profile) -> Step:
    """A request whose handling raises is answered with FAIL."""
    return Step(node, (Reply(FAIL),))


@instead_of(raised)
def raised_unseen(node: NodeState, _: Profile) -> Step:
    """A request whose handling raises is answered with SUCCESS, and an error code that the sender does not read
    (B16)."""
    return Step(node, (Reply(SUCCESS),))


@rule("answer-what-is-unknown", source="distro-unknown, defect-d6; DistroDataRequestHandler")
def on_unknown(node: NodeState, _event: UnknownReceived, _: Profile) -> Step:
    """Data of a type that nothing here handles is refused."""
    return Step(node, (Reply(FAIL),))


@instead_of(on_unknown)
def unknown_unseen(node: NodeState, _event: UnknownReceived, _: Profile) -> Step:
    """Data of a type that nothing here handles is answered with SUCCESS, and an error code that the sender does not
    read (D6)."""
    return Step(node, (Reply(SUCCESS),))


@rule("apply-a-delete", source="receive-delete; DistroClientDataProcessor.processData")
def on_delete(node: NodeState, event: RequestReceived, delete: Delete, profile: Profile) -> Step:
    """Removes the client of any owner. The removal of a native one is announced."""
    if not is_not_native_here(node, delete.client, profile) or not is_deletable(node, event.source, delete, profile):
        return Step(node, (Reply(FAIL),))
    return Step(deleted(node, delete.client, event.at_ms, profile), (Reply(SUCCESS),))


@guard(source="receive-delete, owner-handover")
def is_deletable(node: NodeState, source: str, delete: Delete, _: Profile) -> bool:
    """The sender has acknowledged the changes that the ip:port client requested from this node, or the client is not
    held: a DELETE of an unknown client is a success."""
    return node.client(delete.client) is None or not node.is_unacknowledged(delete.client, source)


@rule("give-a-snapshot", source="load-snapshot, defect-d14; DistroClientDataProcessor.getDatumSnapshot")
def on_snapshot(node: NodeState, _event: RequestReceived, _snapshot: Snapshot, profile: Profile) -> Step:
    """Answers with everything it holds, native clients and copies."""
    if not may_give(node, profile):
        return Step(node, (Reply(FAIL),))
    copies = tuple(copy_of(node, client, profile) for client in given_clients(node, profile))
    if not snapshot_fits(len(copies), profile):
        return Step(node, (Reply(Answer(CallResult.ERROR)),))
    return Step(node, (Reply(Answer(CallResult.SUCCESS, copies)),))


@guard(source="load-snapshot, defect-d14")
def may_give(node: NodeState, _: Profile) -> bool:
    """A member that is not loaded itself gives no snapshot."""
    return node.loaded


@instead_of(may_give)
def gives_unloaded(_node: NodeState, _: Profile) -> bool:
    """A member gives an incomplete snapshot before it is loaded, and the receiver treats it as complete (B33)."""
    return True


@guard(source="load-size")
def snapshot_fits(_clients: int, _: Profile) -> bool:
    """A snapshot is paged: any amount of data can be sent. Every release sends one message of at most 10 MB."""
    return True


@rule("choose-what-a-snapshot-has", source="load-snapshot")
def given_clients(node: NodeState, _: Profile) -> tuple[Client, ...]:
    """Everything: native clients and copies."""
    return node.clients


@rule("take-a-copy", source="receive-change; DistroClientDataProcessor.upgradeClient")
def with_copy(node: NodeState, copy: Change, at_ms: int, profile: Profile) -> NodeState:
    """Create or update the held client; a native one that really changed is announced again.

    In `strict` an ip:port client is not: the node that accepted the change has announced it to all members.
    """
    held = node.client(copy.client)
    if held is None:
        client = created(node, copy, at_ms, profile)
    else:
        renewed_ms = at_ms if renews_lease(held, profile) else held.renewed_ms
        client = replace(
            held,
            revision=taken_revision(held, copy, profile),
            content=taken_content(held, copy.content, profile),
            renewed_ms=renewed_ms,
            accepted=held.accepted and copy.content == held.content,
        )
    client = with_beats(node, held, client, at_ms, profile)
    before = () if held is None else held.content
    if is_ip_client(client.name):
        node = node.superseding(client.name, copy.superseded, client.revision)
    return upgraded(node.with_client(client), client, before, at_ms, profile)


def created(node: NodeState, copy: Change, at_ms: int, profile: Profile) -> Client:
    client = fresh_copy(copy, at_ms, profile)
    return replace(client, turn_ms=turn_of(node, at_ms, profile)) if is_ip_client(client.name) else client


def taken_content(held: Client, sent: Content, profile: Profile) -> Content:
    """The content that is held after this was sent; the copy keeps its own instances where they are equal."""
    if sent == held.content:
        return sent
    before = dict(held.content)
    return tuple(
        (service, instance if differs(held.name, before.get(service), instance, profile) else before[service])
        for service, instance in sent
    )


@guard(source="receive-equal, defect-d4; InstancePublishInfo.equals")
def differs(_client: str, held: str | None, sent: str, _: Profile) -> bool:
    """The content that is sent of a service differs from the content that is held of it."""
    return held != sent


@instead_of(differs)
def differs_but_for_cluster(client: str, held: str | None, sent: str, profile: Profile) -> bool:
    """Instances are compared without their cluster: a change of nothing else is not applied (D4).

    Over gRPC none has an id.
    """
    if held is None or is_ip_client(client):
        return differs_with_id(client, held, sent, profile)
    return without_clusters(held) != without_clusters(sent)


@instead_of(differs)
def differs_with_id(_client: str, held: str | None, sent: str, _: Profile) -> bool:
    """Compared as usual, but the id that most instances have names their cluster, and so differs."""
    if held is None or WITHOUT_ID not in sent:
        return held != sent
    return without_clusters(held) != without_clusters(sent)


@rule("create-a-copy", source="receive-change; ConnectionBasedClientManager.syncClientConnected")
def fresh_copy(copy: Change, at_ms: int, _: Profile) -> Client:
    """A peer's CHANGE creates a copy: never verified or announced from here, and with a lease."""
    return Client(copy.client, False, copy.revision, copy.content, at_ms)


@rule("take-the-revision", source="receive-revision, defect-d1; AbstractClient.setRevision")
def taken_revision(_held: Client, copy: Change, _: Profile) -> int:
    """A copy takes over the revision that arrives with its content."""
    return copy.revision


@instead_of(taken_revision)
def revision_of_batches_only(held: Client, copy: Change, _: Profile) -> int:
    """A copy keeps the revision with which it was created, unless the data holds a batch (B10)."""
    return copy.revision if any(is_batch(published) for _, published in copy.content) else held.revision


@guard(source="receive-lease")
def renews_lease(_held: Client, _: Profile) -> bool:
    """An applied CHANGE or snapshot element renews the lease of its client."""
    return True


@instead_of(renews_lease)
def keeps_lease(_held: Client, _: Profile) -> bool:
    """Only its creation and a verify renew the lease of a copy (B17)."""
    return False


def with_beats(node: NodeState, before: Client | None, after: Client, at_ms: int, profile: Profile) -> Client:
    """A new or changed instance begins with a beat; an old one keeps its own, unless a sync to a copy renews all."""
    if not is_ip_client(after.name):
        return after
    renews = not is_responsible(node, after, profile) and renews_lease(after, profile)
    old, beats = (before.content, dict(before.beats)) if before is not None else ((), {})
    keeps = set() if renews else set(old)
    return replace(
        after, beats=tuple((pair[0], beats.get(pair[0], at_ms) if pair in keeps else at_ms) for pair in after.content)
    )


def deleted(node: NodeState, name: str, at_ms: int, profile: Profile) -> NodeState:
    """Removed, known or not, and with tombstones remembered as removed, so that a late request does not restore it
    (B26, B27)."""
    held = node.client(name)
    if held is not None:
        node = removed(node, held, at_ms, profile)
    return node.with_gone(name, at_ms) if is_remembered(name, profile) else node


@guard(source="receive-late")
def is_remembered(client: str, _: Profile) -> bool:
    """A deleted client stays deleted: for one lease no late CHANGE or snapshot restores it.

    A connection id is never used twice, so this affects no later client; an ip:port client may well come back.
    Tombstones are kept in memory: a node that restarts after the DELETE, and loads from a member that has not received
    it yet, still takes the client until its lease ends.
    """
    return not is_ip_client(client)


@instead_of(is_remembered)
def is_forgotten_at_once(_client: str, _: Profile) -> bool:
    """Deleted clients are not remembered (B26, B27)."""
    return False
