"""The RPC client of one peer: one connection, opened when it is needed and thrown away when it breaks.

A connection is a gRPC channel of its own, the bidirectional stream on it and the set-up message (wire-protocol.md
sections 2.2 and 4.2). After UNAVAILABLE or "connection is unregistered" (301) the next request opens a new one:
gRPC's own reconnect waits in real time, which virtual time must not depend on. For the same reason no gRPC deadline is
set; the time-out of a request covers the set-up and is the clock's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import grpc

from distro_impl.clocks.clock import Clock
from distro_impl.config import NodeConfig, cluster_target
from distro_impl.options import MAX_MESSAGE_BYTES
from distro_impl.security.tls import channel_credentials
from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Message,
    Payload,
    UnreadableBodyError,
    decode,
    encode,
)

CONNECT_TIMEOUT_MS = 3_000
SETUP_PROBES = 100
"""How often a new connection asks whether its set-up was taken in, before it gives up."""

UNREGISTERED = 301

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.use_local_subchannel_pool", 1),  # two nodes in one process must not share a transport
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)


BiStream: TypeAlias = "grpc.aio.StreamStreamCall[Any, Payload]"


class PeerUnreachableError(ConnectionError):
    """There is no connection to the peer, or it broke under the request."""


@runtime_checkable
class Barrier(Protocol):
    """An interceptor that decides about connections as well as about the calls on them."""

    def check_connect(self) -> None:
        """Called before anything is sent to open one. Raises ConnectionError when nothing gets through."""
        ...


class ClusterClient:
    """Requests to one peer."""

    def __init__(
        self, own: NodeConfig, peer: str, clock: Clock, interceptors: Sequence[grpc.aio.ClientInterceptor]
    ) -> None:
        self._own, self._peer, self._clock, self._interceptors = own, peer, clock, interceptors
        self._barriers = [each for each in interceptors if isinstance(each, Barrier)]
        self._connection: _Connection | None = None
        self._open_connections: set[_Connection] = set()  # retired ones too, until they are closed
        self._connecting: asyncio.Task[_Connection | None] | None = None
        self._retired = False

    async def request(self, type_name: str, body: Mapping[str, Any], timeout_ms: int) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError, TimeoutError or UnreadableBodyError."""
        return await self._clock.wait_for(self._request(type_name, body), timeout_ms)

    async def wait_lost(self) -> None:
        """Until the connection of this moment, if there is one, is known to be gone."""
        if self._connection is not None:
            await self._connection.lost.wait()

    @property
    def is_closed(self) -> bool:
        """Retired, and every connection gone."""
        return self._retired and self._connecting is None and not self._open_connections

    def retire(self) -> None:
        """Take no more requests; close when the last one under way has ended."""
        self._retired = True
        for connection in tuple(self._open_connections):
            connection.retire()

    async def close(self) -> None:
        """Close every connection at once, with whatever is under way on it."""
        for connection in tuple(self._open_connections):
            await connection.close()

    async def _request(self, type_name: str, body: Mapping[str, Any]) -> Message:
        connection = self._connection
        if connection is None or not connection.is_usable:
            connection = await self._connect()
        reply = await connection.call(_request(self._own, type_name, body))
        if reply.type == "ErrorResponse" and reply.body.get("errorCode") == UNREGISTERED:
            connection.retire()
        return reply

    async def _connect(self) -> _Connection:
        """One attempt at a time; requests that come meanwhile wait for the same one."""
        if self._retired:
            raise PeerUnreachableError(f"{self._peer} is no member any more")
        if self._connecting is None:
            self._connecting = self._clock.spawn(self._open(), f"{self._own.address} connects to {self._peer}")
        with self._clock.parked():  # the attempt itself is work
            connection = await asyncio.shield(self._connecting)
        if connection is None:
            raise PeerUnreachableError(f"{self._own.address} cannot connect to {self._peer}")
        return connection

    async def _open(self) -> _Connection | None:
        try:
            return await self._clock.wait_for(self._set_up(), CONNECT_TIMEOUT_MS)
        except (PeerUnreachableError, TimeoutError, UnreadableBodyError):
            return None
        finally:
            self._connecting = None

    async def _set_up(self) -> _Connection:
        self._pass_barriers()
        await _knock(cluster_target(self._peer))
        connection = _Connection(self._own, self._peer, self._clock, self._interceptors, self._open_connections)
        try:
            await connection.set_up()
            self._refuse_if_retired()
        except BaseException:
            connection.retire()
            raise
        self._connection = connection
        return connection

    def _pass_barriers(self) -> None:
        try:
            for barrier in self._barriers:
                barrier.check_connect()
        except ConnectionError as error:
            raise PeerUnreachableError(f"nothing gets through to {self._peer}") from error

    def _refuse_if_retired(self) -> None:
        if self._retired:
            raise PeerUnreachableError(f"{self._peer} left while {self._own.address} connected to it")


class _Connection:
    """One channel with its stream, from set-up to retirement."""

    def __init__(
        self,
        own: NodeConfig,
        peer: str,
        clock: Clock,
        interceptors: Sequence[grpc.aio.ClientInterceptor],
        open_connections: set[_Connection],
    ) -> None:
        self._own, self._peer, self._clock = own, peer, clock
        self._open_connections = open_connections
        open_connections.add(self)
        self._channel = _channel(own, cluster_target(peer), interceptors)
        self._unary = self._channel.unary_unary(
            f"/{REQUEST_SERVICE}/{REQUEST_METHOD}", Payload.SerializeToString, Payload.FromString
        )
        self._bi_stream = self._channel.stream_stream(
            f"/{STREAM_SERVICE}/{STREAM_METHOD}", Payload.SerializeToString, Payload.FromString
        )
        self._under_way = 0
        self._retired = self._closing = False
        self.lost = asyncio.Event()

    @property
    def is_usable(self) -> bool:
        return not self._retired and not self.lost.is_set()

    async def set_up(self) -> None:
        """ServerCheck, stream, set-up message, and a question whether that has arrived.

        Java sleeps 100 ms or waits for SetupAckRequest; a health check answers the same at once, with 301 until the
        connection is registered.
        """
        check = await self.call(_request(self._own, "ServerCheckRequest", {}))
        if check.type != "ServerCheckResponse" or not check.succeeded:
            raise PeerUnreachableError(f"{self._peer} does not serve yet: {check.body.get('message')}")
        stream: BiStream = self._bi_stream()
        self._clock.spawn(self._read(stream), f"stream {self._own.address} to {self._peer}")
        await self._write_setup(stream)
        for _ in range(SETUP_PROBES):
            if (await self.call(_request(self._own, "HealthCheckRequest", {}))).succeeded:
                return
        raise PeerUnreachableError(f"{self._peer} did not register the connection")

    async def call(self, payload: Payload) -> Message:
        self._under_way += 1
        try:
            return decode(await self._unary(payload))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                self.retire()
            raise PeerUnreachableError(f"{self._peer}: {error.code().name}, {error.details()}") from error
        finally:
            self._under_way -= 1
            self._close_if_done()

    def retire(self) -> None:
        """Take no more requests; close when the last one under way has ended."""
        self._retired = True
        self._close_if_done()

    async def close(self) -> None:
        """Counts as open until it is done: the end of the node ends who was about to close it."""
        self._retired = self._closing = True
        await self._channel.close()
        self._open_connections.discard(self)

    def _close_if_done(self) -> None:
        if self._retired and not self._under_way and not self._closing:
            self._closing = True
            self._clock.spawn(self.close(), f"{self._own.address} closes its connection to {self._peer}")

    async def _write_setup(self, stream: BiStream) -> None:
        setup = {
            "clientVersion": f"Nacos-Server:v{self._own.profile.version}",
            "tenant": "",
            "labels": self._labels(),
            "abilityTable": {},
            "module": "internal",
        }
        try:
            await stream.write(_request(self._own, "ConnectionSetupRequest", setup))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise PeerUnreachableError(f"the stream to {self._peer} broke during set-up") from error

    def _labels(self) -> dict[str, str]:
        if not self._own.profile.cluster_client_says_tls:
            return {"source": "cluster"}
        return {"source": "cluster", "tls.enable": str(self._own.options.cluster_server.tls is not None).lower()}

    async def _read(self, stream: BiStream) -> None:
        try:
            with self._clock.parked():
                async for payload in stream:
                    await self._answer(stream, payload)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, UnreadableBodyError):
            pass  # the connection is gone or of no use, which is all that matters
        finally:
            self.lost.set()
            self.retire()

    async def _answer(self, stream: BiStream, payload: Payload) -> None:
        """Whoever is asked to reset says yes and connects anew; a member has no other server to go to."""
        request = payload.metadata.type
        if request in ("ClientDetectionRequest", "ConnectResetRequest"):
            answer = {"resultCode": 200, "errorCode": 0, "requestId": decode(payload).body.get("requestId")}
            await stream.write(encode(request.removesuffix("Request") + "Response", {**answer, "success": True}))
        if request == "ConnectResetRequest":
            self.retire()


async def _knock(target: str) -> None:
    """Raises PeerUnreachableError when nobody listens there: a channel takes ten times as long to find that out."""
    host, _, port = target.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except OSError as error:
        raise PeerUnreachableError(f"nobody listens at {target}: {error}") from error
    writer.close()


def _request(own: NodeConfig, type_name: str, body: Mapping[str, Any]) -> Payload:
    """With the identity of the cluster in its headers, where the release sends that (section 4.4)."""
    identity = own.options.identity if own.profile.identity_sent else None
    headers = None if identity is None else {identity.key: identity.value}
    return encode(type_name, {"headers": {}, **body}, headers=headers, client_ip=own.ip)


def _channel(own: NodeConfig, target: str, interceptors: Sequence[grpc.aio.ClientInterceptor]) -> grpc.aio.Channel:
    tls = own.options.cluster_server.tls
    if tls is None:
        return grpc.aio.insecure_channel(target, CHANNEL_OPTIONS, interceptors=interceptors)
    return grpc.aio.secure_channel(target, channel_credentials(tls), CHANNEL_OPTIONS, interceptors=interceptors)
