"""The side of a node that holds clients and services: tables, leases, heartbeats, and pushes to subscribers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from distro_impl.assembly.core import Core
from distro_impl.assembly.membership import Membership
from distro_impl.distro.mapper import DistroMapper
from distro_impl.naming.beats import Beats
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.push import PushRecord, PushService
from distro_impl.naming.service_manager import ServiceManager
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.naming.udp_push import UdpPushService
from distro_impl.remote.connection_manager import ConnectionManager


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Naming:
    core: Core
    log: NamingLog
    switches: SwitchDomain
    mapper: DistroMapper
    clients: ClientManager
    beats: Beats
    storage: ServiceStorage
    instance_ids: InstanceIdGenerator
    instances: InstanceOperator
    push_record: PushRecord
    udp_pushes: UdpPushService

    @classmethod
    def of(cls, core: Core, membership: Membership) -> Self:
        clock, profile, notify_center = core.clock, core.profile, core.notify_center
        switches = SwitchDomain()
        services = ServiceManager(clock)
        log = NamingLog(core.config.address, services)
        mapper = DistroMapper(
            profile, membership.members, switches, notify_center, log, standalone=core.config.is_standalone
        )
        clients = ClientManager(clock, profile, notify_center, core.watch, mapper, services, log)
        storage = ServiceStorage(clock, profile, clients, notify_center)
        ids = InstanceIdGenerator(clock, core.config.address)
        beats = Beats(clock=clock, profile=profile, clients=clients, switches=switches, notify_center=notify_center)
        instances = InstanceOperator(
            clock=clock,
            profile=profile,
            clients=clients,
            storage=storage,
            ids=ids,
            switches=switches,
        )
        return cls(
            core=core,
            log=log,
            switches=switches,
            mapper=mapper,
            clients=clients,
            beats=beats,
            storage=storage,
            instance_ids=ids,
            instances=instances,
            push_record=PushRecord(),
            udp_pushes=UdpPushService(clock),
        )

    def begin(self, connections: ConnectionManager) -> None:
        """Start the cleaners, and push to subscribers over these connections."""
        clock, profile, now_ms = self.core.clock, self.core.profile, self.core.clock.now_ms()
        self.mapper.begin()
        PushService(
            clock=clock,
            profile=profile,
            clients=self.clients,
            storage=self.storage,
            connections=connections,
            udp=self.udp_pushes,
            switches=self.switches,
            notify_center=self.core.notify_center,
            record=self.push_record,
            log=self.log,
        )
        clock.every(
            profile.client_clean_period_ms, self.clients.remove_expired, first_ms=now_ms, name="expired client cleaner"
        )
        clock.every(
            profile.empty_service_clean_period_ms,
            self.clients.remove_empty_services,
            first_ms=now_ms + profile.empty_service_clean_first_ms,
            name="empty service cleaner",
        )

    async def close(self) -> None:
        """Stop all pushes."""
        await self.udp_pushes.close()
