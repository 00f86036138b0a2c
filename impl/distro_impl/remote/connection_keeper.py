"""Keeps the connection to a peer working, with or without requests.

A connection on which nothing was answered for five seconds, or a request has timed out, is asked whether it lives; one
that does not say so is retired. A lost one is opened again in the background, after a delay that grows, so that a peer
that is back is known to be. What a server takes for a sign of life is a health check alone, here every answer is one.
Source: docs/protocol #connection-client-check.
"""

from __future__ import annotations

from collections.abc import Callable

from distro_impl.clocks.clock import Clock, TimerHandle
from distro_impl.remote.peer_connection import PeerConnection, PeerUnreachableError
from distro_protos import UnreadableBodyError

KEEP_ALIVE_MS = 5_000
"""After so long without an answer the peer is asked whether it is there."""
HEALTH_TIMEOUT_MS, HEALTH_ATTEMPTS = 3_000, 4
RECONNECT_STEP_MS, RECONNECT_MAX_MS = 100, 5_000


class ConnectionKeeper:
    """Of the connections to one peer, one after the other; `begin_to_open` begins an attempt to have another one."""

    def __init__(self, clock: Clock, peer: str, begin_to_open: Callable[[], None]) -> None:
        self._clock, self._peer, self._begin_to_open = clock, peer, begin_to_open
        self.connection: PeerConnection | None = None
        self._is_checking = self.has_ended = False
        self._failed_attempts = 0
        self._next_look: TimerHandle | None = None

    def opened(self, connection: PeerConnection) -> None:
        self.connection, self._failed_attempts = connection, 0
        self._look_in(KEEP_ALIVE_MS)

    def could_not_open(self) -> None:
        self._failed_attempts += 1
        self._look_in(min(self._failed_attempts * RECONNECT_STEP_MS, RECONNECT_MAX_MS))

    def ended(self) -> None:
        """A connection was retired, this one or an earlier one."""
        if self.connection is not None and not self.connection.is_usable:
            self.connection = None
            self._look_in(0)

    def check(self) -> None:
        """Ask now whether the connection lives."""
        if self.connection is not None and not self._is_checking:
            self._is_checking = True
            self._clock.spawn(self._ask_whether_it_lives(self.connection), f"health check of {self._peer}")

    def end(self) -> None:
        """The peer is not needed any more."""
        self.has_ended = True
        if self._next_look is not None:
            self._next_look.cancel()

    def _look_in(self, ms: int) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        if not self.has_ended:
            self._next_look = self._clock.call_at(self._clock.now_ms() + ms, self._look, f"look after {self._peer}")

    def _look(self) -> None:
        connection = self.connection
        if connection is None:
            self._begin_to_open()
            return
        silent_ms = self._clock.now_ms() - connection.last_answer_ms
        if silent_ms >= KEEP_ALIVE_MS:
            self.check()
        else:
            self._look_in(KEEP_ALIVE_MS - silent_ms)

    async def _ask_whether_it_lives(self, connection: PeerConnection) -> None:
        """A health check that fails is final, one that is not answered is repeated."""
        lives = False
        for _ in range(HEALTH_ATTEMPTS):
            try:
                asked = connection.ask("HealthCheckRequest", {})
                lives = (await self._clock.wait_for(asked, HEALTH_TIMEOUT_MS)).succeeded
                break
            except TimeoutError:
                continue
            except (PeerUnreachableError, UnreadableBodyError):
                break
        self._is_checking = False
        if not lives:
            connection.retire()
        elif connection is self.connection:
            self._look_in(KEEP_ALIVE_MS)
