"""How a node ends when it is asked to: what its clients and the other members notice."""

from __future__ import annotations

import time

import grpc
import pytest
from impl_lab import STRICT, Lab, RawClient, Run

from distro_impl import NodeOptions, node

pytestmark = pytest.mark.wire

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


async def test_a_draining_node_tells_the_others_that_its_clients_are_gone(lab: Lab):
    run, client = await cluster_with_a_client(lab, DRAINING)
    await run.cluster.stop_node(0)
    assert run.links.operations(client.id)[-2:] == ["DELETE", "DELETE"]
    assert [await shown(lab, run, index) for index in (1, 2)] == [[], []]
    assert run.clock.now_ms() == run.start_ms + STRICT.sync_delay_ms + 100  # at once


async def test_any_other_node_tells_nothing_as_real_servers_do(lab: Lab):
    run, client = await cluster_with_a_client(lab, NodeOptions())
    await run.cluster.stop_node(0)
    assert run.links.operations(client.id) == ["CHANGE", "CHANGE"]
    assert [await shown(lab, run, index) for index in (1, 2)] == [[8080], [8080]]


async def test_a_change_that_was_still_waiting_is_not_sent_after_the_client_is_gone(lab: Lab):
    run = await lab.cluster(options=DRAINING)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("orders", 8080)
    await run.cluster.stop_node(0)
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


async def test_a_stopped_node_lets_nobody_in_and_is_silent_afterwards(lab: Lab):
    run, client = await cluster_with_a_client(lab, DRAINING)
    target = run.cluster.nodes[0].config.sdk_target
    await run.cluster.stop_node(0)
    for asked in (client, lab.raw(target)):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await asked.ask("ServerCheckRequest", {})
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    sent = len(run.links.operations(client.id))
    await run.clock.advance(60_000)
    assert len(run.links.operations(client.id)) == sent
