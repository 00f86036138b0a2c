"""The side of a node that replicates: what is sent to the other members, what they send, the load, the verify round."""

from __future__ import annotations

from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.core import Core
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.transport_agent import DistroTransportAgent
from distro_impl.distro.unacknowledged import UnacknowledgedChanges
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.tasks.execute_engine import ExecuteTaskEngine


class Distro:
    def __init__(self, core: Core, membership: Membership, naming: Naming) -> None:
        self._core, self._members, self._naming = core, membership.members, naming
        self.log = DistroLog(core.config.address, core.profile)
        self._agent = DistroTransportAgent(core.profile, self._members, membership.peers)
        self._unacknowledged = UnacknowledgedChanges(naming.clients.was_deleted)
        self.processor = DistroClientDataProcessor(core, naming.clients, self._unacknowledged, self.log)
        self._load_task = LoadTask(core, self._members, self.processor, self._agent, self.log)

    @property
    def is_loaded(self) -> bool:
        return self._load_task.finished_initial

    def begin(self) -> DistroProtocol:
        """Start to replicate, to verify and to load. The tick of the delay tasks counts from now."""
        core, clock, execute_engine = self._core, self._core.clock, ExecuteTaskEngine(self._core.clock)
        protocol = DistroProtocol(
            core,
            members=self._members,
            mapper=self._naming.mapper,
            clients=self._naming.clients,
            processor=self.processor,
            agent=self._agent,
            unacknowledged=self._unacknowledged,
            log=self.log,
            execute_engine=execute_engine,
        )
        if not core.config.is_standalone:
            verify_task = VerifyTask(
                members=self._members,
                processor=self.processor,
                agent=self._agent,
                load_task=self._load_task,
                log=self.log,
                execute_engine=execute_engine,
                notify_center=core.notify_center,
            )
            period_ms = core.profile.verify_interval_ms
            clock.every(period_ms, verify_task.run, first_ms=clock.now_ms() + period_ms, name="verify round")
        self.log.load_waits()
        clock.spawn(self._load_task.run(), f"initial load of {core.config.address}")
        return protocol
