"""The table of clients, native and synced, and the index from services to them.

The one place where a client is created, changed or removed, so that index, revision, events and observer cannot be
forgotten. A change is complete before its event is published: a failing subscriber leaves no half of it behind.
The lease of synced copies is here too (native clients live as long as their connection), and so is the memory of who
was removed for good. Which client may be touched by whom is decided by the callers. The ids say which of the two kinds
a client is: connection based, or ip:port.
Source: docs/protocol #client-connect, #client-disconnect, #verify-accept, #receive-late, #receive-change and
#lease-copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from distro_impl.core import Core
from distro_impl.events import NodeEventKind
from distro_impl.naming.changes import (
    Cause,
    ClientChanged,
    ClientRemoved,
    IpPortClientCreated,
    ServiceChanged,
    ServiceRemoved,
    ServiceSubscribed,
)
from distro_impl.naming.client import Client, Published, PublishedInstance, Service, SyncData
from distro_impl.naming.client_index import ClientIndex
from distro_impl.naming.deleted import DeletedClients
from distro_impl.naming.ip_port_client import Agent, IpPortClient, Ownership, is_ip_port
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.service_manager import ServiceManager
from distro_impl.naming.watch import Watch
from distro_impl.profiles import RevisionTakenOver

LEASE, CONNECTED = "lease", "connected"
MISSED_TURN = 2
"""A cleaner or a check has missed a turn when its last one is longer ago than so many periods."""


class ClientManager:
    """All clients that this node knows."""

    def __init__(
        self, core: Core, watch: Watch, ownership: Ownership, services: ServiceManager, log: NamingLog
    ) -> None:
        self._clock, self._profile, self._notify, self._watch = core.clock, core.profile, core.notify_center, watch
        self._ownership, self._services, self._log = ownership, services, log
        self._clients: dict[str, Client] = {}
        self._deleted = DeletedClients()
        self._cleaned_ms: int | None = None
        self._publishers, self._subscribers = ClientIndex(), ClientIndex()

    # Clients

    def get(self, client_id: str) -> Client | None:
        return self._clients.get(client_id)

    def __iter__(self) -> Iterator[Client]:
        return iter(tuple(self._clients.values()))

    def client_connected(self, client_id: str) -> None:
        """A naming connection to this node was set up. It has precedence over a peer's copy of that id."""
        if client_id in self._clients:
            if not self._profile.connection_replaces_copy:
                return
            self._remove(client_id, NodeEventKind.REPLICA_REMOVED, CONNECTED)
        client = self._clients[client_id] = Client(client_id, native=True, renewed_ms=self._clock.now_ms())
        self._log.connected(client_id)
        self._watch.notify(NodeEventKind.CLIENT_CONNECTED, client)

    def _sync_client_connected(self, sync: SyncData) -> Client:
        """A peer sent a client that is unknown here."""
        is_copied = self._profile.revision_taken_over is not RevisionTakenOver.NEVER
        revision = sync.revision if is_copied else 0
        if is_ip_port(sync.client_id):
            return self._ip_port_client(sync.client_id, revision)
        client = Client(sync.client_id, native=False, renewed_ms=self._clock.now_ms(), revision=revision)
        self._clients[sync.client_id] = client
        self._log.connected(client.id)
        return client

    def ip_port_client_connected(self, client_id: str) -> IpPortClient:
        """The client of that id, a new one if there is none."""
        client = self._clients.get(client_id)
        if client is None:
            client = self._ip_port_client(client_id, 0)
            self._watch.notify(NodeEventKind.CLIENT_CONNECTED, client)
        assert isinstance(client, IpPortClient)
        return client

    def _ip_port_client(self, client_id: str, revision: int) -> IpPortClient:
        now_ms = self._clock.now_ms()
        client = IpPortClient(client_id, native=False, renewed_ms=now_ms, revision=revision, ownership=self._ownership)
        self._clients[client_id] = client
        self._log.connected(client_id)
        self._notify.publish(IpPortClientCreated(client))
        return client

    def delete(self, client_id: str, kind: NodeEventKind, reason: str | None = None) -> None:
        """Remove a client because its owner says so; unknown is fine.

        The id of a connection never comes back, and is remembered even if it is unknown.
        """
        if self._profile.deleted_stays_deleted and not is_ip_port(client_id):
            self._deleted.add(client_id, self._clock.now_ms())
        self._remove(client_id, kind, reason)

    def was_deleted(self, client_id: str) -> bool:
        """Within the last lease; an ip:port client in any other way too."""
        return client_id in self._deleted

    def _remove(self, client_id: str, kind: NodeEventKind, reason: str | None) -> None:
        """With all its instances and subscriptions."""
        client = self._clients.pop(client_id, None)
        self._log.disconnected(client_id)
        if client is None:
            return
        if self._profile.deleted_stays_deleted and is_ip_port(client_id):
            self._deleted.add(client_id, self._clock.now_ms())
        for service in client.subscribers:
            self._subscribers.discard(service, client)
        for service in client.publishers:
            self._publishers.discard(service, client)
        self._watch.notify(kind, client, reason)
        self._notify.publish(ClientRemoved(client))
        for service in client.publishers:
            self._services.changed(service)
            self._notify.publish(ServiceChanged(service))

    def remove_expired(self) -> None:
        """ExpiredClientCleaner: a synced copy that was not renewed for longer than the lease is removed.

        So does the memory of a deleted client: by then no copy of it can be on its way any more.
        """
        now_ms = self._clock.now_ms()
        last_ms, self._cleaned_ms = self._cleaned_ms, now_ms
        if self._profile.renews_after_pause and last_ms is not None and self._was_paused(now_ms - last_ms):
            self._restart_leases(now_ms)
            return
        for client in self:
            if client.is_expired(now_ms, self._profile):
                self._remove(client.id, _expiry_of(client), LEASE)
        self._deleted.forget_before(now_ms - self._profile.client_expired_ms)

    def renew_after_pause(self, client: Client) -> None:
        """Whatever came for the client while this node was suspended still waits to be handled (B23,
        docs/protocol #lease-pause)."""
        client.renew(self._clock.now_ms())

    def _was_paused(self, gap_ms: int) -> bool:
        """Then peers may have renewed in vain: what they sent is still waiting to be handled."""
        return gap_ms > MISSED_TURN * self._profile.client_clean_period_ms

    def _restart_leases(self, now_ms: int) -> None:
        for client in self:
            if not client.native:
                client.renew(now_ms)
        self._deleted.all_at(now_ms)

    # What a client publishes

    def register(self, client: Client, service: Service, published: Published, *, bumps_revision: bool = True) -> None:
        """The client itself asked for it, here. One entry per client and service; a second one replaces the first."""
        replaced = client.revision
        self._keep(client, {service: published})
        if bumps_revision:
            client.asked(self._clock.now_ms(), self._profile)
        self._notify_change(client, (service,), Cause.ASKED, replaced)

    def deregister(self, client: Client, service: Service) -> None:
        """The client itself asked for it. Its revision moves even when there was nothing."""
        removed = [service] if service in client.publishers else []
        replaced = client.revision
        self._keep(client, dict.fromkeys(removed))
        client.asked(self._clock.now_ms(), self._profile)
        self._notify_change(client, removed, Cause.ASKED, replaced)

    def beat(self, client: IpPortClient, service: Service) -> None:
        """The client sent a heartbeat for its instance in the service, if it has one, which is healthy again if it was
        not."""
        client.renewed_ms = self._clock.now_ms()
        if (instance := client.singles.get(service)) is None:
            return
        client.heart_beats_ms[service] = self._clock.now_ms()
        if not instance.healthy:
            self._judge(client, service, replace(instance, healthy=True), Cause.ASKED, "healthy")

    def take_for_dead(self, client: IpPortClient, service: Service) -> None:
        """There were no beats of it for a while."""
        self._judge(client, service, replace(client.singles[service], healthy=False), Cause.CONCLUDED, "unhealthy")

    def expire_instance(self, client: IpPortClient, service: Service) -> None:
        """There were none for so long that it goes."""
        held = {**client.singles[service].to_json(), "lastHeartBeatTime": client.heart_beats_ms[service]}
        self._log.expired(client.id, service, held)
        self._judge(client, service, None, Cause.CONCLUDED, "expired")

    def _judge(
        self, client: IpPortClient, service: Service, published: PublishedInstance | None, cause: Cause, reason: str
    ) -> None:
        """Releases compute the revision at registering and deregistering only, so no verify finds the loss of what
        changed here (D12, B06)."""
        last_beat_ms, replaced = client.heart_beats_ms[service], client.revision
        self._keep(client, {service: published})
        if published is not None:
            client.heart_beats_ms[service] = last_beat_ms
            self._log.health_judged(client.id, service, published, last_beat_ms)
        if self._profile.revision_follows_beats:
            client.revision = client.content_hash(self._profile)
        self._notify_change(client, (service,), cause, replaced, reason)

    def apply(self, sync: SyncData, *, revision: int | None, reason: str) -> None:
        """Make the copy of a client equal to what a peer has sent, a new copy if there is none.

        `revision` is None where the release keeps the one of the copy.
        """
        client = self._clients.get(sync.client_id) or self._sync_client_connected(sync)
        replaced = client.revision
        changes: dict[Service, Published | None] = {
            service: published
            for service, published in sync.publishers.items()
            if (held := client.publishers.get(service)) is None
            or not published.equals(held, sees_cluster=self._profile.equality_sees_cluster)
        }
        changes.update((service, None) for service in client.publishers if service not in sync.publishers)
        self._keep(client, changes)
        if revision is not None:
            client.revision = revision
        if self._profile.sync_renews_lease:
            self._renewed_by_sync(client)
        self._publish_change(client, changes, Cause.RECEIVED, replaced)
        self._watch.notify(NodeEventKind.REPLICA_APPLIED, client, reason)

    def _renewed_by_sync(self, client: Client) -> None:
        """Who sends it vouches for it as with a verify, but to a node that judges it by the beats itself."""
        if isinstance(client, IpPortClient) and client.responsible:
            client.renewed_ms = self._clock.now_ms()
        else:
            client.renew(self._clock.now_ms())

    def verified(self, client: Client, sender: str | None) -> None:
        """The member `sender` has confirmed the copy that this node holds, which renews it.

        In releases that is so too where both nodes take themselves for the owner: each renews a dead client of the
        other, for ever. In `strict` only the one that stands first in the client's ring renews it for the other.
        """
        if not (self._profile.owner_judges_by_beats and self._is_claimed_by_both(client, sender)):
            client.renew(self._clock.now_ms())

    def _is_claimed_by_both(self, client: Client, sender: str | None) -> bool:
        return isinstance(client, IpPortClient) and client.responsible and client.is_followed_by(sender)

    def _keep(self, client: Client, changes: Mapping[Service, Published | None]) -> None:
        """All of it is done before any event is published. None: the service is left."""
        for named, published in changes.items():
            service = self._services.one(named)
            if published is None:
                client.publishers.pop(service, None)
                self._publishers.discard(service, client)
            else:
                client.publishers[service] = published
                self._publishers.add(service, client)
            if isinstance(client, IpPortClient):
                if published is None:
                    client.heart_beats_ms.pop(service, None)
                else:
                    client.heart_beats_ms[service] = self._clock.now_ms()
            write = self._log.removed if published is None else self._log.changed
            write(client.id, service)
        for service in changes:
            self._services.changed(service)

    def _notify_change(
        self, client: Client, services: Collection[Service], cause: Cause, replaced: int, reason: str | None = None
    ) -> None:
        self._publish_change(client, services, cause, replaced)
        self._watch.notify(NodeEventKind.CLIENT_CHANGED, client, reason)

    def _publish_change(self, client: Client, services: Collection[Service], cause: Cause, replaced: int) -> None:
        if services:
            if isinstance(client, IpPortClient):
                client.accepted_here = cause is Cause.ASKED
            self._notify.publish(ClientChanged(client, cause, replaced))
        for service in services:
            self._notify.publish(ServiceChanged(service))

    def publishers_of(self, service: Service) -> Iterator[PublishedInstance]:
        """What all known clients, native or synced, publish in a service, as of now."""
        for client in self._publishers.of(service):
            yield from client.publishers[service].instances

    # What a client subscribes to

    def subscribe(self, client: Client, service: Service, clusters: str, agent: Agent | None = None) -> None:
        """An ip:port client says who it is with each subscription, and lives by it."""
        if isinstance(client, IpPortClient) and agent is not None:
            client.renewed_ms, client.agent = self._clock.now_ms(), agent
        is_first = service not in client.subscribers
        client.subscribers[service] = clusters
        self._subscribers.add(service, client)
        if is_first:
            self._notify.publish(ServiceSubscribed(service, client.id))

    def unsubscribe(self, client: Client, service: Service) -> None:
        client.subscribers.pop(service, None)
        self._subscribers.discard(service, client)

    def subscribers_of(self, service: Service) -> tuple[Client, ...]:
        return tuple(self._subscribers.of(service))

    # Services

    def make_known(self, service: Service) -> None:
        """A registration makes the service exist, even when it fails afterwards."""
        self._services.touch(service)

    def is_known(self, service: Service) -> bool:
        return service in self._services

    def services(self) -> list[Service]:
        """Those that exist here, sorted, with or without publishers."""
        return self._services.services()

    def service_names(self, namespace: str | None, group: str | None) -> list[str]:
        """Plain names of those in one group, sorted."""
        return [service.name for service in self.services() if (service.namespace, service.group) == (namespace, group)]

    def remove_empty_services(self) -> None:
        """EmptyServiceCleaner: a service without publishers for a while ceases to exist, subscribers or not."""
        for service in self._services.unchanged_for(self._profile.empty_service_expired_ms):
            if service not in self._publishers:
                self._services.remove(service)
                self._notify.publish(ServiceRemoved(service))


def _expiry_of(client: Client) -> NodeEventKind:
    """Only an ip:port client can expire where it is owned."""
    return NodeEventKind.CLIENT_DISCONNECTED if client.responsible else NodeEventKind.REPLICA_REMOVED
