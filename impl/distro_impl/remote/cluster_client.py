"""The RPC client of one peer: it holds one connection, opens it when it is needed, and keeps it working.

After UNAVAILABLE or "connection is unregistered" (301) the next request opens a new connection: gRPC's own reconnect
waits in real time, which virtual time must not depend on. For the same reason no gRPC deadline is set; the time-out of
a request covers the set-up and is the clock's. A connection on which nothing was answered for five seconds, or a
request has timed out, is asked whether it lives; one that does not say so is retired. A lost one is opened again in the
background, after a delay that grows, so that a peer that is back is known to be. What a server takes for a sign of life
is a health check alone, here every answer is one. Source: docs/protocol #member-client and #connection-client-check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distro_impl.clocks.clock import TimerHandle, Waiting
from distro_impl.core import Core
from distro_impl.remote.peer_connection import PeerConnection, PeerUnreachableError
from distro_impl.transport.transport import PeerLink
from distro_protos import Message, UnreadableBodyError

CONNECT_TIMEOUT_MS = 3_000
UNREGISTERED = 301
KEEP_ALIVE_MS = 5_000
"""After so long without an answer the peer is asked whether it is there."""
HEALTH_TIMEOUT_MS, HEALTH_ATTEMPTS = 3_000, 4
RECONNECT_STEP_MS, RECONNECT_MAX_MS = 100, 5_000


class ClusterClient:
    """Requests to one peer."""

    def __init__(self, core: Core, peer: str, link: PeerLink) -> None:
        self._core, self._peer, self._clock, self._link = core, peer, core.clock, link
        self._own_address = core.config.address
        self.connection: PeerConnection | None = None
        self._open_connections: dict[PeerConnection, None] = {}  # retired ones too, until they are closed
        self._waiting: list[Waiting[PeerConnection | None]] | None = None  # for the attempt that is under way
        self._is_checking = self._has_ended = False
        self._failed_attempts = 0
        self._next_look: TimerHandle | None = None

    async def request(self, type_name: str, body: Mapping[str, Any], timeout_ms: int) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError, TimeoutError or UnreadableBodyError."""
        try:
            return await self._clock.wait_for(self._request(type_name, body), timeout_ms)
        except TimeoutError:
            self.check()
            raise

    @property
    def is_closed(self) -> bool:
        """Retired, and every connection gone."""
        return self._has_ended and self._waiting is None and not self._open_connections

    def retire(self) -> None:
        """Take no more requests; close when the last one under way has ended."""
        self._end()
        for connection in tuple(self._open_connections):
            connection.retire()

    async def close(self) -> None:
        """Close every connection at once, with whatever is under way on it."""
        self._end()
        for connection in tuple(self._open_connections):
            await connection.close()

    def _end(self) -> None:
        self._has_ended = True
        if self._next_look is not None:
            self._next_look.cancel()

    async def _request(self, type_name: str, body: Mapping[str, Any]) -> Message:
        connection = self.connection
        if connection is None or not connection.is_usable:
            connection = await self._connect()
        reply = await connection.ask(type_name, body)
        if reply.type == "ErrorResponse" and reply.body.get("errorCode") == UNREGISTERED:
            self._give_up(connection)
        return reply

    def _give_up(self, connection: PeerConnection) -> None:
        """The peer does not know it any more."""
        connection.retire()

    # Opening a connection

    async def _connect(self) -> PeerConnection:
        """One attempt at a time; requests that come meanwhile wait for the same one."""
        if self._has_ended:
            raise PeerUnreachableError(f"{self._peer} is no member any more")
        self._begin_to_open()
        waiting: Waiting[PeerConnection | None] = Waiting(self._clock)  # the attempt itself is work
        assert self._waiting is not None
        self._waiting.append(waiting)
        connection = await waiting.taken()
        if connection is None:
            raise PeerUnreachableError(f"{self._own_address} cannot connect to {self._peer}")
        return connection

    def _begin_to_open(self) -> None:
        if self._waiting is None:
            self._waiting = []
            self._clock.spawn(self._open(), f"{self._own_address} connects to {self._peer}")

    async def _open(self) -> None:
        connection = None
        try:
            connection = await self._clock.wait_for(self._set_up(), CONNECT_TIMEOUT_MS)
        except (PeerUnreachableError, TimeoutError, UnreadableBodyError):
            pass
        finally:
            waiting, self._waiting = self._waiting, None
            for each in waiting or ():
                each.give(connection)
        if connection is None:
            self._failed_attempts += 1
            self._look_in(min(self._failed_attempts * RECONNECT_STEP_MS, RECONNECT_MAX_MS))

    async def _set_up(self) -> PeerConnection:
        forget = self._open_connections.pop
        connection = PeerConnection(self._core, self._peer, self._link, self._retired, lambda it: forget(it, None))
        self._open_connections[connection] = None
        try:
            await connection.set_up()
            if self._has_ended:
                raise PeerUnreachableError(f"{self._peer} left while {self._own_address} connected to it")
        except BaseException:
            connection.retire()
            raise
        self.connection, self._failed_attempts = connection, 0
        self._look_in(KEEP_ALIVE_MS)
        return connection

    # Keeping it

    def check(self) -> None:
        """Ask now whether the connection lives."""
        if self.connection is not None and not self._is_checking:
            self._is_checking = True
            self._clock.spawn(self._ask_whether_it_lives(self.connection), f"health check of {self._peer}")

    def _retired(self) -> None:
        """The connection, or an earlier one."""
        if self.connection is not None and not self.connection.is_usable:
            self.connection = None
            self._look_in(0)

    def _look_in(self, ms: int) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        if not self._has_ended:
            self._next_look = self._clock.call_at(self._clock.now_ms() + ms, self._look, f"look after {self._peer}")

    def _look(self) -> None:
        if self.connection is None:
            self._begin_to_open()
            return
        silent_ms = self._clock.now_ms() - self.connection.last_answer_ms
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
