"""The table of clients, native and synced, and the index from services to them.

The one place where a client is created, changed or removed, so that index, events and observer cannot be forgotten.
The lease of synced copies is here too (native clients live as long as their connection), and so is the memory of who
was removed for good. Which client may be touched by whom is decided by the callers. The ids say which of the two kinds
a client is: connection based, or ip:port.
Source: wire-protocol.md sections 6.4 and 6.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from distro_impl.clocks.clock import Clock
from distro_impl.events import NodeEventKind, Watch
from distro_impl.naming.client import Client, Published, PublishedInstance, Service
from distro_impl.naming.ip_port_client import IpPortClient, is_ip_port
from distro_impl.naming.service_manager import ServiceManager
from distro_impl.notify_center import (
    ClientChanged,
    ClientRemoved,
    IpPortClientCreated,
    NotifyCenter,
    ServiceChanged,
    ServiceRemoved,
    ServiceSubscribed,
)
from distro_impl.profiles import Profile

LEASE, CONNECTED = "lease", "connected"
MISSED_TURN = 2
"""A cleaner or a check has missed a turn when its last one is longer ago than so many periods."""


class ClientManager:
    """All clients that this node knows."""

    def __init__(
        self,
        clock: Clock,
        profile: Profile,
        notify_center: NotifyCenter,
        watch: Watch,
        is_ours: Callable[[str], bool],
    ) -> None:
        """`is_ours` says whether this node is responsible for an ip:port client, by its tag."""
        self._clock, self._profile, self._notify, self._watch = clock, profile, notify_center, watch
        self._is_ours = is_ours
        self._clients: dict[str, Client] = {}
        self._deleted_ms: dict[str, int] = {}
        self._cleaned_ms: int | None = None
        self._publishers: dict[Service, dict[str, Client]] = {}
        self._subscribers: dict[Service, dict[str, Client]] = {}
        self._services = ServiceManager(clock)

    # Clients

    def get(self, client_id: str) -> Client | None:
        return self._clients.get(client_id)

    def __iter__(self) -> Iterator[Client]:
        return iter(tuple(self._clients.values()))

    def client_connected(self, client_id: str) -> None:
        """A naming connection of ours was set up. Whose id it has is decided by who is connected, not by a peer."""
        if client_id in self._clients:
            if not self._profile.connection_replaces_copy:
                return
            self._remove(client_id, NodeEventKind.REPLICA_REMOVED, CONNECTED)
        client = self._clients[client_id] = Client(client_id, native=True, renewed_ms=self._clock.now_ms())
        self._watch.tell(NodeEventKind.CLIENT_CONNECTED, client)

    def sync_client_connected(self, client_id: str, revision: int) -> Client:
        """A peer told us of a client that we do not have yet."""
        if is_ip_port(client_id):
            return self._ip_port_client(client_id, revision)
        native = self._profile.synced_created_as_native
        client = Client(client_id, native=native, renewed_ms=self._clock.now_ms(), revision=revision)
        self._clients[client_id] = client
        return client

    def ip_port_client_connected(self, client_id: str) -> IpPortClient:
        """The client of that id, a new one if there is none."""
        client = self._clients.get(client_id)
        if client is None:
            client = self._ip_port_client(client_id, 0)
            self._watch.tell(NodeEventKind.CLIENT_CONNECTED, client)
        assert isinstance(client, IpPortClient)
        return client

    def _ip_port_client(self, client_id: str, revision: int) -> IpPortClient:
        now_ms = self._clock.now_ms()
        client = IpPortClient(client_id, native=False, renewed_ms=now_ms, revision=revision, is_ours=self._is_ours)
        self._clients[client_id] = client
        self._notify.publish(IpPortClientCreated(client))
        return client

    def delete(self, client_id: str, kind: NodeEventKind, reason: str | None = None) -> None:
        """Remove a client because its owner says so; unknown is fine.

        The id of a connection never comes back, so we may keep it; that of an ip:port client does.
        """
        if self._profile.deleted_stays_deleted and not is_ip_port(client_id):
            self._deleted_ms[client_id] = self._clock.now_ms()
        self._remove(client_id, kind, reason)

    def was_deleted(self, client_id: str) -> bool:
        """Within the last lease."""
        return client_id in self._deleted_ms

    def _remove(self, client_id: str, kind: NodeEventKind, reason: str | None) -> None:
        """With all its instances and subscriptions."""
        client = self._clients.pop(client_id, None)
        if client is None:
            return
        for service in client.subscribers:
            _discard(self._subscribers, service, client)
        for service in client.publishers:
            _discard(self._publishers, service, client)
        self._watch.tell(kind, client, reason)
        self._notify.publish(ClientRemoved(client))
        for service in client.publishers:
            self._service_changed(service)

    def remove_expired(self) -> None:
        """ExpiredClientCleaner: a synced copy that nobody renewed for longer than the lease goes.

        So does the memory of a deleted client: by then no copy of it can be on its way any more.
        """
        now_ms = self._clock.now_ms()
        last_ms, self._cleaned_ms = self._cleaned_ms, now_ms
        if self._profile.pause_is_forgiven and last_ms is not None and self._was_paused(now_ms - last_ms):
            self._restart_leases(now_ms)
            return
        oldest_ms = now_ms - self._profile.client_expired_ms
        for client in self:
            if client.is_expired(now_ms, self._profile):
                self._remove(client.id, _expiry_of(client), LEASE)
        self._deleted_ms = {name: at_ms for name, at_ms in self._deleted_ms.items() if at_ms >= oldest_ms}

    def _was_paused(self, gap_ms: int) -> bool:
        """Then peers may have renewed in vain: what they sent is still waiting to be handled."""
        return gap_ms > MISSED_TURN * self._profile.client_clean_period_ms

    def _restart_leases(self, now_ms: int) -> None:
        for client in self:
            if not client.native:
                client.renew(now_ms)
        self._deleted_ms = dict.fromkeys(self._deleted_ms, now_ms)

    # What a client publishes

    def publish(self, client: Client, service: Service, published: Published) -> None:
        """One entry per client and service; a second one replaces the first."""
        client.publishers[service] = published
        if isinstance(client, IpPortClient):
            client.heart_beats_ms[service] = self._clock.now_ms()
        self._publishers.setdefault(service, {})[client.id] = client
        self._notify.publish(ClientChanged(client))
        self._service_changed(service)

    def unpublish(self, client: Client, service: Service) -> None:
        if client.publishers.pop(service, None) is None:
            return
        if isinstance(client, IpPortClient):
            del client.heart_beats_ms[service]
        _discard(self._publishers, service, client)
        self._notify.publish(ClientChanged(client))
        self._service_changed(service)

    def set_healthy(self, client: IpPortClient, service: Service, healthy: bool) -> None:
        """An instance came back to life, or is taken for dead; no sign of life by itself."""
        client.publishers[service] = replace(client.singles[service], healthy=healthy)
        self._notify.publish(ClientChanged(client))
        self._service_changed(service)

    def publishers_of(self, service: Service) -> Iterator[PublishedInstance]:
        """What all known clients, native or synced, publish in a service, as of now."""
        for client in self._publishers.get(service, {}).values():
            yield from client.publishers[service].instances

    # What a client subscribes to

    def subscribe(self, client: Client, service: Service, clusters: str) -> None:
        is_first = service not in client.subscribers
        client.subscribers[service] = clusters
        self._subscribers.setdefault(service, {})[client.id] = client
        if is_first:
            self._notify.publish(ServiceSubscribed(service, client.id))

    def unsubscribe(self, client: Client, service: Service) -> None:
        client.subscribers.pop(service, None)
        _discard(self._subscribers, service, client)

    def subscribers_of(self, service: Service) -> tuple[Client, ...]:
        return tuple(self._subscribers.get(service, {}).values())

    # Services

    def make_known(self, service: Service) -> None:
        """Whoever registers makes the service exist, even when nothing comes of the registration."""
        self._services.touch(service)

    def is_known(self, service: Service) -> bool:
        return service in self._services

    def services(self) -> list[Service]:
        """Those that exist here, sorted; nobody needs to publish in them any more."""
        return self._services.services()

    def service_names(self, namespace: str | None, group: str | None) -> list[str]:
        """Plain names of those in one group, sorted."""
        return [service.name for service in self.services() if (service.namespace, service.group) == (namespace, group)]

    def remove_empty_services(self) -> None:
        """EmptyServiceCleaner: what nobody publishes in for a while ceases to exist, subscribers or not."""
        for service in self._services.unchanged_for(self._profile.empty_service_expired_ms):
            if service not in self._publishers:
                self._services.remove(service)
                self._notify.publish(ServiceRemoved(service))

    def _service_changed(self, service: Service) -> None:
        self._services.touch(service)
        self._notify.publish(ServiceChanged(service))


def _expiry_of(client: Client) -> NodeEventKind:
    """Only an ip:port client can expire where it is owned."""
    return NodeEventKind.CLIENT_DISCONNECTED if client.responsible else NodeEventKind.REPLICA_REMOVED


def _discard(index: dict[Service, dict[str, Client]], service: Service, client: Client) -> None:
    entries = index.get(service, {})
    entries.pop(client.id, None)
    if not entries:
        index.pop(service, None)
