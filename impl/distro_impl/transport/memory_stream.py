"""A stream of the wire in memory: two lanes, and what has arrived at either end and was not read yet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from distro_impl.transport.counted_stream import BaseServerEnd, CountedStream

Lane = deque[Callable[[], None]]
"""What is under way, in the order in which it arrives."""
Post = Callable[[Lane, Callable[[], None]], None]


class MemoryStream:
    """One stream between its two ends."""

    def __init__(self, post: Post, counted: CountedStream) -> None:
        self.post, self.counted = post, counted
        self.up, self.down = Lane(), Lane()
        self.to_server, self.to_client = _Inbox(), _Inbox()
        self.cancel_handler: Callable[[], object] = lambda: None
        self.is_over = False

    def to(self, inbox: _Inbox, message: bytes | None) -> None:
        lane = self.up if inbox is self.to_server else self.down
        self.post(lane, lambda: inbox.put(message))

    def client_ends(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.to_client.put(None)
            if self.counted.client_gone():
                self.post(self.up, self._cancel_handler)

    def _cancel_handler(self) -> None:
        self.cancel_handler()

    def server_ends(self) -> None:
        self.counted.server_gone()
        self.cancel_handler = lambda: None
        self.to(self.to_client, None)


class _Inbox:
    """What has arrived at one end and was not read yet; None is the end of it."""

    def __init__(self) -> None:
        self._messages: deque[bytes | None] = deque()
        self._reader: asyncio.Future[None] | None = None
        self.unread_bytes = 0

    def put(self, message: bytes | None) -> None:
        self._messages.append(message)
        self.unread_bytes += len(message or b"")
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> bytes | None:
        while not self._messages:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        message = self._messages[0]
        if message is not None:  # the end stays
            self._messages.popleft()
            self.unread_bytes -= len(message)
        return message


class ClientEnd:
    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream

    async def write(self, message: bytes) -> None:
        if self._stream.is_over:
            raise asyncio.InvalidStateError("the stream has ended")
        self._stream.counted.up.sent()
        self._stream.to(self._stream.to_server, message)

    async def read(self) -> bytes | None:
        self._stream.counted.down.consumed()
        message = await self._stream.to_client.get()
        if message is None:
            self._stream.client_ends()
        return message

    def stop_reading(self, is_stopped: bool = True) -> None:
        self._stream.counted.down.stop_reading(is_stopped)

    def cancel(self) -> None:
        self._stream.client_ends()

    async def done_writing(self) -> None:
        self._stream.counted.up.sent()
        self._stream.to(self._stream.to_server, None)


class ServerEnd(BaseServerEnd):
    def __init__(self, stream: MemoryStream, peer: str) -> None:
        super().__init__(None)
        self._stream, self.peer = stream, peer

    @property
    def unsent_bytes(self) -> int:
        return self._stream.to_client.unread_bytes

    async def read(self) -> bytes | None:
        self._stream.counted.up.consumed()
        return None if self.is_closed else await self._stream.to_server.get()

    def send(self, message: bytes) -> None:
        if not self.is_closed:
            self._stream.counted.down.sent()
            self._stream.to(self._stream.to_client, message)

    async def drained(self) -> None:
        """What was sent arrives before the end of the stream."""
