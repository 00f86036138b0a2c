"""The instances of a service as queries and pushes show them: `ServiceStorage`, with its view of each service.

A view is made when it is first asked for. In real releases only a push makes it anew, half a second after a change, so
a query may lag behind what was acknowledged (docs/real-servers.md#a-played-member); where the profile says
otherwise, each change
drops it. Nothing in Distro depends on it. Source: docs/protocol #index-entries, #naming-requests, class ServiceStorage.
"""

from __future__ import annotations

from distro_impl.clocks.clock import Clock
from distro_impl.naming.changes import ServiceChanged, ServiceRemoved
from distro_impl.naming.client import Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.service_info import hosts_of, service_info
from distro_impl.notify_center import NotifyCenter
from distro_impl.profiles import Profile
from distro_protos import Json


class ServiceStorage:
    def __init__(self, clock: Clock, profile: Profile, clients: ClientManager, notify_center: NotifyCenter) -> None:
        self._clock, self._clients = clock, clients
        self._views: dict[Service, list[Json]] = {}
        self._stamps_ms: dict[Service, int] = {}
        notify_center.subscribe(ServiceRemoved, self._drop)
        if not profile.queries_read_pushed_view:
            notify_center.subscribe(ServiceChanged, self._drop_view)

    def info(self, service: Service, *, clusters: str | None = "", healthy_only: bool = False) -> Json:
        """`ServiceInfo`.

        `lastRefTime` is the time, and what was seen anew is newer than what was seen before, also within a
        millisecond: SDKs drop a list that is not newer than theirs, which may be from another member.
        """
        return service_info(
            service,
            self.hosts(service),
            clusters=clusters,
            healthy_only=healthy_only,
            last_ref_time=max(self._clock.now_ms(), self._stamps_ms.get(service, 0)),
        )

    def hosts(self, service: Service) -> list[Json]:
        """Every `Instance` of the view, disabled ones too."""
        view = self._views.get(service)
        return self.refresh(service) if view is None else view

    def refresh(self, service: Service) -> list[Json]:
        """See the service as it is now."""
        hosts = hosts_of(service, self._clients.publishers_of(service))
        if self._clients.is_known(service):
            self._views[service] = hosts
            self._stamps_ms[service] = max(self._clock.now_ms(), self._stamps_ms.get(service, 0) + 1)
        return hosts

    def _drop_view(self, event: ServiceChanged) -> None:
        self._views.pop(event.service, None)

    def _drop(self, event: ServiceRemoved) -> None:
        self._views.pop(event.service, None)
        self._stamps_ms.pop(event.service, None)
