"""What a node writes about clients, services and pushes, in the words of a real server.

Three of its files: `naming-server`, `naming-event` and `naming-push`. The words are those of running servers of 2.0.4,
2.2.4 and 2.3.2, which are alike in all of this; what they never showed there is from docs/protocol #log-lines.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from distro_impl.logs import NodeLog, line, logger
from distro_impl.naming.client import PublishedInstance, Service
from distro_impl.naming.service_manager import ServiceManager
from distro_protos import Json, write_json

server, event, push = logger("naming-server"), logger("naming-event"), logger("naming-push")

REGION = "unknown"
"""The default of every server."""


@dataclass(slots=True)
class PushRecord:
    """How many pushes ended, and how many of them without success. They only grow."""

    total: int = 0
    failed: int = 0


class NamingLog(NodeLog):
    """`services` knows the revision that a line shows of a service."""

    def __init__(self, node: str, services: ServiceManager) -> None:
        super().__init__(node)
        self._services, self.pushes = services, PushRecord()

    # naming-server

    connected = line(server, logging.INFO, "Client connection %s connect", "client")
    disconnected = line(
        server, logging.INFO, "Client connection %s disconnect, remove instances and subscribers", "client"
    )
    """Also for a client that is not here."""

    def changed(self, client: str, service: Service) -> None:
        text = "Client change for service %s, %s"
        self.write(server, logging.INFO, text, self._shown(service), client, client=client)

    def removed(self, client: str, service: Service) -> None:
        text = "Client remove for service %s, %s"
        self.write(server, logging.INFO, text, self._shown(service), client, client=client)

    def expired(self, client: str, service: Service, instance: Json) -> None:
        """An instance without beats; `instance` is its InstancePublishInfo."""
        text = "[AUTO-DELETE-IP] service: %s, ip: %s"
        self.write(
            server, logging.INFO, text, self._shown(service), lambda: write_json(instance).decode(), client=client
        )

    def healthy_list_changed(self, old: Iterable[str], new: Iterable[str]) -> None:
        """Logged at every event about members, also when the list stays the same."""
        text = "[NACOS-DISTRO] healthy server list changed, old: [%s], new: [%s]"
        self.write(server, logging.INFO, text, ", ".join(old), ", ".join(new))

    # naming-event

    def health_judged(self, client: str, service: Service, instance: PublishedInstance, last_beat_ms: int) -> None:
        """By its beats."""
        where = f"{instance.ip}:{instance.port}@{instance.cluster}@{service.name}"
        if instance.healthy:
            text = "{POS} {IP-ENABLED} valid: %s, region: %s, msg: client beat ok"
            self.write(event, logging.INFO, text, where, REGION, client=client)
        else:
            text = "{POS} {IP-DISABLED} valid: %s, region: %s, msg: client last beat: %s"
            self.write(event, logging.INFO, text, where, REGION, last_beat_ms, client=client)

    # naming-push

    def push_merged(self, service: Service) -> None:
        self.write(push, logging.INFO, "[PUSH] Task merge for %s", self._shown(service))

    def pushed(self, service: Service, ip: str, *, hosts: int, took_ms: int, now_ms: int, to_all: bool) -> None:
        """The subscriber there acknowledged; `to_all` when the push went to others as well."""
        self.pushes.total += 1
        delay_ms, shown = max(0, now_ms - self._services.changed_ms(service, now_ms)), self._shown(service)
        if to_all:
            text = "[PUSH-SUCC] %sms, all delay time %sms, SLA %sms, %s, originalSize=%s, DataSize=%s, target=%s"
            self.write(push, logging.INFO, text, took_ms, delay_ms, delay_ms, shown, hosts, hosts, ip)
        else:
            text = "[PUSH-SUCC] %sms, all delay time %sms for subscriber %s, %s, originalSize=%s, DataSize=%s"
            self.write(push, logging.INFO, text, took_ms, delay_ms, ip, shown, hosts, hosts)

    def push_failed(self, service: Service, ip: str, took_ms: int) -> None:
        self.pushes.total += 1
        self.pushes.failed += 1
        text = "[PUSH-FAIL] %sms, %s, reason=%s, target=%s"
        self.write(push, logging.ERROR, text, took_ms, self._shown(service), "no acknowledgement", ip)

    def _shown(self, service: Service) -> Callable[[], str]:
        namespace, group, name = service
        return lambda: (
            f"Service{{namespace='{namespace}', group='{group}', name='{name}', ephemeral=true, "
            f"revision={self._services.revision(service)}}}"
        )
