"""What Distro does with client data on this node: reading it for peers, and applying what peers send.

The rules that differ between releases are named functions here. An apply is one step: the message is read whole before
anything changes, and nothing else runs in between. Source: docs/protocol #receive-native, #receive-late,
#receive-batch-over-single, #receive-revision, #receive-lease, #receive-delete, #receive-torn, #receive-equal,
#owner-handover, #verify-accept, #verify-two-owners, #receive-change and #verify-round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from distro_impl.core import Core
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.unacknowledged import UnacknowledgedChanges
from distro_impl.events import NodeEventKind
from distro_impl.naming.client import (
    Client,
    MalformedSyncDataError,
    PublishedBatch,
    PublishedInstance,
    SyncData,
    read_sync_data,
)
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port, is_persistent
from distro_impl.profiles import RevisionTakenOver
from distro_impl.remote.payloads import DataOperation
from distro_protos import Json


class SupersededReceived(NamedTuple):
    """A member has sent content that was replaced here."""

    client_id: str
    sender: str | None


class BatchOverSingleError(ValueError):
    """A batch was to take the place of a single instance, in a release that breaks at that."""


class DistroClientDataProcessor:
    def __init__(
        self, core: Core, clients: ClientManager, unacknowledged: UnacknowledgedChanges, log: DistroLog
    ) -> None:
        self._profile, self._notify = core.profile, core.notify_center
        self._clients, self._unacknowledged, self._log = clients, unacknowledged, log

    # Reading

    def data_of(self, client_id: str) -> Json | None:
        """ClientSyncData of a client, native or synced; None when it is not here."""
        client = self._clients.get(client_id)
        if client is None:
            return None
        return client.sync_data(
            with_revision=self._profile.revision_sent,
            with_batches=self._profile.batch_registration,
            superseded=self._unacknowledged.superseded(client_id),
        )

    def snapshot(self) -> Json:
        """ClientSyncDatumSnapshot of all clients, native and synced, by their ids: where one cannot be applied it
        matters which come before it. A server lists them as its hash table has them."""
        return {"clientSyncDataList": [self.data_of(each) for each in sorted(client.id for client in self._clients)]}

    def owned_clients(self) -> list[str]:
        """Ids of the clients that this node is responsible for."""
        return [client.id for client in self._clients if client.responsible]

    def revision_of(self, client_id: str) -> int | None:
        """The revision that a verify carries; None for a client that this node does not own, or not any more."""
        client = self._clients.get(client_id)
        if client is None or not client.responsible:
            return None
        return client.revision if self._profile.revision_sent else 0

    # Applying

    def process_change(self, data: Mapping[str, Any], reason: str, sender: str | None) -> bool:
        """Make the copy of the client equal to `data`, a ClientSyncData object that the member `sender` has sent; False
        when that is refused.

        Raises MalformedSyncDataError and BatchOverSingleError.
        """
        sync = read_sync_data(data, with_batches=self._profile.batch_registration)
        self._log.client_added(sync.client_id, sync.revision)
        if self._is_untouchable(sync.client_id) or self._is_deleted(sync.client_id):
            return False
        if self._is_superseded(sync, sender):
            self._notify.publish(SupersededReceived(sync.client_id, sender))
            return False
        client = self._clients.get(sync.client_id)
        if client is None and is_persistent(sync.client_id):
            raise MalformedSyncDataError(f"{sync.client_id} is a persistent client, which Distro does not carry")
        if client is not None:
            self._check_types(client, sync)
        if self._profile.batch_registration and not sync.has_batches:
            self._log.no_batch(sync.client_id)
        self._clients.apply(sync, revision=sync.revision if self._takes_over_revision(sync) else None, reason=reason)
        if self._profile.owner_hands_over and is_ip_port(sync.client_id):
            self._unacknowledged.supersede(sync.client_id, sync.superseded, sync.revision)
            self._unacknowledged.acknowledged(sync.client_id, sender, sync.revision)
        return True

    def process_snapshot(self, elements: Iterable[Mapping[str, Any]], sender: str) -> None:
        """Apply each like a CHANGE, without those that are refused.

        One that cannot be applied ends it, those before stay. Raises what `process_change` raises.
        """
        for element in elements:
            self.process_change(element, DataOperation.SNAPSHOT, sender)

    def process_delete(self, client_id: str, sender: str | None) -> bool:
        """Remove the client; unknown is fine. False when that is refused."""
        self._log.client_deleted(client_id)
        if self._is_untouchable(client_id) or self._is_kept(client_id, sender):
            return False
        self._clients.delete(client_id, NodeEventKind.REPLICA_REMOVED, DataOperation.DELETE)
        return True

    def process_verify(self, client_id: str, revision: int, sender: str | None) -> bool:
        """Whether the copy here is what its owner, the member `sender`, thinks it is. If so the lease is renewed."""
        if is_persistent(client_id):
            raise MalformedSyncDataError(f"{client_id} is a persistent client, which is never verified")
        client = self._clients.get(client_id)
        if client is None or not self._is_verified(client, revision):
            return False
        self._clients.verified(client, sender)
        return True

    # Rules

    def _is_untouchable(self, client_id: str) -> bool:
        """In real releases a peer may overwrite and delete a client that is native here (B01)."""
        client = self._clients.get(client_id)
        return client is not None and client.native and self._profile.native_untouched_by_peers

    def _is_deleted(self, client_id: str) -> bool:
        """An ip:port client may well come back."""
        return not is_ip_port(client_id) and self._clients.was_deleted(client_id)

    def _is_superseded(self, sync: SyncData, sender: str | None) -> bool:
        """What the client requested from this node has replaced it, and the sender knows no later change."""
        if sender is None or not self._unacknowledged.is_superseded(sync.client_id, sync.revision):
            return False
        client = self._clients.get(sync.client_id)
        if client is None:
            return self._unacknowledged.is_pending(sync.client_id, sender)
        return isinstance(client, IpPortClient) and client.accepted_here and client.revision not in sync.superseded

    def _is_kept(self, client_id: str, sender: str | None) -> bool:
        """In releases a DELETE that comes late from an earlier owner removes what was accepted here since (B41)."""
        return self._clients.get(client_id) is not None and self._unacknowledged.is_pending(client_id, sender)

    def _is_verified(self, client: Client, revision: int) -> bool:
        """2.0.0 - 2.1.1 only ask whether the client exists (B02); from 2.1.2 on revision 0 always passes (D11)."""
        if not self._profile.verify_tests_revision or (revision == 0 and not self._profile.zero_is_a_revision):
            return True
        if revision != client.revision:
            kind = "IpPortBasedClient" if isinstance(client, IpPortClient) else "ConnectionBasedClient"
            self._log.revision_differs(client.id, kind, client.revision, revision)
        return revision == client.revision

    def _takes_over_revision(self, sync: SyncData) -> bool:
        """2.1.2 - 2.2.4 set it where they have gone through batches, and only there (D1, B10)."""
        taken_over = self._profile.revision_taken_over
        return taken_over is RevisionTakenOver.ALWAYS or (
            taken_over is RevisionTakenOver.ON_CREATION and sync.has_batches
        )

    def _check_types(self, client: Client, sync: SyncData) -> None:
        """Up to 2.3.0 a batch cannot take the place of a single instance (D8, B19). Raises BatchOverSingleError."""
        if self._profile.batch_replaces_single:
            return
        for service, published in sync.publishers.items():
            if isinstance(published, PublishedBatch) and isinstance(client.publishers.get(service), PublishedInstance):
                raise BatchOverSingleError(f"{client.id} has a single instance in {service.grouped_name}")
