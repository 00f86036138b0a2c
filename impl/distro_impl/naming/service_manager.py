"""The services of a node: `ServiceManager`.

A service is created when a client registers an instance in it, at this node or at a peer. A subscription does not
create one. A service stays when its last instance is removed, and is removed after it has been empty for a minute.
Source: docs/protocol #receive-change, classes ServiceManager and EmptyServiceAutoCleanerV2.
"""

from __future__ import annotations

from distro_impl.clocks.clock import Clock
from distro_impl.naming.client import Service


class ServiceManager:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed_ms: dict[Service, int] = {}
        self._kept: dict[Service, Service] = {}
        self._revisions: dict[Service, int] = {}

    def __contains__(self, service: Service) -> bool:
        return service in self._changed_ms

    def touch(self, service: Service) -> None:
        """A client registers in this service: create it if it does not exist."""
        self._changed_ms[service] = self._clock.now_ms()

    def one(self, service: Service) -> Service:
        """The stored object that is equal to it. Thousands of clients share it instead of each holding the same
        names."""
        return self._kept.setdefault(service, service)

    def changed(self, service: Service) -> None:
        """Note that the instances of the service have changed."""
        self.touch(service)
        self._revisions[service] = self.revision(service) + 1

    def changed_ms(self, service: Service, default_ms: int) -> int:
        """The time of the last change; the default for a service that does not exist."""
        return self._changed_ms.get(service, default_ms)

    def revision(self, service: Service) -> int:
        """The number of changes of its instances. It is only logged."""
        return self._revisions.get(service, 0)

    def remove(self, service: Service) -> None:
        del self._changed_ms[service]
        self._kept.pop(service, None)
        self._revisions.pop(service, None)

    def services(self) -> list[Service]:
        """All services, sorted, with the empty ones."""
        return sorted(self._changed_ms)

    def unchanged_for(self, period_ms: int) -> list[Service]:
        latest_ms = self._clock.now_ms() - period_ms
        return [service for service, changed_ms in self._changed_ms.items() if changed_ms <= latest_ms]
