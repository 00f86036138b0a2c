"""The side of a node that replicates: what is sent to the other members, what they send, the load, the verify round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from distro_impl.assembly.core import Core
from distro_impl.assembly.membership import Membership
from distro_impl.assembly.naming import Naming
from distro_impl.distro.data_processor import DistroClientDataProcessor
from distro_impl.distro.distro_log import DistroLog
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.load_task import LoadTask
from distro_impl.distro.record import DistroRecord
from distro_impl.distro.transport_agent import DistroTransportAgent
from distro_impl.distro.unacknowledged import UnacknowledgedChanges
from distro_impl.distro.verify_task import VerifyTask
from distro_impl.tasks.execute_engine import ExecuteTaskEngine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distro:
    core: Core
    membership: Membership
    naming: Naming
    agent: DistroTransportAgent
    log: DistroLog
    processor: DistroClientDataProcessor
    record: DistroRecord
    unacknowledged: UnacknowledgedChanges
    load_task: LoadTask

    @classmethod
    def of(cls, core: Core, membership: Membership, naming: Naming) -> Self:
        profile, members, record = core.profile, membership.members, DistroRecord()
        agent = DistroTransportAgent(profile, members, membership.peers)
        log = DistroLog(core.config.address, profile)
        unacknowledged = UnacknowledgedChanges(naming.clients.was_deleted)
        processor = DistroClientDataProcessor(profile, naming.clients, unacknowledged, log, core.notify_center)
        is_standalone = core.config.is_standalone
        return cls(
            core=core,
            membership=membership,
            naming=naming,
            agent=agent,
            log=log,
            processor=processor,
            record=record,
            unacknowledged=unacknowledged,
            load_task=LoadTask(core.clock, profile, members, processor, agent, record, log, standalone=is_standalone),
        )

    @property
    def is_loaded(self) -> bool:
        return self.load_task.finished_initial

    def begin(self) -> DistroProtocol:
        """Start to replicate, to verify and to load. The tick of the delay tasks counts from now."""
        core, members, execute_engine = self.core, self.membership.members, ExecuteTaskEngine(self.core.clock)
        protocol = DistroProtocol(
            clock=core.clock,
            profile=core.profile,
            members=members,
            mapper=self.naming.mapper,
            clients=self.naming.clients,
            processor=self.processor,
            agent=self.agent,
            record=self.record,
            unacknowledged=self.unacknowledged,
            log=self.log,
            execute_engine=execute_engine,
            notify_center=core.notify_center,
        )
        if not core.config.is_standalone:
            verify_task = VerifyTask(
                members=members,
                processor=self.processor,
                agent=self.agent,
                load_task=self.load_task,
                record=self.record,
                log=self.log,
                execute_engine=execute_engine,
                notify_center=core.notify_center,
            )
            period_ms = core.profile.verify_interval_ms
            core.clock.every(period_ms, verify_task.run, first_ms=core.clock.now_ms() + period_ms, name="verify round")
        self.log.load_waits()
        core.clock.spawn(self.load_task.run(), f"initial load of {core.config.address}")
        return protocol
