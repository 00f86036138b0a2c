"""The transport seam: what a node and its clients need of whatever carries their encoded payloads.

Two shapes of call (docs/protocol #wire-envelope): a unary one, and a bidirectional stream. Everything on this side of
the seam deals in bytes and in the four protocols below; `grpc_transport.py` and `memory.py` are what stands behind it.
Both fail alike, with `grpc.aio.AioRpcError` and its status codes. A message on a stream is work (`clocks/clock.py`)
from when it is sent until its receiver asks for the next one, and the end of a stream until the other end knows of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import aiohttp
import grpc
from aiohttp import web

from distro_impl.clocks.clock import Clock
from distro_impl.options import MAX_MESSAGE_BYTES, GrpcServerOptions, TlsOptions
from distro_impl.transport.health import Health
from distro_protos import Payload

Forward = Callable[[Payload], Awaitable[Payload]]
"""Sends a request on to the peer; the reply."""


class ClientStream(Protocol):
    """The client's end of a bidirectional stream."""

    async def write(self, message: bytes) -> None:
        """Raises AioRpcError or asyncio.InvalidStateError when the stream has ended."""
        ...

    async def read(self) -> bytes | None:
        """The next message; None when either end has ended the stream. Asking consumes the one before."""
        ...

    def stop_reading(self, is_stopped: bool = True) -> None:
        """Whether this end reads nothing for now: what is under way to it waits, and is no work."""
        ...

    def cancel(self) -> None:
        """End the stream at once, and keep the channel."""
        ...

    async def done_writing(self) -> None:
        """Complete this half of the stream; the other goes on."""
        ...


class Channel(Protocol):
    """A client's transport to one server. It does not reconnect: a caller that finds it broken makes a new one."""

    async def check_listening(self) -> None:
        """Raises OSError when no server listens there."""
        ...

    async def call(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """One unary call; the time-out is one of real time. Raises AioRpcError, also when this end is closed."""
        ...

    def open_stream(self) -> ClientStream:
        """One that has ended already when this end is closed."""
        ...

    async def close(self) -> None:
        """End the transport, with its streams and whatever is under way on it."""
        ...


class ServerStream(Protocol):
    """The server's end of a bidirectional stream."""

    @property
    def peer(self) -> str:
        """The address of the client's transport: `ipv4:10.0.0.9:40000`, `ipv6:%5B::1%5D:40000`."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """What waits here because the client does not read."""
        ...

    async def read(self) -> bytes | None:
        """The next message; None when the client has completed its half. Asking consumes the one before."""
        ...

    def send(self, message: bytes) -> None:
        """Queue a message. What the stream cannot carry any more is lost."""
        ...

    async def drained(self) -> None:
        """Until everything that was queued is sent, or cannot be any more."""
        ...

    def close(self) -> None:
        """Complete the stream, without what is still queued."""
        ...

    async def ended(self) -> None:
        """Until the client's transport has ended, or this end was closed."""
        ...


class Service(Protocol):
    """What a server hands its calls to."""

    def unary(self, request: bytes, peer: str) -> bytes:
        """The reply. Raises InvalidRequestError."""
        ...

    async def stream(self, stream: ServerStream) -> None:
        """Returns when the stream is to be completed; is cancelled when the transport ends or the server stops."""
        ...


class InvalidRequestError(ValueError):
    """The bytes are no message at all; the call fails with INTERNAL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What a server needs: where it listens, and what it hands its calls to."""

    ip: str
    port: int
    purpose: str
    """What the port is for, in the message where it is taken."""
    options: GrpcServerOptions
    health: Health
    service: Service
    clock: Clock

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"


class Server(Protocol):
    async def stop(self, grace_s: float | None) -> None:
        """Take no more calls; cut off what is under way when the grace, in real time, is over; None is no grace."""
        ...


class Transport(Protocol):
    async def serve(self, listener: Listener) -> Server:
        """A server that takes calls. Raises PortInUseError, SettingError when a certificate is unusable."""
        ...

    def channel(
        self, target: str, tls: TlsOptions | None = None, max_receive_bytes: int | None = MAX_MESSAGE_BYTES
    ) -> Channel:
        """To the server at `host:port`; nothing is sent before the first call. A longer reply fails the call; None:
        there is no limit."""
        ...

    async def serve_http(
        self, runner: web.AppRunner, ip: str, port: int, *, purpose: str, tls: TlsOptions | None
    ) -> None:
        """From now on until its clean-up the runner answers there. Raises PortInUseError, SettingError when a
        certificate is unusable."""
        ...

    def http_connector(self, tls: TlsOptions | None = None) -> aiohttp.BaseConnector:
        """A session for HTTP requests on this transport."""
        ...


class PeerLink:
    """What stands on the directed link from a node to one peer. This one lets everything pass; the kit's can fail."""

    def check_connect(self) -> None:
        """Called before anything is sent to open a connection. Raises ConnectionError when nothing gets through."""

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        """Take one unary request over the link and bring back its reply. Raises ConnectionError when it is cut."""
        return await forward(request)


CLOSED = "this end of the connection is closed"


def broken(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    """The error of a call that a transport could not carry."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)
