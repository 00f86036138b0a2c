"""Both ends of a gRPC connection: a client's, set up the way SDKs and cluster members do it, and a node's.

A connection is a transport: the unary calls and the stream of one client must share it, because the server knows the
client by its TCP address (docs/protocol #connection-id). So every `Connection` has a channel of its own. Time-outs
here are real ones, they only bound what a broken server can cost; protocol time belongs to the target's clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

import grpc
import grpc.aio

from distro_conformance.verdict import TargetError
from distro_impl.options import TlsOptions
from distro_impl.transport.grpc_transport import GrpcTransport
from distro_impl.transport.transport import Channel, ClientStream, Transport
from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Json,
    Message,
    Metadata,
    Payload,
    decode,
    encode,
)

CALL_TIMEOUT_S = 20.0
TRANSPORT = GrpcTransport()
SDK_LABELS = {"source": "sdk", "module": "naming"}
CLUSTER_LABELS = {"source": "cluster"}

NO_ABILITIES: Mapping[str, bool] = {}

OnPush = Callable[[Message], None]
LOOPBACK = "127.0.0.1"
SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.so_reuseport", 0),  # a port in use is an error, not a shared port
    ("grpc.max_receive_message_length", 100 * 1024 * 1024),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

Context = grpc.aio.ServicerContext[Any, Any]
UNREGISTERED = 301
_STARTING = 300


class Connection:
    """Use `await Connection.open(...)`. `id` is the connection id, which is also the client id in naming."""

    def __init__(
        self, address: str, channel: Channel, on_push: OnPush | None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.address = address
        self._headers = headers
        self.id = ""
        self.namespace: str | None = None
        """The namespace that replaces the public one in its requests."""
        self.is_silent = False
        """Whether it receives pushes of the server without answering them."""
        self.refuses = False
        """Whether it answers pushes of the server with failure."""
        self._channel = channel
        self._on_push = on_push
        self._stream: ClientStream | None = None
        self._reader: asyncio.Task[None] | None = None
        self._unanswered: list[Message] = []
        self._asked_s = time.monotonic()
        self._longest_idle_s = 0.0

    @property
    def longest_idle_ms(self) -> int:
        """The longest time between two requests, for as long as the server has kept the connection. How long it took to
        answer them is no part of it."""
        so_far_s = 0.0 if self.is_closed else time.monotonic() - self._asked_s
        return int(1000 * max(self._longest_idle_s, so_far_s))

    def _end_idleness(self) -> None:
        now_s = time.monotonic()
        self._longest_idle_s, self._asked_s = max(self._longest_idle_s, now_s - self._asked_s), now_s

    @property
    def is_closed(self) -> bool:
        """Whether its stream has ended, on either side."""
        return self._reader is not None and self._reader.done()

    async def fall_silent(self) -> None:
        """Answers nothing more, after one last sign of life."""
        await self.check_health()
        self.is_silent = True

    async def answer_again(self) -> None:
        """Answers again, also the requests that arrived meanwhile."""
        self.is_silent = False
        unanswered, self._unanswered = self._unanswered, []
        for message in unanswered:
            if self._stream is not None and not self.is_closed:
                await self._answer(self._stream, message)

    @classmethod
    def bare(cls, address: str, headers: Mapping[str, str] | None = None) -> Self:
        """A transport without stream and set-up: the server knows no connection behind it."""
        return cls(address, TRANSPORT.channel(address, max_receive_bytes=None), None, headers)

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        labels: Mapping[str, str],
        on_push: OnPush | None = None,
        on_id: Callable[[str], None] | None = None,
        abilities: Mapping[str, bool] | None = NO_ABILITIES,
        transport: Transport | None = None,
        headers: Mapping[str, str] | None = None,
        tls: TlsOptions | None = None,
    ) -> Self:
        """Server check, stream, set-up; returns once the server treats the connection as registered.

        `address` is host:port of a gRPC port. `on_id` gets the connection id before the server has a client for it.
        `headers` go with each request that brings none. `abilities`: None sends no table of them.
        Raises TargetError when the server does not get there in time.
        """
        channel = (transport or TRANSPORT).channel(address, tls, max_receive_bytes=None)
        connection = cls(address, channel, on_push, headers)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await connection.ask_id()
                if on_id is not None:
                    on_id(connection.id)
                await connection.set_up(labels, abilities)
        except (grpc.aio.AioRpcError, TimeoutError) as error:
            await connection.close()
            reason = error.details() if isinstance(error, grpc.aio.AioRpcError) else "it does not answer in time"
            raise TargetError(f"cannot connect to {address}: {reason}; is a node listening there?") from error
        except BaseException:
            await connection.close()
            raise
        return connection

    async def ask(
        self, type_name: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Message:
        """One unary call. Raises grpc.aio.AioRpcError when the transport fails; error replies are returned."""
        shown = self._headers if headers is None else headers
        if self.namespace is not None and body.get("namespace") == "public":
            body = {**body, "namespace": self.namespace}
        return decode(await self.call(encode(type_name, body, headers=shown, client_ip="127.0.0.1")))

    async def check_health(self) -> Message:
        """A sign of life, which changes nothing."""
        return await self.ask("HealthCheckRequest", {"headers": {}, "module": "internal"})

    async def call(self, payload: Payload) -> Payload:
        """The same for a payload as it stands, also a malformed one."""
        self._end_idleness()
        return Payload.FromString(await self._channel.call(payload.SerializeToString(), CALL_TIMEOUT_S))

    async def push(self, type_name: str, body: Mapping[str, Any]) -> None:
        """Send something on the stream, which has no answer."""
        await self._write(encode(type_name, body, client_ip="127.0.0.1"))

    async def push_raw(self, type_name: str, body: bytes) -> None:
        """The same with a body that need not be JSON."""
        await self._write(raw(type_name, body))

    async def ask_raw(self, type_name: str, body: bytes) -> Message:
        """One unary call with a body that need not be JSON."""
        return decode(await self.call(raw(type_name, body)))

    async def _write(self, payload: Payload) -> None:
        assert self._stream is not None, "it was not set up"
        await self._stream.write(payload.SerializeToString())

    async def close(self) -> None:
        """Drop the transport without a message: the protocol has none for it."""
        if self._stream is not None:
            self._stream.cancel()
        if self._reader is not None:
            await self._reader
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _registered(self) -> None:
        """Set-up has no reply below 2.3; a health check answers 301 until it has been handled."""
        while True:
            health = await self.check_health()
            code = health.body.get("errorCode", 0)
            if code not in (UNREGISTERED, _STARTING):
                return
            if code == _STARTING:
                await asyncio.sleep(0.01)

    async def ask_id(self) -> None:
        """The server check, which needs no set-up. Raises TargetError for any other answer."""
        check = await self.ask("ServerCheckRequest", {"headers": {}, "module": "internal"})
        if check.type != "ServerCheckResponse":
            raise TargetError(f"{self.address} answers the server check with {check}")
        self.id = str(check.body.get("connectionId", ""))

    async def set_up(
        self,
        labels: Mapping[str, str],
        abilities: Mapping[str, bool] | None = NO_ABILITIES,
        *,
        until_registered: bool = True,
    ) -> None:
        """The steps after the server check; without `until_registered` the server may not have handled them yet."""
        self._stream = stream = self._channel.open_stream()
        await stream.write(
            encode("ConnectionSetupRequest", _set_up_body(labels, abilities), client_ip="127.0.0.1").SerializeToString()
        )
        self._reader = asyncio.create_task(self._read(stream), name=f"stream from {self.address}")
        self._reader.add_done_callback(lambda _: self._end_idleness())
        if until_registered:
            await self._registered()

    async def _read(self, stream: ClientStream) -> None:
        """Until the stream ends, on either side."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError, asyncio.InvalidStateError):
            while (message := await stream.read()) is not None:
                await self._react(stream, decode(Payload.FromString(message)))

    async def _react(self, stream: ClientStream, message: Message) -> None:
        if self._on_push is not None:
            self._on_push(message)
        if message.type == "SetupAckRequest":  # wants no answer (docs/protocol #connection-handshake)
            return
        if not message.type.endswith("Request"):
            return
        if self.is_silent:
            self._unanswered.append(message)
        else:
            await self._answer(stream, message)

    async def _answer(self, stream: ClientStream, message: Message) -> None:
        codes = {"resultCode": 500, "errorCode": 500} if self.refuses else {"resultCode": 200, "errorCode": 0}
        answer = {**codes, "requestId": message.body.get("requestId"), "success": not self.refuses}
        reply = encode(message.type.removesuffix("Request") + "Response", answer)
        await stream.write(reply.SerializeToString())


def raw(type_name: str, body: bytes) -> Payload:
    """With a body that need not be JSON."""
    payload = Payload(metadata=Metadata(type=type_name, client_ip="127.0.0.1"))
    payload.body.value = body
    return payload


def _set_up_body(labels: Mapping[str, str], abilities: Mapping[str, bool] | None) -> Json:
    table = {} if abilities is None else {"abilityTable": dict(abilities)}
    return {
        "headers": {},
        "clientVersion": "Nacos-Java-Client:v2.2.4",
        "tenant": "",
        "labels": dict(labels),
        **table,
        "module": "internal",
    }


def node_server(
    unary: Callable[[Payload, Context], Awaitable[Payload]], stream: Callable[[object, Context], Awaitable[None]]
) -> grpc.aio.Server:
    """A server without a port that takes the two calls of a node. `stream` reads and writes bytes."""
    server = grpc.aio.server(options=SERVER_OPTIONS)
    request = grpc.unary_unary_rpc_method_handler(unary, Payload.FromString, Payload.SerializeToString)
    both_ways: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(stream)
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: request}),
            grpc.method_handlers_generic_handler(STREAM_SERVICE, {STREAM_METHOD: both_ways}),
        )
    )
    return server
