"""The orderly end of a node, as its clients and the other members observe it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from grpc_health.v1 import health_pb2, health_pb2_grpc
from impl_lab import NACOS_2_2_4, STRICT, Lab, RawClient, Run

from distro_impl import Node, NodeConfig, NodeOptions, SystemClock, VirtualClock, free_main_ports, node
from distro_impl.clocks.clock import Waiting
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.remote.connection_manager import ConnectionManager

pytestmark = pytest.mark.wire
OVER_GRPC = True

DRAINING = NodeOptions(drains_on_stop=True)


async def cluster_with_a_client(lab: Lab, options: NodeOptions) -> tuple[Run, RawClient]:
    """Three nodes, and a client at the first one that all of them know."""
    run = await lab.cluster(options=options)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.clock.advance(STRICT.sync_delay_ms + 100)
    return run, client


async def shown(lab: Lab, run: Run, index: int) -> list[int]:
    return await (await lab.naming(run.cluster.nodes[index])).ports("orders")


async def test_a_draining_node_deletes_its_clients_on_the_others(lab: Lab):
    run, client = await cluster_with_a_client(lab, DRAINING)
    await run.cluster.nodes[0].stop()
    assert run.links.operations(client.id)[-2:] == ["DELETE", "DELETE"]
    assert [await shown(lab, run, index) for index in (1, 2)] == [[], []]
    assert run.clock.now_ms() == run.start_ms + STRICT.sync_delay_ms + 100  # at once


async def test_any_other_node_reports_nothing_as_real_servers_do(lab: Lab):
    run, client = await cluster_with_a_client(lab, NodeOptions())
    await run.cluster.nodes[0].stop()
    assert run.links.operations(client.id) == ["CHANGE", "CHANGE"]
    assert [await shown(lab, run, index) for index in (1, 2)] == [[8080], [8080]]


async def test_a_change_that_was_still_waiting_is_not_sent_after_the_client_is_gone(lab: Lab):
    run = await lab.cluster(options=DRAINING)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.cluster.nodes[0].stop()
    assert run.links.operations(client.id) == ["DELETE", "DELETE"]


async def test_a_member_that_does_not_answer_delays_the_end_only_so_long(lab: Lab, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(node, "DRAIN_TIMEOUT_S", 0.3)
    run, client = await cluster_with_a_client(lab, DRAINING)
    run.link(0, 1).mute = True
    began = time.monotonic()
    await run.cluster.nodes[0].stop()
    assert 0.3 <= time.monotonic() - began < 2
    assert await shown(lab, run, 2) == []
    assert run.links.operations(client.id, peer=run.cluster.addresses[1])[-1] == "DELETE"


async def test_a_stopped_node_accepts_no_connection_and_is_silent_afterwards(lab: Lab):
    run, client = await cluster_with_a_client(lab, DRAINING)
    target = run.cluster.nodes[0].config.sdk_target
    await run.cluster.nodes[0].stop()
    for asked in (client, lab.raw(target)):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await asked.ask("ServerCheckRequest", {})
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    sent = len(run.links.operations(client.id))
    await run.clock.advance(60_000)
    assert len(run.links.operations(client.id)) == sent


class SlowOwner:
    """A member that owns every ip:port client, and takes its time over an answer."""

    def __init__(self) -> None:
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()
        (self.port,) = free_main_ports(1)

    async def answer(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.goes_on.wait()
        return web.Response(text="ok")


async def test_a_request_under_way_is_answered_before_the_node_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = SlowOwner()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", owner.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", owner.port).start()
    (port,) = free_main_ports(1)
    members = (f"127.0.0.1:{port}", f"127.0.0.1:{owner.port}")
    asked = Node(NodeConfig(port=port, members=members, profile=NACOS_2_2_4.with_known_members()), clock=SystemClock())
    await asked.start()
    monkeypatch.setattr(asked.parts.naming.mapper, "responsible", lambda _: False)
    monkeypatch.setattr(asked.parts.naming.mapper, "map_server", lambda _: members[1])
    async with aiohttp.ClientSession() as session:
        url = f"http://{members[0]}/nacos/v1/ns/instance?serviceName=web&ip=10.0.0.1&port=80"
        under_way = asyncio.create_task(session.post(url))
        await owner.asked.wait()
        stopping = asyncio.create_task(asked.stop())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        owner.goes_on.set()
        assert (await under_way).status == 200
        await stopping
    await runner.cleanup()


async def test_a_stopping_node_says_that_it_does_not_serve_before_anything_ends(lab: Lab) -> None:
    node, clock = await lab.node()
    await clock.settle()
    said: list[int] = []
    async with grpc.aio.insecure_channel(node.config.sdk_target) as channel:
        watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        said.append((await watching.read()).status)
        await asyncio.gather(node.stop(), _read_on(watching, said))
    assert said == [health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING]


async def _read_on(watching: Any, said: list[int]) -> None:
    said.append((await watching.read()).status)


async def test_work_that_a_timer_started_ends_with_the_lifetime() -> None:
    clock = VirtualClock()
    lifetime, ended = Lifetime(clock), []

    async def report() -> None:
        try:
            await Waiting[None](clock).taken()
        finally:
            ended.append("report")

    lifetime.every(2_000, report, first_ms=clock.now_ms() + 2_000, name="report")
    await clock.advance(5_000)
    await lifetime.end()
    assert ended == ["report", "report"]


async def test_a_defect_in_what_reads_a_stream_ends_the_stream(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It left a connection without a reader."""
    node, _ = await lab.node()
    client = await lab.naming(node)
    monkeypatch.setattr(ConnectionManager, "acknowledge", lambda *_: 1 / 0)
    await client.say("NotifySubscriberResponse", {"requestId": "1"})
    await client.stream_ended()
