"""Clients that abuse a node leave nothing behind in it. The large version is bench/abuse.py."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter

import grpc
import pytest
from impl_lab import STRICT, Lab, RawClient, errors_logged
from payloads import random_payloads

from distro_impl import Node, NodeConfig, VirtualClock
from distro_impl.core import Core
from distro_impl.naming.client import Client
from distro_impl.remote.connection import Connection
from distro_impl.remote.connection_log import ConnectionLog
from distro_impl.remote.connection_manager import MAX_IDS_WITHOUT_STREAM, ConnectionManager

pytestmark = pytest.mark.wire

AT_ONCE = 25


def living(*types: type) -> Counter[str]:
    gc.collect()
    return Counter(type(found).__name__ for found in gc.get_objects() if type(found) in types)


async def come_and_go(lab: Lab, node: Node, count: int) -> None:
    """Connections that register and subscribe, and are dropped."""

    async def one(number: int) -> None:
        client = await lab.naming(node)
        await client.register(f"service-{number % 5}", 80)
        await client.subscribe("service-0")
        await client.close()

    for _ in range(count // AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(AT_ONCE)))


async def push_for_a_minute(writer: RawClient, clock: VirtualClock) -> None:
    for second in range(60):
        await writer.register("busy", 80, metadata={"second": str(second), "ballast": "x" * 50_000})
        await clock.advance(1_000)


@pytest.mark.slow
async def test_nothing_is_left_of_clients_that_abused_a_node(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    node, clock = await lab.node()
    before, tasks = living(Connection, Client), len(asyncio.all_tasks())
    half_open = [socket.create_connection(("127.0.0.1", node.config.port + 1000)) for _ in range(20)]
    await come_and_go(lab, node, 200)
    await clock.settle()

    writer, slow, mute = [await lab.naming(node) for _ in range(3)]
    slow.reads.clear()
    for subscriber in (slow, mute):
        await subscriber.subscribe("busy")
    await push_for_a_minute(writer, clock)

    make = random_payloads(seed=1)
    for _ in range(300):
        try:
            await writer.ask_bytes(make())
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INTERNAL  # noqa: PT017

    for client in (writer, mute, slow):
        await client.close()
    for opened in half_open:
        opened.close()
    lab.forget_clients()
    await clock.advance(200_000)  # the memory of deleted clients ends with a lease
    assert living(Connection, Client) == before
    for _ in range(200):  # gRPC ends the streams of disconnected clients in its own, real time
        if len(asyncio.all_tasks()) <= tasks:
            break
        await asyncio.sleep(0.05)
    assert len(asyncio.all_tasks()) <= tasks
    assert errors_logged(caplog) == []


class Stream:
    """A stream on which nothing arrives."""

    peer = "ipv4:10.0.0.1:2"
    unsent_bytes = 0

    async def read(self) -> bytes | None: ...
    def send(self, message: bytes) -> None: ...
    async def drained(self) -> None: ...
    async def ended(self) -> None: ...
    def close(self) -> None: ...


def test_ids_of_transports_without_a_stream_are_forgotten_the_oldest_first() -> None:
    """No event announces the end of such a transport. One with a stream keeps its id."""
    config = NodeConfig(port=1, profile=STRICT)
    log = ConnectionLog(config.address, STRICT)
    connections = ConnectionManager(Core.of(config, VirtualClock()), lambda _: None, lambda _: None, log)
    silent, streaming = (1, "ipv4:10.0.0.1:1"), (1, "ipv4:10.0.0.1:2")
    silent_id, streaming_id = connections.id_of(silent), connections.stream_opened(streaming, Stream())
    for number in range(MAX_IDS_WITHOUT_STREAM):
        connections.id_of((1, f"ipv4:10.0.0.2:{number}"))
    assert connections.id_of(silent) != silent_id
    assert connections.id_of(streaming) == streaming_id
