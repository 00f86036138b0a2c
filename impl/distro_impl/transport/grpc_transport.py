"""Real gRPC behind the seam.

Every channel is a transport of its own, since servers know a client by its address (docs/protocol #connection-id), and
gRPC's own reconnecting, retries and deadlines stay out of it: they run in real time. A server in this process says at
which address it listens and on which clock; a channel to that address counts its streams on that clock, and a name in
the metadata of a stream lets both ends know that they are those of one stream. Nothing of this leaves the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count
from typing import Any

import aiohttp
import grpc
from aiohttp import web

from distro_impl.clocks.clock import Clock
from distro_impl.options import MAX_MESSAGE_BYTES, TlsOptions
from distro_impl.ports import PortInUseError, is_free
from distro_impl.transport.counted_stream import BaseServerEnd, CountedStream
from distro_impl.transport.grpc_server import add_port, grpc_server, keep_alive_arguments
from distro_impl.transport.http import serve_on_tcp, tcp_connector
from distro_impl.transport.tls import channel_credentials
from distro_impl.transport.transport import CLOSED, InvalidRequestError, Listener, broken
from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, STREAM_METHOD, STREAM_SERVICE
from distro_protos.addresses import parse_address

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.use_local_subchannel_pool", 1),  # two nodes in one process must not share a transport
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    *keep_alive_arguments(360_000, 20_000),  # as Java's (docs/protocol #wire-limits)
)
STREAM_NAME = "distrocheck-stream"
"""The metadata key of a stream that is counted."""

ServicerContext = grpc.aio.ServicerContext[Any, Any]

_listening: dict[str, Clock] = {}
"""Address -> clock of the servers of this process."""
_streams: dict[str, CountedStream] = {}
_numbers = count(1)


class GrpcTransport:
    """See the module. Holds nothing."""

    async def serve(self, listener: Listener) -> GrpcServer:
        """A server that takes calls. Raises PortInUseError, SettingError when a certificate is unusable."""
        taken = PortInUseError(listener.port, listener.purpose)
        if not is_free(listener.ip, listener.port):  # asked first, because gRPC writes its own message to stderr
            raise taken
        server = GrpcServer(listener)
        try:
            await server.start()
        except RuntimeError as error:
            raise taken from error
        return server

    def channel(
        self, target: str, tls: TlsOptions | None = None, max_receive_bytes: int | None = MAX_MESSAGE_BYTES
    ) -> GrpcChannel:
        limit = ("grpc.max_receive_message_length", -1 if max_receive_bytes is None else max_receive_bytes)
        return GrpcChannel(target, (*CHANNEL_OPTIONS, limit), None if tls is None else channel_credentials(tls))

    async def serve_http(
        self, runner: web.AppRunner, ip: str, port: int, *, purpose: str, tls: TlsOptions | None
    ) -> None:
        await serve_on_tcp(runner, ip, port, purpose=purpose, tls=tls)

    def http_connector(self, tls: TlsOptions | None = None) -> aiohttp.BaseConnector:
        return tcp_connector(tls)


class GrpcChannel:
    """A client's transport to one server."""

    def __init__(
        self,
        target: str,
        options: tuple[tuple[str, int], ...] = CHANNEL_OPTIONS,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        self._target = target
        self._channel = (
            grpc.aio.insecure_channel(target, options)
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, options)
        )
        self._unary: Any = self._channel.unary_unary(f"/{REQUEST_SERVICE}/{REQUEST_METHOD}")
        self._bi_stream: Any = self._channel.stream_stream(f"/{STREAM_SERVICE}/{STREAM_METHOD}")
        self._streams: list[_ClientStream] = []
        self._is_closed = False

    async def check_listening(self) -> None:
        """A channel takes ten times as long to notice a closed port."""
        target = parse_address(self._target)
        _, writer = await asyncio.open_connection(target.ip, target.port)
        writer.close()

    async def call(self, request: bytes, timeout_s: float | None = None) -> bytes:
        try:
            reply: bytes = await self._unary(request, timeout=timeout_s)
        except grpc.aio.UsageError as error:  # to gRPC that is a mistake of its caller
            raise broken(grpc.StatusCode.UNAVAILABLE, CLOSED) from error
        return reply

    def open_stream(self) -> _ClientStream:
        clock = _listening.get(self._target)
        if self._is_closed:
            return _ClientStream(None, None, None)
        if clock is None:
            stream = _ClientStream(self._bi_stream(), None, None)
        else:
            name = str(next(_numbers))
            counted = _streams[name] = CountedStream(clock, f"stream {name} to {self._target}")
            stream = _ClientStream(self._bi_stream(metadata=((STREAM_NAME, name),)), name, counted)
        self._streams.append(stream)
        return stream

    async def close(self) -> None:
        self._is_closed = True
        for stream in self._streams:
            stream.cancel()
        self._streams.clear()
        await self._channel.close()


class _ClientStream:
    def __init__(self, call: Any, name: str | None, counted: CountedStream | None) -> None:
        self._call, self._name, self._counted = call, name, counted  # no call: cancelled

    async def write(self, message: bytes) -> None:
        if self._counted is not None:
            self._counted.up.sent()
        await self._open_call().write(message)

    async def read(self) -> bytes | None:
        if self._counted is not None:
            self._counted.down.consumed()
        try:
            message = await self._open_call().read()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            message = grpc.aio.EOF
        except asyncio.CancelledError:
            self._is_over()
            if self._call is not None:  # it is the reader who was cancelled
                raise
            return None
        if isinstance(message, bytes):
            return message
        self._is_over()
        return None

    def stop_reading(self, is_stopped: bool = True) -> None:
        if self._counted is not None:
            self._counted.down.stop_reading(is_stopped)

    def cancel(self) -> None:
        """gRPC keeps the transport open as long as a call of it is referenced, so drop the reference."""
        call, self._call = self._call, None
        self._is_over()
        if call is not None:
            call.cancel()

    async def done_writing(self) -> None:
        await self._open_call().done_writing()

    def _open_call(self) -> Any:
        if self._call is None:
            raise asyncio.InvalidStateError("the stream was cancelled")
        return self._call

    def _is_over(self) -> None:
        counted, self._counted = self._counted, None
        if counted is not None and not counted.client_gone() and self._name is not None:
            _streams.pop(self._name, None)


class GrpcServer:
    def __init__(self, listener: Listener) -> None:
        self._listener, self._service = listener, listener.service
        self._open: set[_ServerStream] = set()
        unary: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(self._unary)
        stream: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(self._stream)
        self._server = grpc_server(listener.options, listener.health, unary, stream)

    async def start(self) -> None:
        """Raises RuntimeError when the port is taken, SettingError when a certificate is unusable."""
        add_port(self._server, self._listener.address, self._listener.options)
        await self._server.start()
        _listening[self._listener.address] = self._listener.clock

    async def stop(self, grace_s: float | None) -> None:
        _listening.pop(self._listener.address, None)
        if grace_s is not None:
            for stream in tuple(self._open):
                stream.close()
        await self._server.stop(grace_s)

    async def _unary(self, request: bytes, context: ServicerContext) -> bytes:
        try:
            return self._service.unary(request, context.peer())
        except InvalidRequestError as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))

    async def _stream(self, _: object, context: ServicerContext) -> None:
        """A stream that this end has closed is complete; one that ends otherwise was cancelled."""
        stream = _ServerStream(context)
        self._open.add(stream)
        try:
            await self._service.stream(stream)
        except asyncio.CancelledError:
            if not stream.is_closed:
                raise
        finally:
            self._open.discard(stream)
            stream.finish()


class _ServerStream(BaseServerEnd):
    def __init__(self, context: ServicerContext) -> None:
        super().__init__(asyncio.current_task())
        self._context = context
        self.peer: str = context.peer()
        self._name = next((str(value) for key, value in context.invocation_metadata() or () if key == STREAM_NAME), "")
        self._counted = _streams.get(self._name)
        if self._counted is not None:
            self._counted.accepted()
        self._outbox: deque[bytes] = deque()
        self._writer: asyncio.Task[None] | None = None
        self.unsent_bytes = 0

    async def read(self) -> bytes | None:
        if self._counted is not None:
            self._counted.up.consumed()
        message: Any = None if self.is_closed else await self._context.read()
        return message if isinstance(message, bytes) else None

    def send(self, message: bytes) -> None:
        if self.is_closed:
            return
        if self._counted is not None:
            self._counted.down.sent()
        self._outbox.append(message)
        self.unsent_bytes += len(message)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._drain(), name=f"writing to {self.peer}")

    async def drained(self) -> None:
        if self._writer is not None:
            await asyncio.wait([self._writer])

    def finish(self) -> None:
        """The handler is done."""
        self.is_closed = True
        if self._writer is not None:
            self._writer.cancel()
        self._outbox.clear()
        if self._counted is not None:
            self._counted.server_gone()
            _streams.pop(self._name, None)

    async def _drain(self) -> None:
        """gRPC takes a message only when the client has room for it."""
        try:
            while self._outbox:
                await self._context.write(self._outbox[0])
                self.unsent_bytes -= len(self._outbox.popleft())
        except (asyncio.InvalidStateError, grpc.aio.UsageError, grpc.aio.InternalError):
            self._outbox.clear()  # the stream has ended; its handler reports it
            self.unsent_bytes = 0
        finally:
            self._writer = None
