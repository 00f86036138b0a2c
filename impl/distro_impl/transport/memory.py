"""The wire in memory: the same encoded payloads to the same handlers, in an order that a seed chooses.

What is under way waits in lanes. A lane keeps its order, as one direction of a stream does; a unary request or reply
has a lane of its own, since calls on one connection overtake each other. One message arrives in each turn of the event
loop, from a lane that is drawn among those that hold something. Nothing here takes real time or depends on it: one
seed and the same things sent give the same run. Messages are work from the start, as the clock demands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random

import aiohttp
import grpc
from aiohttp import web

from distro_impl.clocks.clock import Clock
from distro_impl.options import MAX_MESSAGE_BYTES, TlsOptions
from distro_impl.ports import PortInUseError
from distro_impl.transport.counted_stream import CountedStream
from distro_impl.transport.http import PairConnector
from distro_impl.transport.memory_stream import ClientEnd, Lane, MemoryStream, ServerEnd
from distro_impl.transport.transport import CLOSED, InvalidRequestError, Listener, broken

FIRST_CLIENT_PORT = 40_000


class MemoryTransport:
    """A network of its own: who listens where is known to the ends that share it."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock, self._random = clock, Random(seed)
        self._lanes: list[Lane] = []  # those in which something waits
        self._under_way, self._is_moving = clock.counted("messages in memory"), False
        self._client_ports = count(FIRST_CLIENT_PORT)
        self.servers: dict[str, MemoryServer] = {}
        self._http: dict[str, web.AppRunner] = {}

    async def serve(self, listener: Listener) -> MemoryServer:
        """There is no service of health to ask, and all share one clock. Raises PortInUseError."""
        if listener.address in self.servers:
            raise PortInUseError(listener.port, listener.purpose)
        server = self.servers[listener.address] = MemoryServer(self, listener)
        return server

    def channel(
        self,
        target: str,
        tls: TlsOptions | None = None,  # noqa: ARG002 - no wire to protect
        max_receive_bytes: int | None = MAX_MESSAGE_BYTES,
    ) -> MemoryChannel:
        peer = f"ipv4:127.0.0.1:{next(self._client_ports)}"
        return MemoryChannel(self, target, self._clock, peer, max_receive_bytes)

    async def serve_http(
        self,
        runner: web.AppRunner,
        ip: str,
        port: int,
        *,
        purpose: str,
        tls: TlsOptions | None,  # noqa: ARG002 - no wire to protect
    ) -> None:
        """Raises PortInUseError."""
        before = self._http.get(f"{ip}:{port}")
        if before is not None and before.server is not None:
            raise PortInUseError(port, purpose)
        self._http[f"{ip}:{port}"] = runner
        await runner.setup()

    def http_connector(self, tls: TlsOptions | None = None) -> aiohttp.BaseConnector:  # noqa: ARG002
        return PairConnector(self._http)

    def post(self, lane: Lane, arrive: Callable[[], None]) -> None:
        """Let it arrive in a later turn of the event loop."""
        lane.append(arrive)
        if len(lane) > 1:
            return
        self._lanes.append(lane)
        if not self._is_moving:
            self._is_moving = True
            self._under_way.set(True)
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """The next message arrives. It counts until what it has started counts itself."""
        index = self._random.randrange(len(self._lanes))
        lane = self._lanes[index]
        arrive = lane.popleft()
        if not lane:
            self._lanes[index] = self._lanes[-1]
            self._lanes.pop()
        try:
            arrive()
        finally:
            if self._lanes:
                asyncio.get_running_loop().call_soon(self._next)
            else:
                self._is_moving = False
                self._under_way.set(False)


class MemoryChannel:
    """A client's transport to one server; it knows the server that listened when it was first used."""

    def __init__(
        self, network: MemoryTransport, target: str, clock: Clock, peer: str, max_receive_bytes: int | None
    ) -> None:
        self._network, self._target, self._clock, self._peer = network, target, clock, peer
        self._max_receive_bytes = max_receive_bytes
        self._connected: MemoryServer | None = None
        self._streams: list[MemoryStream] = []
        self._waiting: dict[asyncio.Future[bytes], None] = {}
        self._is_closed = False

    async def check_listening(self) -> None:
        if self._target not in self._network.servers:
            raise ConnectionRefusedError(f"no server listens at {self._target}")

    async def call(self, request: bytes, timeout_s: float | None = None) -> bytes:  # noqa: ARG002 - nothing takes time
        if self._is_closed:
            raise broken(grpc.StatusCode.UNAVAILABLE, CLOSED)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[reply] = None
        self._network.post(Lane(), lambda: self._arrived(request, reply))
        try:
            return await reply
        finally:
            del self._waiting[reply]

    def open_stream(self) -> ClientEnd:
        stream = MemoryStream(
            self._network.post, CountedStream(self._clock, f"stream of {self._peer} to {self._target}")
        )
        if self._is_closed:
            stream.client_ends()
            return ClientEnd(stream)
        self._streams.append(stream)
        self._network.post(stream.up, lambda: self._opened(stream))
        return ClientEnd(stream)

    async def close(self) -> None:
        self._is_closed = True
        for stream in self._streams:
            stream.client_ends()
        self._streams.clear()
        for reply in self._waiting:
            reply.cancel()

    def _server(self) -> MemoryServer | None:
        if self._connected is None:
            self._connected = self._network.servers.get(self._target)
        return self._connected if self._connected is not None and self._connected.is_running else None

    def _arrived(self, request: bytes, reply: asyncio.Future[bytes]) -> None:
        if reply.done():  # the caller has given up
            return
        server = self._server()
        answer: bytes | grpc.aio.AioRpcError
        if server is None:
            answer = broken(grpc.StatusCode.UNAVAILABLE, f"no server listens at {self._target}")
        else:
            answer = server.unary(request, self._peer)
        if isinstance(answer, bytes) and self._max_receive_bytes is not None and len(answer) > self._max_receive_bytes:
            answer = too_large()
        self._network.post(Lane(), lambda: _give(reply, answer))

    def _opened(self, stream: MemoryStream) -> None:
        server = self._server()
        if stream.is_over:
            return
        if server is None:
            stream.server_ends()
        else:
            server.accept(stream, self._peer)


def too_large() -> grpc.aio.AioRpcError:
    return broken(grpc.StatusCode.RESOURCE_EXHAUSTED, "a message is larger than its receiver allows")


def _give(reply: asyncio.Future[bytes], answer: bytes | grpc.aio.AioRpcError) -> None:
    if reply.done():
        return
    if isinstance(answer, bytes):
        reply.set_result(answer)
    else:
        reply.set_exception(answer)


class MemoryServer:
    def __init__(self, network: MemoryTransport, listener: Listener) -> None:
        self._network, self._address, self._service = network, listener.address, listener.service
        self._max_inbound_bytes = listener.options.max_inbound_bytes
        self._handlers: dict[asyncio.Task[None], ServerEnd] = {}
        self.is_running = True

    def unary(self, request: bytes, peer: str) -> bytes | grpc.aio.AioRpcError:
        try:
            reply = self._service.unary(request, peer)
        except InvalidRequestError as error:
            return broken(grpc.StatusCode.INTERNAL, str(error))
        return too_large() if len(request) > self._max_inbound_bytes else reply

    def accept(self, stream: MemoryStream, peer: str) -> None:
        stream.counted.accepted()
        end = ServerEnd(stream, peer)
        end.handler = handler = asyncio.get_running_loop().create_task(self._service.stream(end))
        stream.cancel_handler = handler.cancel
        self._handlers[handler] = end
        handler.add_done_callback(lambda _: self._ended(stream, end, handler))

    async def stop(self, grace_s: float | None) -> None:
        """Nothing here takes time, so there is nothing to be graceful about but the streams: those are completed."""
        self.is_running = False
        self._network.servers.pop(self._address, None)
        handlers = tuple(self._handlers.items())
        for handler, end in handlers:
            if grace_s is None:
                handler.cancel()
            else:
                end.close()
        if handlers:
            await asyncio.wait([handler for handler, _ in handlers])

    def _ended(self, stream: MemoryStream, end: ServerEnd, handler: asyncio.Task[None]) -> None:
        """Cancelled where the client is gone or the server stops; a handler logs any other exception itself."""
        end.is_closed = True
        del self._handlers[handler]
        stream.server_ends()
        if not handler.cancelled():
            handler.exception()
