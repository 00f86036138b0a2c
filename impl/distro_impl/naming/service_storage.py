"""The lists of instances for queries and pushes: `ServiceStorage`, with a cached view of each service.

A view is made at the first request. In real releases only a push makes it again, half a second after a change, so a
query may return an older list than was acknowledged (docs/real-servers.md#a-played-member). In profiles without this
defect each change drops the view. The list of all enabled instances, which nearly every client requests, is encoded
once for each view and used in each answer over gRPC. A cache holds the encoded lists. Nothing in Distro depends on
views. Source: docs/protocol #index-entries, #naming-requests, class ServiceStorage.
"""

from __future__ import annotations

from msgspec import Raw

from distro_impl.core import Core
from distro_impl.naming.changes import ServiceChanged, ServiceRemoved
from distro_impl.naming.client import PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.service_info import hosts_of, in_clusters, merged, service_info, shown
from distro_protos import Json, without_nulls, write_json

MAX_WRITTEN_BYTES = 4 * 2**20
"""The size of the cache of encoded lists: some ten thousand instances."""


class _Written:
    """A cache of the last `ServiceInfo`s as JSON, up to MAX_WRITTEN_BYTES. Each ends before the field for its time."""

    def __init__(self) -> None:
        self._texts: dict[Service, bytes] = {}  # the oldest comes first
        self._bytes = 0

    def get(self, service: Service) -> bytes | None:
        return self._texts.get(service)

    def write(self, service: Service, published: tuple[PublishedInstance, ...]) -> bytes:
        """Encode the list of the enabled instances and store it."""
        info = service_info(service, hosts_of(service, shown(published)), clusters="", last_ref_time=0)
        text = self._texts[service] = write_json(without_nulls(info)).removesuffix(b"0}")
        self._bytes += len(text)
        while self._bytes > MAX_WRITTEN_BYTES:
            self.drop(next(iter(self._texts)))
        return text

    def drop(self, service: Service) -> None:
        text = self._texts.pop(service, None)
        if text is not None:
            self._bytes -= len(text)


class ServiceStorage:
    def __init__(self, core: Core, clients: ClientManager) -> None:
        self._clock, self._clients = core.clock, clients
        self._views: dict[Service, tuple[PublishedInstance, ...]] = {}
        """By service its view. The instances are shared with the clients that published them."""
        self._written = _Written()
        self._stamps_ms: dict[Service, int] = {}
        core.notify_center.subscribe(ServiceRemoved, self._drop)
        if not core.profile.queries_read_pushed_view:
            core.notify_center.subscribe(ServiceChanged, self._drop_view)

    def info(self, service: Service, *, clusters: str | None = "", healthy_only: bool = False) -> Json:
        """The list as a `ServiceInfo` in JSON."""
        hosts = hosts_of(service, self._shown(service, clusters, healthy_only=healthy_only))
        return service_info(service, hosts, clusters=clusters, last_ref_time=self._last_ref_time(service))

    def written_info(self, service: Service, *, clusters: str | None = "", healthy_only: bool = False) -> Json | Raw:
        """The same for a caller that only encodes it: all fields but the time may be encoded already."""
        text = None if clusters != "" or healthy_only else self._written.get(service) or self._write(service)
        if text is None:
            return self.info(service, clusters=clusters, healthy_only=healthy_only)
        return Raw(b"%b%d}" % (text, self._last_ref_time(service)))

    def info_with_disabled(self, service: Service, *, clusters: str | None) -> Json:
        """As `info`, with the disabled instances."""
        hosts = hosts_of(service, in_clusters(self._view(service), clusters))
        return service_info(service, hosts, clusters=clusters, last_ref_time=self._last_ref_time(service))

    def count(self, service: Service, *, clusters: str | None = "") -> int:
        """The number of hosts in `info`."""
        return len(self._shown(service, clusters))

    def hosts(self, service: Service) -> list[Json]:
        """All `Instance`s of the view in JSON, with the disabled ones."""
        return hosts_of(service, self._view(service))

    def refresh(self, service: Service) -> None:
        """Make the view again from the current instances."""
        self._see(service)

    def _shown(self, service: Service, clusters: str | None, *, healthy_only: bool = False) -> list[PublishedInstance]:
        return shown(self._view(service), clusters=clusters, healthy_only=healthy_only)

    def _view(self, service: Service) -> tuple[PublishedInstance, ...]:
        view = self._views.get(service)
        return self._see(service) if view is None else view

    def _see(self, service: Service) -> tuple[PublishedInstance, ...]:
        view = merged(self._clients.publishers_of(service))
        self._written.drop(service)
        if self._clients.is_known(service):
            self._views[service] = view
            self._stamps_ms[service] = max(self._clock.now_ms(), self._stamps_ms.get(service, 0) + 1)
        return view

    def _write(self, service: Service) -> bytes | None:
        """The encoded list; None for a service in which no client has ever registered."""
        view = self._view(service)
        return self._written.write(service, view) if service in self._views else None

    def _last_ref_time(self, service: Service) -> int:
        """The current time, but later than that of the list before, also within a millisecond: SDKs drop a
        list that is not newer than their own, which may be from another member."""
        return max(self._clock.now_ms(), self._stamps_ms.get(service, 0))

    def _drop_view(self, event: ServiceChanged | ServiceRemoved) -> None:
        self._views.pop(event.service, None)
        self._written.drop(event.service)

    def _drop(self, event: ServiceRemoved) -> None:
        self._drop_view(event)
        self._stamps_ms.pop(event.service, None)
