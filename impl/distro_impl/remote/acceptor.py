"""The gRPC servers of a node and the order in which a call is checked.

Two servers, for SDKs and for members, offer the same two methods; one acceptor serves one of them. Source:
wire-protocol.md sections 1.2 (settings), 1.5 (order of checks for a unary request) and 2.3 (the stream).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import grpc

from distro_impl.clocks.clock import Clock
from distro_impl.config import MAX_MESSAGE_BYTES
from distro_impl.distro.transport_agent import DISTRO_DATA
from distro_impl.membership.report import MEMBER_REPORT
from distro_impl.ports import PortInUseError, is_free
from distro_impl.profiles import Profile
from distro_impl.remote.connection_manager import Connection, ConnectionManager, PeerKey
from distro_impl.remote.errors import (
    BAD_GATEWAY,
    INVALID_SERVER_STATUS,
    NO_HANDLER,
    SERVER_ERROR,
    UN_REGISTER,
    NacosError,
    failure,
    success,
)
from distro_impl.remote.handlers import Handler, Reply, Request
from distro_protos import (
    REQUEST_METHOD,
    REQUEST_SERVICE,
    STREAM_METHOD,
    STREAM_SERVICE,
    Payload,
    UnreadableBodyError,
    decode,
    encode,
)

CLUSTER_ONLY = frozenset({DISTRO_DATA, MEMBER_REPORT})
ABILITIES = {"supportPersistentInstanceByGrpc": False}

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 7_200_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # SDKs ping every 60 s of silence
)

ServicerContext = grpc.aio.ServicerContext[Any, Any]

log = logging.getLogger(__name__)


class RequestAcceptor:
    """One server: its port, and what comes in there."""

    def __init__(
        self,
        *,
        ip: str,
        port: int,
        purpose: str,
        refuses_cluster_requests: bool,
        clock: Clock,
        profile: Profile,
        connections: ConnectionManager,
        handlers: Mapping[str, Handler],
        is_started: Callable[[], bool],
    ) -> None:
        self._ip, self._port, self._purpose = ip, port, purpose
        self._refuses_cluster_requests = refuses_cluster_requests
        self._clock, self._profile = clock, profile
        self._connections, self._handlers, self._is_started = connections, handlers, is_started
        self._server: grpc.aio.Server | None = None
        self._closing = asyncio.Event()

    async def start(self) -> None:
        """Raises PortInUseError."""
        if not is_free(self._ip, self._port):  # asked first, because gRPC writes its own complaint to stderr
            raise PortInUseError(self._port, self._purpose)
        server = grpc.aio.server(options=SERVER_OPTIONS)
        unary = grpc.unary_unary_rpc_method_handler(self._unary, Payload.FromString, Payload.SerializeToString)
        stream = grpc.stream_stream_rpc_method_handler(self._bi_stream, Payload.FromString, Payload.SerializeToString)
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: unary}),
                grpc.method_handlers_generic_handler(STREAM_SERVICE, {STREAM_METHOD: stream}),
            )
        )
        try:
            server.add_insecure_port(f"{self._ip}:{self._port}")
        except RuntimeError as error:
            raise PortInUseError(self._port, self._purpose) from error
        await server.start()
        self._server = server

    async def stop(self, grace_s: float | None = None) -> None:
        """With a grace the streams are completed first; without, every call is cut off."""
        server, self._server = self._server, None
        if server is None:
            return
        if grace_s is not None:
            self._closing.set()
        await server.stop(grace_s)

    # Unary

    async def _unary(self, payload: Payload, context: ServicerContext) -> Payload:
        try:
            return encode(*self._reply(payload, (self._port, context.peer())))
        except NacosError as error:
            return encode("ErrorResponse", error.to_json())
        except Exception as error:
            log.exception("%s failed", payload.metadata.type)
            return encode("ErrorResponse", NacosError(SERVER_ERROR, f"{type(error).__name__}: {error}").to_json())

    def _reply(self, payload: Payload, peer: PeerKey) -> Reply:
        type_name = payload.metadata.type
        if self._refuses_cluster_requests and type_name in CLUSTER_ONLY:
            raise NacosError(BAD_GATEWAY, f" invoke {type_name} from sdk is forbidden")
        if not self._is_started():
            raise NacosError(INVALID_SERVER_STATUS, "Server is starting,please try later.")
        connection_id = self._connections.id_of(peer)
        if type_name == "ServerCheckRequest":
            return "ServerCheckResponse", success(
                connectionId=connection_id, supportAbilityNegotiation=self._profile.ability_negotiation or None
            )
        handler = self._handlers.get(type_name)
        if handler is None:
            raise NacosError(NO_HANDLER, f"RequestHandler Not Found: {type_name}")
        if self._connections.get(connection_id) is None:
            raise NacosError(UN_REGISTER, "Connection is unregistered.")
        try:
            message = decode(payload)
        except UnreadableBodyError as error:
            raise NacosError(BAD_GATEWAY, str(error)) from error
        try:
            return handler(Request(type_name, message.body, connection_id))
        except NacosError as error:  # an error of the handler carries its code in both places (from 2.1.1 on)
            return "ErrorResponse", failure(error.code, error.code, error.message)

    # Stream

    async def _bi_stream(self, _: object, context: ServicerContext) -> None:
        """Lives as long as the transport; a client that only completes its half keeps its registration."""
        peer = (self._port, context.peer())
        reader = asyncio.create_task(self._read(context, peer))
        try:
            await self._closing.wait()  # or cancelled by the end of the transport
        finally:
            reader.cancel()
            self._connections.unregister(peer)

    async def _read(self, context: ServicerContext, peer: PeerKey) -> None:
        connection_id = self._connections.id_of(peer)
        while (payload := await context.read()) is not grpc.aio.EOF:
            try:
                message = decode(payload)
            except UnreadableBodyError as error:
                log.warning("ignored on the stream of %s: %s", connection_id, error)
                continue
            if message.type == "ConnectionSetupRequest":
                await self._set_up(message.body, connection_id, context)
            elif message.is_response:
                self._connections.acknowledge(connection_id, message)

    async def _set_up(self, body: Mapping[str, Any], connection_id: str, context: ServicerContext) -> None:
        labels = body.get("labels")
        if labels is None or not self._is_started():
            return  # null labels: never registered upstream either (section 2.2)
        connection = Connection(connection_id, labels, context.write)
        self._connections.register(connection)
        if self._profile.ability_negotiation and body.get("abilityTable") is not None:
            await connection.send(encode("SetupAckRequest", {"headers": {}, "abilityTable": ABILITIES}))
