"""The ejector ends connections that give no sign of life, or that do not read, and streams that are never set up.

Runs after one second and then three seconds after the end of each check. A check asks all idle connections at once;
who has not answered when its time is over is unregistered, so that its instances go with it. Which of the two it
does is a matter of the release. Source: docs/protocol #ejector-answer, #ejector-check; RuntimeConnectionEjector.
"""

from __future__ import annotations

from distro_impl.clocks.clock import side_by_side
from distro_impl.core import Core
from distro_impl.logs import logger
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_manager import ConnectionManager

FIRST_CHECK_MS = 1_000
CHECK_PERIOD_MS = 3_000

log = logger(__name__)


class ConnectionEjector:
    def __init__(self, core: Core, connections: ConnectionManager) -> None:
        self._clock, self._profile, self._connections = core.clock, core.profile, connections

    def start(self) -> None:
        self._check_after(FIRST_CHECK_MS)

    async def check(self) -> None:
        """One check. The clock logs an exception, and the checks continue."""
        try:
            self._eject_blocked()
            for stream in self._connections.without_set_up(self._profile.connection_idle_ms):
                stream.close()
            await self._eject_silent()
        finally:
            self._check_after(CHECK_PERIOD_MS)

    def _check_after(self, delay_ms: int) -> None:
        self._clock.call_at(self._clock.now_ms() + delay_ms, self.check, "connection check")

    def _eject_blocked(self) -> None:
        """Messages to a client that does not read cost memory."""
        longest_ms = self._profile.push_blocked_ms
        for connection in self._connections:
            if longest_ms is not None and connection.busy_ms() > longest_ms:
                self._eject(connection, "its pushes were blocked for too long")

    async def _eject_silent(self) -> None:
        timeout_ms = self._profile.detection_timeout_ms
        if timeout_ms is None:
            return
        idle = [
            connection for connection in self._connections if connection.idle_ms() >= self._profile.connection_idle_ms
        ]
        asked = (self._connections.detect(connection, timeout_ms) for connection in idle)
        answers = await side_by_side(self._clock, asked, "detection of an idle connection")
        for connection, is_alive in zip(idle, answers, strict=True):
            if not is_alive:
                self._eject(connection, "it did not answer")

    def _eject(self, connection: Connection, why: str) -> None:
        log.info("[%s]Unregister Out dated connection: %s", connection.id, why)
        self._connections.unregister(connection.id)
