"""The side of a node that holds clients and services: tables, leases, heartbeats, and pushes to subscribers."""

from __future__ import annotations

from distro_impl.assembly.membership import Membership
from distro_impl.core import Core
from distro_impl.distro.mapper import DistroMapper
from distro_impl.events import Observer
from distro_impl.naming.beats import Beats
from distro_impl.naming.client_manager import ClientManager
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.naming.instance_operator import InstanceOperator
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.push import PushService
from distro_impl.naming.service_manager import ServiceManager
from distro_impl.naming.service_storage import ServiceStorage
from distro_impl.naming.switch_domain import SwitchDomain
from distro_impl.naming.udp_push import UdpPushService
from distro_impl.naming.watch import Watch
from distro_impl.remote.connection_manager import ConnectionManager


class Naming:
    def __init__(self, core: Core, membership: Membership, observer: Observer | None) -> None:
        self.core = core
        services = ServiceManager(core.clock)
        self.switches = SwitchDomain()
        self.watch = Watch(core, observer)
        self.log = NamingLog(core.config.address, services)
        self.mapper = DistroMapper(core, membership.members, self.switches, self.log)
        self.clients = ClientManager(core, self.watch, self.mapper, services, self.log)
        self.beats = Beats(core, self.clients, self.switches)
        self.storage = ServiceStorage(core, self.clients)
        self.instance_ids = InstanceIdGenerator(core.clock, core.config.address)
        self.instances = InstanceOperator(core, self.clients, self.storage, self.instance_ids, self.switches)
        self.udp_pushes = UdpPushService(core.clock)

    def begin(self, connections: ConnectionManager) -> None:
        """Start the cleaners, and push to subscribers over these connections."""
        clock, profile, clients = self.core.clock, self.core.profile, self.clients
        now_ms = clock.now_ms()
        self.mapper.begin()
        PushService(self.core, clients, self.storage, connections, self.udp_pushes, self.switches, self.log)
        period_ms = profile.client_clean_period_ms
        clock.every(period_ms, clients.remove_expired, first_ms=now_ms, name="expired client cleaner")
        period_ms, first_ms = profile.empty_service_clean_period_ms, now_ms + profile.empty_service_clean_first_ms
        clock.every(period_ms, clients.remove_empty_services, first_ms=first_ms, name="empty service cleaner")

    async def close(self) -> None:
        """Stop all pushes."""
        await self.udp_pushes.close()
