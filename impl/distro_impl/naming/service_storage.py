"""The instances of a service as queries and pushes show them: `ServiceStorage`, with its view of each service.

A view is made when it is first asked for. In real releases only a push makes it anew, half a second after a change, so
a query may lag behind what was acknowledged (docs/real-servers.md#a-played-member); where the profile says
otherwise, each change
drops it. What nearly everybody asks for, all that is enabled, is written once for each view, and read from there by
whoever is answered over gRPC. Nothing in Distro depends on it. Source: docs/protocol #index-entries, #naming-requests,
class ServiceStorage.
"""

from __future__ import annotations

from msgspec import Raw

from distro_impl.clocks.clock import Clock
from distro_impl.naming.changes import ServiceChanged, ServiceRemoved
from distro_impl.naming.client import PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.service_info import hosts_of, merged, service_info, shown
from distro_impl.notify_center import NotifyCenter
from distro_impl.profiles import Profile
from distro_protos import Json, without_nulls, write_json


class _View:
    """A service as it was. Instances are shared with the clients that published them."""

    __slots__ = ("_written", "published")

    def __init__(self, published: tuple[PublishedInstance, ...]) -> None:
        self.published = published
        self._written: Raw | None = None

    def written(self, service: Service) -> Raw:
        """The enabled ones, as JSON."""
        if self._written is None:
            self._written = Raw(write_json(without_nulls(hosts_of(service, shown(self.published)))))
        return self._written


class ServiceStorage:
    def __init__(self, clock: Clock, profile: Profile, clients: ClientManager, notify_center: NotifyCenter) -> None:
        self._clock, self._clients = clock, clients
        self._views: dict[Service, _View] = {}
        self._stamps_ms: dict[Service, int] = {}
        notify_center.subscribe(ServiceRemoved, self._drop)
        if not profile.queries_read_pushed_view:
            notify_center.subscribe(ServiceChanged, self._drop_view)

    def info(self, service: Service, *, clusters: str | None = "", healthy_only: bool = False) -> Json:
        """`ServiceInfo`."""
        hosts = hosts_of(service, self._shown(service, clusters, healthy_only=healthy_only))
        return service_info(service, hosts, clusters=clusters, last_ref_time=self._last_ref_time(service))

    def written_info(self, service: Service, *, clusters: str | None = "", healthy_only: bool = False) -> Json:
        """The same for whoever only writes it: its hosts may be written already."""
        if clusters or healthy_only:
            return self.info(service, clusters=clusters, healthy_only=healthy_only)
        hosts = self._view(service).written(service)
        return service_info(service, hosts, clusters=clusters, last_ref_time=self._last_ref_time(service))

    def count(self, service: Service, *, clusters: str | None = "") -> int:
        """How many hosts `info` has."""
        return len(self._shown(service, clusters))

    def hosts(self, service: Service) -> list[Json]:
        """Every `Instance` of the view, disabled ones too."""
        return hosts_of(service, self._view(service).published)

    def refresh(self, service: Service) -> None:
        """See the service as it is now."""
        self._see(service)

    def _shown(self, service: Service, clusters: str | None, *, healthy_only: bool = False) -> list[PublishedInstance]:
        return shown(self._view(service).published, clusters=clusters, healthy_only=healthy_only)

    def _view(self, service: Service) -> _View:
        return self._views.get(service) or self._see(service)

    def _see(self, service: Service) -> _View:
        view = _View(merged(self._clients.publishers_of(service)))
        if self._clients.is_known(service):
            self._views[service] = view
            self._stamps_ms[service] = max(self._clock.now_ms(), self._stamps_ms.get(service, 0) + 1)
        return view

    def _last_ref_time(self, service: Service) -> int:
        """The time, and what was seen anew is newer than what was seen before, also within a millisecond: SDKs drop a
        list that is not newer than theirs, which may be from another member."""
        return max(self._clock.now_ms(), self._stamps_ms.get(service, 0))

    def _drop_view(self, event: ServiceChanged) -> None:
        self._views.pop(event.service, None)

    def _drop(self, event: ServiceRemoved) -> None:
        self._views.pop(event.service, None)
        self._stamps_ms.pop(event.service, None)
