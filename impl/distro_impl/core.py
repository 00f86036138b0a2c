"""What every part of a node needs: its configuration, and through that its profile; clock, transport and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from distro_impl.clocks.clock import Clock
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.config import NodeConfig
from distro_impl.notify_center import NotifyCenter
from distro_impl.profiles import Profile
from distro_impl.transport.grpc_transport import GrpcTransport
from distro_impl.transport.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Core:
    config: NodeConfig
    clock: Lifetime
    transport: Transport
    notify_center: NotifyCenter

    @classmethod
    def of(cls, config: NodeConfig, clock: Clock, transport: Transport | None = None) -> Self:
        transport = transport or GrpcTransport()
        return cls(config=config, clock=Lifetime(clock), transport=transport, notify_center=NotifyCenter())

    @property
    def profile(self) -> Profile:
        return self.config.profile
