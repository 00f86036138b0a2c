"""What every part of a node needs: its configuration, clock, transport, events, and observer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from distro_impl.clocks.clock import Clock
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.config import NodeConfig
from distro_impl.events import Observer
from distro_impl.naming.watch import Watch
from distro_impl.notify_center import NotifyCenter
from distro_impl.profiles import Profile
from distro_impl.transport.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Core:
    config: NodeConfig
    clock: Lifetime
    transport: Transport
    notify_center: NotifyCenter
    watch: Watch

    @classmethod
    def of(cls, config: NodeConfig, clock: Clock, transport: Transport, observer: Observer | None) -> Self:
        lifetime = Lifetime(clock)
        watch = Watch(config.address, lifetime, observer, config.profile)
        return cls(config=config, clock=lifetime, transport=transport, notify_center=NotifyCenter(), watch=watch)

    @property
    def profile(self) -> Profile:
        return self.config.profile
