"""The services that exist here: `ServiceManager`.

A service comes into being when a client registers in it, here or at a peer; a subscription alone does not make one. It
stays when its last instance leaves, and is collected when it has been empty for a minute.
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
        """A client registers in it."""
        self._changed_ms[service] = self._clock.now_ms()

    def one(self, service: Service) -> Service:
        """The one that is kept: thousands of clients would otherwise keep the same names, once each."""
        return self._kept.setdefault(service, service)

    def changed(self, service: Service) -> None:
        """Its instances did."""
        self.touch(service)
        self._revisions[service] = self.revision(service) + 1

    def changed_ms(self, service: Service, default_ms: int) -> int:
        """When it last did; the default for one that does not exist."""
        return self._changed_ms.get(service, default_ms)

    def revision(self, service: Service) -> int:
        """How often its instances changed; only logs show it."""
        return self._revisions.get(service, 0)

    def remove(self, service: Service) -> None:
        del self._changed_ms[service]
        self._kept.pop(service, None)
        self._revisions.pop(service, None)

    def services(self) -> list[Service]:
        """All of them, empty ones too, sorted."""
        return sorted(self._changed_ms)

    def unchanged_for(self, period_ms: int) -> list[Service]:
        latest_ms = self._clock.now_ms() - period_ms
        return [service for service, changed_ms in self._changed_ms.items() if changed_ms <= latest_ms]
