"""A gRPC server that takes the two calls of a node: of forwarders and of played members."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from distro_protos import REQUEST_METHOD, REQUEST_SERVICE, STREAM_METHOD, STREAM_SERVICE, Payload

LOOPBACK = "127.0.0.1"

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.so_reuseport", 0),  # a port in use is an error, not a shared port
    ("grpc.max_receive_message_length", 100 * 1024 * 1024),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

Context = grpc.aio.ServicerContext[Any, Any]


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
