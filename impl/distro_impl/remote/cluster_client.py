"""The RPC client of one peer: it holds one connection, and opens it when it is needed.

That the connection works is the business of its keeper. After UNAVAILABLE or "connection is unregistered" (301) the
next request opens a new one: gRPC's own reconnect waits in real time, which virtual time must not depend on. For the
same reason no gRPC deadline is set; the time-out of a request covers the set-up and is the clock's.
Source: docs/protocol #member-client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from distro_impl.clocks.clock import Waiting
from distro_impl.core import Core
from distro_impl.remote.connection_keeper import ConnectionKeeper
from distro_impl.remote.peer_connection import PeerConnection, PeerUnreachableError
from distro_impl.transport.transport import PeerLink
from distro_protos import Message, UnreadableBodyError

CONNECT_TIMEOUT_MS = 3_000
UNREGISTERED = 301


class ClusterClient:
    """Requests to one peer."""

    def __init__(self, core: Core, peer: str, link: PeerLink) -> None:
        self._core, self._peer, self._clock, self._link = core, peer, core.clock, link
        self._own_address = core.config.address
        self._keeper = ConnectionKeeper(core.clock, peer, self._begin_to_open)
        self._open_connections: dict[PeerConnection, None] = {}  # retired ones too, until they are closed
        self._waiting: list[Waiting[PeerConnection | None]] | None = None  # for the attempt that is under way

    async def request(self, type_name: str, body: Mapping[str, Any], timeout_ms: int) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError, TimeoutError or UnreadableBodyError."""
        try:
            return await self._clock.wait_for(self._request(type_name, body), timeout_ms)
        except TimeoutError:
            self._keeper.check()
            raise

    @property
    def is_closed(self) -> bool:
        """Retired, and every connection gone."""
        return self._keeper.has_ended and self._waiting is None and not self._open_connections

    def retire(self) -> None:
        """Take no more requests; close when the last one under way has ended."""
        self._keeper.end()
        for connection in tuple(self._open_connections):
            connection.retire()

    async def close(self) -> None:
        """Close every connection at once, with whatever is under way on it."""
        self._keeper.end()
        for connection in tuple(self._open_connections):
            await connection.close()

    async def _request(self, type_name: str, body: Mapping[str, Any]) -> Message:
        connection = self._keeper.connection
        if connection is None or not connection.is_usable:
            connection = await self._connect()
        reply = await connection.ask(type_name, body)
        if reply.type == "ErrorResponse" and reply.body.get("errorCode") == UNREGISTERED:
            self._give_up(connection)
        return reply

    def _give_up(self, connection: PeerConnection) -> None:
        """The peer does not know it any more."""
        connection.retire()

    async def _connect(self) -> PeerConnection:
        """One attempt at a time; requests that come meanwhile wait for the same one."""
        if self._keeper.has_ended:
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
            self._keeper.could_not_open()

    async def _set_up(self) -> PeerConnection:
        forget = self._open_connections.pop
        connection = PeerConnection(self._core, self._peer, self._link, self._keeper.ended, lambda it: forget(it, None))
        self._open_connections[connection] = None
        try:
            await connection.set_up()
            if self._keeper.has_ended:
                raise PeerUnreachableError(f"{self._peer} left while {self._own_address} connected to it")
        except BaseException:
            connection.retire()
            raise
        self._keeper.opened(connection)
        return connection
