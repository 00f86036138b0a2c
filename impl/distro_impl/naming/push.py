"""Pushes: telling subscribers of this node that a service changed.

500 ms after the first of some changes every subscriber gets the state of then; a new subscription is answered the same
way, to that client alone. Who does not acknowledge is told again. Source: wire-protocol.md section 3.2.
"""

from __future__ import annotations

from distro_impl.clocks.clock import Clock
from distro_impl.naming.client import Client, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.service_info import service_info
from distro_impl.notify_center import NotifyCenter, ServiceChanged, ServiceSubscribed
from distro_impl.profiles import Profile
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.tasks.delay_engine import DelayTaskEngine
from distro_protos import Json

NOTIFY_SUBSCRIBER = "NotifySubscriberRequest"

Targets = frozenset[str] | None
"""Client ids, or None for all subscribers."""


class ServiceStorage:
    """The instances of a service as queries and pushes show them.

    Always the state of now. A real server answers queries from a view that the push refreshes, so there a query may lag
    by 0.5 s (real-nacos.md section 3); nothing in Distro depends on it.
    """

    def __init__(self, clock: Clock, clients: ClientManager) -> None:
        self._clock, self._clients = clock, clients

    def info(self, service: Service, *, clusters: str = "", healthy_only: bool = False) -> Json:
        """`lastRefTime` strictly increases: the Python SDK drops a push that is not newer than what it has."""
        return service_info(
            service,
            self._clients.publishers_of(service),
            clusters=clusters,
            healthy_only=healthy_only,
            last_ref_time=self._clock.unique_ms(),
        )


class PushService:
    def __init__(
        self,
        *,
        clock: Clock,
        profile: Profile,
        clients: ClientManager,
        storage: ServiceStorage,
        connections: ConnectionManager,
        notify_center: NotifyCenter,
    ) -> None:
        self._clock, self._profile = clock, profile
        self._clients, self._storage, self._connections = clients, storage, connections
        self._delayed: DelayTaskEngine[Service, Targets] = DelayTaskEngine(clock, self._push_to, _merged, "push tasks")
        notify_center.subscribe(ServiceChanged, self._on_service_changed)
        notify_center.subscribe(ServiceSubscribed, self._on_subscribed)

    def _on_service_changed(self, event: ServiceChanged) -> None:
        if self._clients.subscribers_of(event.service):
            self._delayed.add(event.service, None, self._profile.push_delay_ms)

    def _on_subscribed(self, event: ServiceSubscribed) -> None:
        self._delayed.add(event.service, frozenset({event.client_id}), self._profile.push_delay_ms)

    def _push_to(self, service: Service, targets: Targets) -> None:
        for client in self._clients.subscribers_of(service):
            if targets is None or client.id in targets:
                self._clock.spawn(self._push(service, client), f"push of {service.name} to {client.id}")

    async def _push(self, service: Service, client: Client) -> None:
        connection = self._connections.get(client.id)
        if connection is None:
            return
        body = {"serviceInfo": self._storage.info(service, clusters=client.subscribers[service]), "module": "naming"}
        is_acknowledged = await self._connections.push(
            connection, NOTIFY_SUBSCRIBER, body, self._profile.push_timeout_ms
        )
        if not is_acknowledged and service in client.subscribers and self._connections.get(client.id) is not None:
            self._delayed.add(service, frozenset({client.id}), self._profile.push_retry_delay_ms)


def _merged(new: Targets, pending: Targets) -> Targets:
    return None if new is None or pending is None else new | pending
