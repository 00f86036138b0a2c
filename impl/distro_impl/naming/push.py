"""Pushes: subscribers of this node get the changed service.

500 ms after the first of some changes every subscriber gets the state of then; a new subscription is answered the same
way, to that client alone. A client that does not acknowledge gets the push again, on its stream; clients without a
stream get it over UDP, and poll as well. Source: docs/protocol #index-push, #naming-requests and #http-v1.
"""

from __future__ import annotations

from distro_impl.core import Core
from distro_impl.naming.changes import ServiceChanged, ServiceSubscribed
from distro_impl.naming.client import Client, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.ip_port_client import is_ip_port
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.naming.udp_push import UdpPushService
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.tasks.delay_engine import DelayTaskEngine

NOTIFY_SUBSCRIBER = "NotifySubscriberRequest"

Targets = frozenset[str] | None
"""Client ids, or None for all subscribers."""


class PushService:
    def __init__(
        self,
        core: Core,
        clients: ClientManager,
        storage: ServiceStorage,
        connections: ConnectionManager,
        udp: UdpPushService,
        switches: SwitchDomain,
        log: NamingLog,
    ) -> None:
        self._clock, self._profile, self._switches = core.clock, core.profile, switches
        self._log, self._clients, self._storage, self._connections, self._udp = log, clients, storage, connections, udp
        self._delayed: DelayTaskEngine[Service, Targets] = DelayTaskEngine(
            core.clock, self._push_to, _merged, "push tasks"
        )
        core.notify_center.subscribe(ServiceChanged, self._on_service_changed)
        core.notify_center.subscribe(ServiceSubscribed, self._on_subscribed)

    def _on_service_changed(self, event: ServiceChanged) -> None:
        """Where queries show what the last push saw, the push is made also without subscribers."""
        if self._profile.queries_read_pushed_view or self._clients.subscribers_of(event.service):
            self._add(event.service, None)

    def _on_subscribed(self, event: ServiceSubscribed) -> None:
        self._add(event.service, frozenset({event.client_id}))

    def _add(self, service: Service, targets: Targets) -> None:
        if service in self._delayed:
            self._log.push_merged(service)
        self._delayed.add(service, targets, self._profile.push_delay_ms)

    def _push_to(self, service: Service, targets: Targets) -> None:
        if not self._switches.push_enabled:  # it waits, and is due again at every tick
            self._delayed.add(service, targets, 0)
            return
        self._storage.refresh(service)
        for client in self._clients.subscribers_of(service):
            if targets is None or client.id in targets:
                push = self._push(service, client, to_all=targets is None)
                self._clock.spawn(push, f"push of {service.name} to {client.id}")

    async def _push(self, service: Service, client: Client, *, to_all: bool) -> None:
        clusters = client.subscribers.get(service)
        if clusters is None:
            return
        hosts, began_ms = self._storage.count(service, clusters=clusters), self._clock.now_ms()
        if is_ip_port(client.id):
            grouped = {**self._storage.info(service, clusters=clusters), "name": service.grouped_name}
            del grouped["groupName"]
            is_acknowledged, ip = await self._udp.push(client.id, grouped), client.id
        else:
            connection = self._connections.get(client.id)
            if connection is None:
                return
            clusters = clusters if self._profile.push_of_subscribed_cluster else ""
            info = self._storage.written_info(service, clusters=clusters)
            body, ip = {"serviceInfo": info, "module": "naming"}, connection.meta.client_ip
            timeout_ms = self._profile.push_timeout_ms
            is_acknowledged = await self._connections.push(connection, NOTIFY_SUBSCRIBER, body, timeout_ms)
            if not is_acknowledged:
                self._try_again(service, client)
        took_ms = self._clock.now_ms() - began_ms
        if is_acknowledged:
            self._log.pushed(service, ip, hosts=hosts, took_ms=took_ms, now_ms=self._clock.now_ms(), to_all=to_all)
        else:
            self._log.push_failed(service, ip, took_ms)

    def _try_again(self, service: Service, client: Client) -> None:
        if service in client.subscribers and self._connections.get(client.id) is not None:
            self._delayed.add(service, frozenset({client.id}), self._profile.push_retry_delay_ms)


def _merged(new: Targets, pending: Targets) -> Targets:
    return None if new is None or pending is None else new | pending
