"""A gRPC server as the options want it, with the health service that every gRPC server is expected to have.

Real servers have none. Source: docs/protocol #wire-envelope and #wire-limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import grpc
from grpc_health.v1 import health_pb2_grpc

from distro_impl.options import GrpcServerOptions
from distro_impl.transport.health import Health
from distro_impl.transport.tls import server_credentials
from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, STREAM_METHOD, STREAM_SERVICE

MAX_PENDING_REQUESTS = 50_000
"""Requests that have come in and are not being handled yet; what is beyond is refused. gRPC's own limit is a thousand,
and from there on it refuses at random."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Methods(grpc.GenericRpcHandler):
    """All methods of a server, found by their names.

    For methods that are registered one by one, gRPC waits for the next call of each one, again after every call.
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        return self._handlers.get(handler_call_details.method)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """As generated code registers them."""
        self._handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """The same ones, in the form for an older server."""


def grpc_server(options: GrpcServerOptions, health_of_node: Health, unary: Handler, stream: Handler) -> grpc.aio.Server:
    """Without a port."""
    methods = Methods()
    methods.add_registered_method_handlers(REQUEST_SERVICE, {REQUEST_METHOD: unary})
    methods.add_registered_method_handlers(STREAM_SERVICE, {STREAM_METHOD: stream})
    health_pb2_grpc.add_HealthServicer_to_server(health_of_node.servicer, methods)
    server = grpc.aio.server(options=_channel_arguments(options))
    server.add_generic_rpc_handlers((methods,))
    return server


def add_port(server: grpc.aio.Server, address: str, options: GrpcServerOptions) -> None:
    """Raises RuntimeError when the port is taken, SettingError when a certificate is unusable."""
    if options.tls is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, server_credentials(options.tls))


def _channel_arguments(options: GrpcServerOptions) -> tuple[tuple[str, int], ...]:
    return (
        ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share
        ("grpc.max_receive_message_length", options.max_inbound_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.server.max_pending_requests", MAX_PENDING_REQUESTS),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_REQUESTS),
        *keep_alive_arguments(options.keep_alive_ms, options.keep_alive_timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.server_handshake_timeout_ms", 20_000),  # a socket that says nothing
        ("grpc.http2.min_ping_interval_without_data_ms", options.permit_keep_alive_ms),
    )


def keep_alive_arguments(ping_ms: int, timeout_ms: int) -> tuple[tuple[str, int], ...]:
    """Of a channel or a server that pings after so long without data. gRPC takes a time-out for these pings and never
    acts on it (its pull request 39239); what does end the connection is that of pings of any kind, a minute else."""
    return (
        ("grpc.keepalive_time_ms", ping_ms),
        ("grpc.keepalive_timeout_ms", timeout_ms),
        ("grpc.http2.ping_timeout_ms", timeout_ms),
    )
