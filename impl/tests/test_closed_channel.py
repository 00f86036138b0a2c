"""A node that ends closes connections that a client is about to use: that is no defect, on either transport."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from distro_impl import VirtualClock
from distro_impl.transport.grpc_transport import GrpcTransport
from distro_impl.transport.memory import MemoryTransport
from distro_impl.transport.transport import Transport

pytestmark = pytest.mark.wire

UNUSED = "127.0.0.1:1"


@pytest.mark.parametrize("kind", ["memory", "grpc"])
async def test_a_closed_channel_counts_as_a_server_that_is_gone(kind: str) -> None:
    clock = VirtualClock()
    transport: Transport = GrpcTransport() if kind == "grpc" else MemoryTransport(clock, 0)
    channel = transport.channel(UNUSED)
    await channel.close()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await channel.call(b"")
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    stream = channel.open_stream()
    with pytest.raises(asyncio.InvalidStateError):
        await stream.write(b"")
    assert await stream.read() is None
    await clock.settle()
