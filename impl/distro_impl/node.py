"""A node: one life, from binding its ports to one of the two ways to end.

What it consists of is put together in `assembly/`. Everything that it does runs on its `Lifetime`; after a crash it
does not speak again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from distro_impl.assembly.parts import Parts
from distro_impl.clocks.clock import Clock
from distro_impl.config import NodeConfig
from distro_impl.core import Core
from distro_impl.distro.distro_protocol import DistroProtocol
from distro_impl.distro.record import DistroRecord
from distro_impl.events import Observer
from distro_impl.membership.cluster_clients import PeerLinks
from distro_impl.membership.members import ServerMemberManager
from distro_impl.settings.errors import SettingError
from distro_impl.transport.transport import Transport

STOP_GRACE_S = 1.0
DRAIN_TIMEOUT_S = 2.0
"""How long a draining node waits for the other members, in real time."""


class Node:
    """A crashed or stopped node is not started again, a new one takes its address."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        clock: Clock,
        transport: Transport | None = None,
        observer: Observer | None = None,
        links: PeerLinks | None = None,
    ) -> None:
        """Raises MemberListError when the file with the members cannot be used."""
        self._mutant = config.profile.mutant
        if self._mutant is not None:
            self._mutant.switch_on()
        self.config = config
        self.address: str = config.address
        self.parts = Parts(Core.of(config, clock, transport), observer, links)
        self._servers = self.parts.servers()
        self._distro: DistroProtocol | None = None

    @property
    def changes(self) -> int:
        """How often what it holds of a client has changed: while this stands still it holds the same."""
        return self.parts.naming.watch.changes

    # Life

    async def start(self) -> None:
        """Bind all ports, then begin. Raises PortInUseError."""
        await self.bind()
        self.begin()

    async def bind(self) -> None:
        """Open all servers; until `begin` they answer that the server is starting. Raises PortInUseError."""
        await self.parts.remote.health.set_serving(False)
        try:
            for server in self._servers:
                await server.start()
        except (OSError, SettingError):
            await self.crash()
            raise

    def begin(self) -> None:
        """Start the initial load and the timers."""
        self._distro = self.parts.begin()

    async def stop(self) -> None:
        """Say that the node does not serve, let what is under way end, close every connection, and end.

        Peers get no DELETE for the clients of this node, as with real servers, unless the options say `drains_on_stop`.
        """
        drains = self.config.options.drains_on_stop and self._distro is not None
        if not drains:
            self.parts.naming.watch.close()
            self.parts.remote.connections.keeps_clients = True
        await self.parts.remote.health.set_serving(False)
        await self._stop_servers(STOP_GRACE_S)
        if drains and self._distro is not None:
            await self._drain(self._distro)
        await self._end()

    async def crash(self) -> None:
        """End at once: nothing more is said or observed, all memory is gone."""
        await self._end()

    async def _stop_servers(self, grace_s: float | None) -> None:
        await asyncio.gather(*(server.stop(grace_s) for server in self._servers))

    async def _drain(self, distro: DistroProtocol) -> None:
        """All clients are gone: send the DELETEs to the other members, and wait for the answers for a short time."""
        flushed = self.parts.core.clock.spawn(distro.flush(), f"last syncs of {self.address}")
        await asyncio.wait({flushed}, timeout=DRAIN_TIMEOUT_S)

    async def _end(self) -> None:
        self.parts.naming.watch.close()
        await self.parts.core.clock.end()
        await asyncio.gather(self._stop_servers(None), self.parts.membership.close(), self.parts.naming.close())
        mutant, self._mutant = self._mutant, None
        if mutant is not None:
            mutant.switch_off()

    # While it lives

    @property
    def members(self) -> ServerMemberManager:
        """Who the members are, and in which state this node sees them."""
        return self.parts.membership.members

    @property
    def record(self) -> DistroRecord:
        """What Distro has done here, in numbers."""
        return self.parts.distro.log.record

    def change_members(self, addresses: Iterable[str]) -> None:
        """From now on these are the members, as if the file with the list had been changed."""
        self.members.change_list(addresses)
