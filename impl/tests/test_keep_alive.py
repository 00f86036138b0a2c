"""The pings of HTTP/2, on which a connection over a dead link ends although neither side has anything to say.

Releases before 2.3 have nothing else that finds a client whose machine is gone (docs/protocol #wire-limits, B03). The
clock of the node stands still in all of these, so nothing that the node itself does can end a connection: no health
check, no detection, no time-out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from impl_lab import NACOS_2_2_4, Lab
from swallower import Swallower, a_peer_behind_a_swallower, swallower_on, until

from distro_impl import VirtualClock, free_main_ports
from distro_impl.config import SDK_PORT_OFFSET
from distro_impl.options import DEFAULT_OPTIONS, GrpcServerOptions, NodeOptions
from distro_impl.transport import grpc_transport
from distro_impl.transport.grpc_server import keep_alive_arguments

pytestmark = pytest.mark.wire

PING_MS, ANSWERED_WITHIN_MS = 100, 1_000
PERIODS_S = 10 * PING_MS / 1000
"""Ten periods: gRPC itself grants a connection without data a few pings and no more, unless it is asked to."""
PINGS = GrpcServerOptions(keep_alive_ms=PING_MS, keep_alive_timeout_ms=ANSWERED_WITHIN_MS)


async def test_a_server_pings_a_client_that_says_nothing_and_ends_it_when_the_link_is_dead(lab: Lab) -> None:
    async with a_client_behind_a_swallower(lab, PINGS) as (swallower, is_held):
        await asyncio.sleep(PERIODS_S)
        assert is_held()  # its client answers pings
        swallower.swallows = True
        await until(lambda: not is_held())


@pytest.mark.slow
async def test_a_server_that_pings_every_two_hours_holds_a_client_over_a_dead_link(lab: Lab) -> None:
    async with a_client_behind_a_swallower(lab, DEFAULT_OPTIONS.sdk_server) as (swallower, is_held):
        swallower.swallows = True
        await asyncio.sleep(PERIODS_S)
        assert is_held()


@pytest.mark.usefixtures("_pinging")
async def test_a_member_pings_its_peer_and_gives_up_a_dead_link() -> None:
    permitting = NodeOptions(cluster_server=GrpcServerOptions(permit_keep_alive_ms=1))
    async with a_peer_behind_a_swallower(VirtualClock(), permitting) as (swallower, client):
        assert (await client.request("HealthCheckRequest", {}, 5_000)).succeeded
        connection = client.connection
        assert connection is not None
        await asyncio.sleep(PERIODS_S)
        assert connection.is_usable  # its peer answers pings
        swallower.swallows = True
        await until(lambda: not connection.is_usable)


@pytest.mark.slow
@pytest.mark.usefixtures("_pinging")
async def test_a_client_that_pings_more_often_than_is_permitted_is_closed() -> None:
    async with a_peer_behind_a_swallower(VirtualClock()) as (_, client):
        assert (await client.request("HealthCheckRequest", {}, 5_000)).succeeded
        connection = client.connection
        assert connection is not None
        await until(lambda: not connection.is_usable)


@asynccontextmanager
async def a_client_behind_a_swallower(
    lab: Lab, server: GrpcServerOptions
) -> AsyncIterator[tuple[Swallower, Callable[[], bool]]]:
    """With the answer to whether its node still holds it."""
    (near,) = free_main_ports(1)
    node, _ = await lab.node(profile=NACOS_2_2_4, options=NodeOptions(sdk_server=server))
    async with swallower_on(near, node.config.port + SDK_PORT_OFFSET) as swallower:
        client = await lab.raw(f"127.0.0.1:{near}", module="naming", source="sdk").connect()
        await client.register("web", 80)
        yield swallower, lambda: node.parts.naming.clients.get(client.id) is not None


@pytest.fixture
def _pinging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members ping their peers without end."""
    options: dict[str, Any] = dict(grpc_transport.CHANNEL_OPTIONS)
    options |= {**dict(keep_alive_arguments(PING_MS, ANSWERED_WITHIN_MS)), "grpc.http2.max_pings_without_data": 0}
    monkeypatch.setattr(grpc_transport, "CHANNEL_OPTIONS", tuple(options.items()))
