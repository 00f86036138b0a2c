"""InstanceOperator: what clients that speak HTTP may ask of a node, without a word of HTTP.

Such a client is known by its `ip:port`, one for all services that this address is registered in. That the right node
is asked is the business of the HTTP side (DistroFilter); here a node takes what it is given, and what it is not
responsible for it keeps to itself. Source: docs/protocol #http-v1, class InstanceOperatorClientImpl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from msgspec.structs import replace

from distro_impl.core import Core
from distro_impl.naming.beats import heart_beat_ms
from distro_impl.naming.client import DEFAULT_CLUSTER, PublishedInstance, Service
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.naming.ip_port_client import Agent, IpPortClient, ip_port_client_id
from distro_impl.naming.service_info import MAX_WEIGHT, MIN_WEIGHT, check_ephemeral, published_by, weight_of
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.ports import MAX_PORT
from distro_impl.remote.errors import INVALID_PARAM, NacosError
from distro_impl.remote.payloads import Instance
from distro_protos import Json

BEAT_INTERVAL = "preserved.heart.beat.interval"


class BeatCode(IntEnum):
    """NamingResponseCode, as far as beats use it."""

    OK = 10200
    RESOURCE_NOT_FOUND = 20404


@dataclass(frozen=True, slots=True)
class BeatInfo:
    """A full beat: enough to register the instance that beats. The instance that it keeps alive is that of `service`,
    which need not be the service of the request."""

    service: Service
    ip: str
    port: int
    cluster: str = DEFAULT_CLUSTER
    weight: float = 1.0
    metadata: Mapping[str, str] = field(default_factory=dict)


class InstanceOperator:
    """Ephemeral instances only."""

    def __init__(
        self,
        core: Core,
        clients: ClientManager,
        storage: ServiceStorage,
        ids: InstanceIdGenerator,
        switches: SwitchDomain,
    ) -> None:
        self._clock, self._profile, self._switches = core.clock, core.profile, switches
        self._clients, self._storage, self._ids = clients, storage, ids

    def register(self, service: Service, instance: Instance, *, has_id: bool = True) -> None:
        """Raises NacosError(INVALID_PARAM)."""
        published = self._published(service, instance, has_id=has_id)
        client = self._clients.ip_port_client_connected(ip_port_client_id(published.ip, published.port))
        self._clients.register(client, service, published)

    def deregister(self, service: Service, ip: str, port: int) -> None:
        """Unknown is fine. The empty client stays until the cleaner takes it."""
        client = self._client(ip, port)
        if client is not None and self._clients.is_known(service):
            self._clients.deregister(client, service)

    def beat(self, service: Service, ip: str, port: int, beat: BeatInfo | None) -> tuple[BeatCode, int]:
        """The code, and after how many ms the next beat is expected. `beat` is None for a light beat.

        A full beat of an instance that is not registered registers it in `service`. What it keeps alive is the instance
        in the service that it names itself (docs/protocol #http-beat). Raises NacosError(INVALID_PARAM).
        """
        client = self._client(ip, port)
        if client is None or service not in client.singles:
            if beat is None:
                return BeatCode.RESOURCE_NOT_FOUND, self._switches.client_beat_interval_ms
            self.register(service, _instance_of(beat))
            client = self._clients.ip_port_client_connected(ip_port_client_id(beat.ip, beat.port))
        self._clients.beat(client, service if beat is None else beat.service)
        return BeatCode.OK, self._beat_interval_ms(client.singles[service])

    def subscribe(self, service: Service, ip: str, port: int, clusters: str, agent: Agent) -> None:
        """The client that listens there gets pushes, until it has not asked for a while."""
        if not self._switches.push_enabled:
            return
        client = self._clients.ip_port_client_connected(ip_port_client_id(ip, port))
        self._clients.subscribe(client, service, clusters, agent)

    def instances(self, service: Service, *, clusters: str = "", healthy_only: bool = False) -> Json:
        """`ServiceInfo`, with the plain name of the service."""
        return self._storage.info(service, clusters=clusters, healthy_only=healthy_only)

    def hosts(self, service: Service) -> list[Json]:
        """Every `Instance`, disabled ones too."""
        return self._storage.hosts(service)

    def instance(self, service: Service, ip: str, port: int, cluster: str) -> Json | None:
        """One `Instance`, a disabled one too."""
        for host in self.hosts(service):
            if (host["ip"], host["port"], host["clusterName"]) == (ip, port, cluster):
                found: Json = host
                return found
        return None

    def _published(self, service: Service, instance: Instance, *, has_id: bool = True) -> PublishedInstance:
        check_ephemeral(instance)
        if instance.port is None:
            raise NacosError(INVALID_PARAM, "Param 'port' is required.")
        with_cluster = replace(instance, cluster_name=instance.cluster_name or DEFAULT_CLUSTER)
        ids = self._ids if has_id else None
        published = published_by(with_cluster, service, ids, checked=self._profile.instances_checked)
        _check_ranges(published)
        return published

    def _client(self, ip: str, port: int) -> IpPortClient | None:
        client = self._clients.get(ip_port_client_id(ip, port))
        assert client is None or isinstance(client, IpPortClient)
        return client

    def _beat_interval_ms(self, instance: PublishedInstance) -> int:
        if BEAT_INTERVAL in instance.extend_datum:
            return heart_beat_ms(instance, "instanceHeartBeatInterval")
        return self._switches.client_beat_interval_ms


def _check_ranges(published: PublishedInstance) -> None:
    if not published.ip:
        raise NacosError(INVALID_PARAM, "Param 'ip' is required.")
    if not 0 <= published.port <= MAX_PORT:
        raise NacosError(
            INVALID_PARAM, f"instance format invalid: port {published.port} is not within 0 and {MAX_PORT}"
        )
    weight = weight_of(published.extend_datum)
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise NacosError(
            INVALID_PARAM,
            f"instance format invalid: weight {weight} is not within {MIN_WEIGHT:.0f} and {MAX_WEIGHT:.0f}",
        )


def _instance_of(beat: BeatInfo) -> Instance:
    return Instance(
        ip=beat.ip, port=beat.port, cluster_name=beat.cluster, weight=beat.weight, metadata=dict(beat.metadata)
    )
