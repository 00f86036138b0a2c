"""A node under test in a server process that the kit starts: common code of real Nacos and described servers."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence

from distro_conformance.targets.identity import NO_HEADERS
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.server_process import HOST, ServerProcess, signal_group
from distro_conformance.targets.target import UNLIMITED, Limits, OnProgress
from distro_conformance.waiting import RealClock


class ServedTarget:
    """A node in real time, at a port that is chosen when this object is made."""

    member_headers: Mapping[str, str] = NO_HEADERS
    client_headers: Mapping[str, str] = NO_HEADERS
    limits: Limits = UNLIMITED

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.clock = RealClock()
        (self._port,) = free_base_ports()
        self._server: ServerProcess | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    @property
    def lease_ms(self) -> int | None:
        """Its own."""
        return None

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        self._server = await self._made((self.address, *other_members), on_progress)
        await self._server.start(until_loaded=until_loaded)
        self.clock.slack.watch(self._server.pid)

    async def change_members(self, other_members: Sequence[str]) -> None:
        assert self._server is not None
        await self._server.change_members(sorted((self.address, *other_members)))

    def shorten_lease(self) -> None:
        """Nothing to do: there is no general way."""

    async def suspend(self, ms: int) -> None:
        assert self._server is not None
        signal_group(self._server.pid, self.address, signal.SIGSTOP)
        try:
            await self.clock.pass_ms(ms)
        finally:
            signal_group(self._server.pid, self.address, signal.SIGCONT)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    async def _made(self, members: Sequence[str], on_progress: OnProgress) -> ServerProcess:
        """The server, which is one of the members, not started yet. Raises TargetError."""
        raise NotImplementedError
