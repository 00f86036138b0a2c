"""What is under way on one bidirectional stream, counted for the clock.

Each direction is work while a message is on its way, or its receiver has it and has not asked for the next one. The
opening of a stream and its end are messages like any other. A direction whose receiver is gone, or reads nothing for
now, is no work, whatever is sent there.
"""

from __future__ import annotations

import asyncio

from distro_impl.clocks.clock import Clock, Counted


class BaseServerEnd:
    """The server's end of a stream, whose handler waits until it is closed; subclasses carry the messages."""

    def __init__(self, handler: asyncio.Task[None] | None) -> None:
        self.handler = handler
        self.is_closed = False

    def close(self) -> None:
        """Wake the handler of the stream, unless the handler itself closes it."""
        if not self.is_closed:
            self.is_closed = True
            if self.handler is not None and self.handler is not asyncio.current_task():
                self.handler.cancel()

    async def ended(self) -> None:
        if not self.is_closed:
            await asyncio.Event().wait()  # cancelled by `close`, by gRPC, or by the end of the client


class OneWay:
    """One direction."""

    __slots__ = ("_counted", "_is_open", "_is_stopped", "_under_way")

    def __init__(self, counted: Counted) -> None:
        self._counted = counted
        self._under_way = 0
        self._is_open, self._is_stopped = True, False

    def sent(self) -> None:
        self._under_way += 1
        if self._under_way == 1:
            self._update()

    def consumed(self) -> None:
        """The oldest one, if there is one."""
        if self._under_way:
            self._under_way -= 1
            if not self._under_way:
                self._update()

    def closed(self) -> None:
        """The receiver is gone."""
        self._is_open = False
        self._update()

    def stop_reading(self, is_stopped: bool) -> None:
        self._is_stopped = is_stopped
        self._update()

    def _update(self) -> None:
        self._counted.set(self._is_open and not self._is_stopped and self._under_way > 0)


class CountedStream:
    """Both directions, and what the two ends of the stream have to say of it."""

    __slots__ = ("_is_accepted", "down", "up")

    def __init__(self, clock: Clock, name: str) -> None:
        self.up, self.down = OneWay(clock.counted(f"{name}, up")), OneWay(clock.counted(f"{name}, down"))
        self._is_accepted = False
        self.up.sent()  # the stream itself

    def accepted(self) -> None:
        """The server knows of it."""
        self._is_accepted = True

    def client_gone(self) -> bool:
        """The client's end is over; whether the server has to be notified."""
        self.down.closed()
        if self._is_accepted:
            self.up.sent()
        else:
            self.up.closed()
        return self._is_accepted

    def server_gone(self) -> None:
        """The server's end is over, and the client has to learn of it."""
        self.up.closed()
        self.down.sent()
