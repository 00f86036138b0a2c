"""What a node does with what comes in at one of its two gRPC ports, and the order in which a call is checked.

Two servers, for SDKs and for members, offer the same two methods; one acceptor serves one of them. Source:
docs/protocol #wire-limits (settings), #wire-checks (order of checks for a unary request) and #connection-stream (the
stream).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from google.protobuf.message import DecodeError

from distro_impl.core import Core
from distro_impl.logs import logger
from distro_impl.options import GrpcServerOptions
from distro_impl.remote.connection import Connection, ConnectionMeta
from distro_impl.remote.connection_manager import ConnectionManager, PeerKey, peer_address
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
from distro_impl.remote.handlers import Handler, Refusal, Reply, Request
from distro_impl.remote.payloads import ConnectionSetupRequest, Response, read_body
from distro_impl.transport.health import Health
from distro_impl.transport.transport import InvalidRequestError, Listener, Server, ServerStream
from distro_protos import Payload, encode

ABILITIES = {"supportPersistentInstanceByGrpc": False}

log = logger(__name__)


class RequestAcceptor:
    """One server: its port, and what comes in there."""

    def __init__(
        self,
        core: Core,
        purpose: str,
        port_offset: int,
        options: GrpcServerOptions,
        *,
        connections: ConnectionManager,
        handlers: Mapping[str, Handler],
        refusal: Refusal,
        health: Health,
        forbidden: Collection[str] = (),
    ) -> None:
        """`forbidden` are types of requests that are refused on this port."""
        self._core, self._clock, self._profile = core, core.clock, core.profile
        self._purpose, self._port, self._options = purpose, core.config.port + port_offset, options
        self._connections, self._handlers, self._refusal, self._health = connections, handlers, refusal, health
        self._forbidden = forbidden
        self._server: Server | None = None

    async def start(self) -> None:
        """Raises PortInUseError."""
        listener = Listener(
            ip=self._core.config.ip,
            port=self._port,
            purpose=f"{self._purpose} gRPC of node {self._core.config.address}",
            options=self._options,
            health=self._health,
            service=self,
            clock=self._clock,
        )
        self._server = await self._core.transport.serve(listener)

    async def stop(self, grace_s: float | None = None) -> None:
        """With a grace the streams are completed first; without, every call is cut off."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace_s)

    # Unary

    def unary(self, request: bytes, peer: str) -> bytes:
        payload = _payload(request)
        if payload is None:
            raise InvalidRequestError("Invalid protobuf byte sequence")
        try:
            answer = encode(*self._reply(payload, (self._port, peer)))
        except NacosError as error:
            answer = encode("ErrorResponse", error.to_json())
        except Exception as error:
            log.exception("%s failed", payload.metadata.type)
            answer = encode("ErrorResponse", NacosError(SERVER_ERROR, f"{type(error).__name__}: {error}").to_json())
        return answer.SerializeToString()

    def _reply(self, payload: Payload, peer: PeerKey) -> Reply:
        type_name = payload.metadata.type
        if type_name in self._forbidden:
            raise NacosError(BAD_GATEWAY, f" invoke {type_name} from sdk is forbidden")
        if not self._clock.is_running:
            raise NacosError(INVALID_SERVER_STATUS, "Server is starting,please try later.")
        connection_id = self._connections.id_of(peer)
        if type_name == "ServerCheckRequest":
            return "ServerCheckResponse", success(
                connectionId=connection_id, supportAbilityNegotiation=self._profile.ability_negotiation or None
            )
        handler = self._handlers.get(type_name)
        if handler is None:
            self._connections.log.no_handler(type_name)
            raise NacosError(NO_HANDLER, "RequestHandler Not Found")
        connection = self._connections.get(connection_id)
        if connection is None:
            self._connections.log.not_registered(connection_id)
            raise NacosError(UN_REGISTER, "Connection is unregistered.")
        try:
            body, headers = read_body(payload)
        except ValueError as error:
            raise NacosError(BAD_GATEWAY, f"the body of {type_name} is unreadable: {error}") from error
        connection.touch()
        request = Request(type_name, body, connection_id, headers, connection.meta.client_ip)
        try:
            return self._refusal(request) or handler(request)
        except NacosError as error:
            in_result = error.code if self._profile.exception_code_in_result else SERVER_ERROR
            return "ErrorResponse", failure(in_result, error.code, error.message)

    # Stream

    async def stream(self, stream: ServerStream) -> None:
        """Lives as long as the transport; a client that only completes its half keeps its registration.

        A defect of this node ends the stream, so that the client connects again: its messages would be read no more.
        """
        peer = (self._port, stream.peer)
        connection_id = self._connections.stream_opened(peer, stream)
        try:
            while (message := await stream.read()) is not None:
                await self._receive(stream, peer, connection_id, message)
            await stream.ended()
        except Exception:
            log.exception("the stream of %s failed and is ended", connection_id)
        finally:
            self._connections.stream_ended(peer)

    async def _receive(self, stream: ServerStream, peer: PeerKey, connection_id: str, serialized: bytes) -> None:
        payload = _payload(serialized)
        if payload is None:
            log.warning("ignored on the stream of %s: no payload", connection_id)
            return
        try:
            body, _ = read_body(payload)
        except ValueError as error:
            log.warning("ignored on the stream of %s: %s: %s", connection_id, payload.metadata.type, error)
            return
        if isinstance(body, ConnectionSetupRequest):
            await self._set_up(Connection(self._meta(peer, connection_id, body), self._clock, stream), body)
        elif isinstance(body, Response):
            self._connections.acknowledge(connection_id, body.request_id, body.result_code == SUCCESS)

    def _meta(self, peer: PeerKey, connection_id: str, body: ConnectionSetupRequest) -> ConnectionMeta:
        port, address = peer
        ip, remote_port = peer_address(address)
        return ConnectionMeta(
            id=connection_id,
            client_ip=ip,
            remote_port=remote_port,
            local_port=port,
            created_ms=self._clock.now_ms(),
            version=body.client_version or "",
            tenant=body.tenant or "",
            labels=body.labels or {},
        )

    async def _set_up(self, connection: Connection, body: ConnectionSetupRequest) -> None:
        """Source: docs/protocol #connection-stream; null labels never get a connection registered upstream either."""
        if body.labels is None:
            return
        if connection.meta.is_sdk and not self._clock.is_running:
            await self._refuse(connection)
            return
        self._connections.register(connection)
        if self._profile.ability_negotiation and body.ability_table is not None:
            connection.send(encode("SetupAckRequest", {"headers": {}, "abilityTable": ABILITIES, "module": "internal"}))

    async def _refuse(self, connection: Connection) -> None:
        if self._profile.refusal_is_sent:
            connection.send(encode("ConnectResetRequest", {"headers": {}, "module": "internal"}))
            await connection.sent()
        connection.close()


def _payload(serialized: bytes) -> Payload | None:
    """None for what is no Payload."""
    try:
        return Payload.FromString(serialized)
    except DecodeError:
        return None
