"""The gRPC servers of a node and the order in which a call is checked.

Two servers, for SDKs and for members, offer the same two methods; one acceptor serves one of them. Source:
wire-protocol.md sections 1.2 (settings), 1.5 (order of checks for a unary request) and 2.3 (the stream).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from distro_impl.clocks.clock import Clock
from distro_impl.json_fields import FieldError
from distro_impl.logs import logger
from distro_impl.options import GrpcServerOptions
from distro_impl.ports import PortInUseError, is_free
from distro_impl.profiles import Profile
from distro_impl.remote.connection import Connection, ConnectionMeta
from distro_impl.remote.connection_manager import CONNECT_RESET, ConnectionManager, PeerKey, peer_address
from distro_impl.remote.errors import (
    BAD_GATEWAY,
    INVALID_SERVER_STATUS,
    NO_HANDLER,
    SERVER_ERROR,
    SUCCESS,
    UN_REGISTER,
    NacosError,
    failure,
    success,
)
from distro_impl.remote.grpc_server import Health, add_port, grpc_server
from distro_impl.remote.handlers import Handler, Reply, Request
from distro_impl.remote.request_fields import read_body
from distro_impl.security.callers import CLUSTER_ONLY
from distro_impl.security.request_filter import RemoteRequestAuthFilter
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

ABILITIES = {"supportPersistentInstanceByGrpc": False}

ServicerContext = grpc.aio.ServicerContext[Any, Any]

log = logger(__name__)


class RequestAcceptor:
    """One server: its port, and what comes in there."""

    def __init__(
        self,
        *,
        ip: str,
        port: int,
        purpose: str,
        options: GrpcServerOptions,
        refuses_cluster_requests: bool,
        clock: Clock,
        profile: Profile,
        connections: ConnectionManager,
        handlers: Mapping[str, Handler],
        auth_filter: RemoteRequestAuthFilter,
        health: Health,
        is_started: Callable[[], bool],
    ) -> None:
        self._ip, self._port, self._purpose = ip, port, purpose
        self._options, self._auth_filter, self._health = options, auth_filter, health
        self._refuses_cluster_requests = refuses_cluster_requests
        self._clock, self._profile = clock, profile
        self._connections, self._handlers, self._is_started = connections, handlers, is_started
        self._server: grpc.aio.Server | None = None
        self._open_streams: set[asyncio.Event] = set()

    async def start(self) -> None:
        """Raises PortInUseError."""
        if not is_free(self._ip, self._port):  # asked first, because gRPC writes its own complaint to stderr
            raise PortInUseError(self._port, self._purpose)
        server = grpc_server(self._options, self._health)
        unary = grpc.unary_unary_rpc_method_handler(self._unary, _read_payload, Payload.SerializeToString)
        stream = grpc.stream_stream_rpc_method_handler(self._bi_stream, _read_payload, Payload.SerializeToString)
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(REQUEST_SERVICE, {REQUEST_METHOD: unary}),
                grpc.method_handlers_generic_handler(STREAM_SERVICE, {STREAM_METHOD: stream}),
            )
        )
        try:
            add_port(server, f"{self._ip}:{self._port}", self._options)
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
            for stream in self._open_streams:
                stream.set()
        await server.stop(grace_s)

    # Unary

    async def _unary(self, payload: Payload | None, context: ServicerContext) -> Payload:
        if payload is None:
            await context.abort(grpc.StatusCode.INTERNAL, "Invalid protobuf byte sequence")
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
            raise NacosError(NO_HANDLER, "RequestHandler Not Found")
        connection = self._connections.get(connection_id)
        if connection is None:
            raise NacosError(UN_REGISTER, "Connection is unregistered.")
        try:
            message = decode(payload)
            body = read_body(type_name, message.body)
        except (UnreadableBodyError, FieldError) as error:
            raise NacosError(BAD_GATEWAY, str(error)) from error
        connection.touch()
        request = Request(type_name, body, connection_id, message.headers, connection.meta.client_ip)
        try:
            return self._auth_filter.refusal(request) or handler(request)
        except NacosError as error:
            in_result = error.code if self._profile.exception_code_in_result else SERVER_ERROR
            return "ErrorResponse", failure(in_result, error.code, error.message)

    # Stream

    async def _bi_stream(self, _: object, context: ServicerContext) -> None:
        """Lives as long as the transport; a client that only completes its half keeps its registration."""
        peer = (self._port, context.peer())
        connection_id = self._connections.stream_opened(peer)
        ended = asyncio.Event()
        self._open_streams.add(ended)
        reader = asyncio.create_task(self._read(context, peer, connection_id, ended.set))
        try:
            await ended.wait()  # or cancelled by the end of the transport
        finally:
            reader.cancel()
            self._open_streams.discard(ended)
            self._connections.stream_ended(peer)

    async def _read(
        self, context: ServicerContext, peer: PeerKey, connection_id: str, close: Callable[[], None]
    ) -> None:
        while (payload := await context.read()) is not grpc.aio.EOF:
            if payload is None:
                log.warning("ignored on the stream of %s: no payload", connection_id)
                continue
            try:
                message = decode(payload)
                body = read_body(message.type, message.body)
            except (UnreadableBodyError, FieldError) as error:
                log.warning("ignored on the stream of %s: %s", connection_id, error)
                continue
            if message.type == "ConnectionSetupRequest":
                connection = Connection(self._meta(peer, connection_id, body), self._clock, context.write, close)
                await self._set_up(connection, body)
            elif message.is_response:
                succeeded = body.get("resultCode", SUCCESS) == SUCCESS
                self._connections.acknowledge(connection_id, body.get("requestId"), succeeded)

    def _meta(self, peer: PeerKey, connection_id: str, body: Mapping[str, Any]) -> ConnectionMeta:
        port, address = peer
        ip, remote_port = peer_address(address)
        return ConnectionMeta(
            id=connection_id,
            client_ip=ip,
            remote_port=remote_port,
            local_port=port,
            created_ms=self._clock.now_ms(),
            version=body.get("clientVersion", ""),
            tenant=body.get("tenant", ""),
            labels=body.get("labels", {}),
            abilities=body.get("abilityTable"),
        )

    async def _set_up(self, connection: Connection, body: Mapping[str, Any]) -> None:
        """Source: section 2.3; null labels never get a connection registered upstream either (section 2.2)."""
        if "labels" not in body:
            return
        too_early = connection.meta.is_sdk and not self._is_started()
        if too_early or not self._connections.register(connection):
            await self._refuse(connection)
        elif self._profile.ability_negotiation and "abilityTable" in body:
            connection.send(encode("SetupAckRequest", {"headers": {}, "abilityTable": ABILITIES}))

    async def _refuse(self, connection: Connection) -> None:
        if self._profile.refusal_is_told:
            reset = self._connections.reset_body(connection.id)
            connection.send(encode(CONNECT_RESET, {"headers": {}, **reset}))
            await connection.sent()
        connection.close()


def _read_payload(serialized: bytes) -> Payload | None:
    """None for what is no Payload: one call fails, and gRPC has nothing to write to the log."""
    try:
        return Payload.FromString(serialized)
    except DecodeError:
        return None
