"""The metrics of a node, read over HTTP like Prometheus does."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession
from impl_lab import Lab, Run
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.wire

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scraped(run: Run, node: int = 0) -> Samples:
    url = f"http://{run.cluster.addresses[node]}/nacos/actuator/prometheus"
    async with ClientSession() as session, session.get(url) as reply:
        assert reply.status == 200
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        families = text_string_to_metric_families(await reply.text())
        return {(each.name, tuple(sorted(each.labels.items()))): each.value for one in families for each in one.samples}


def monitor(samples: Samples, name: str, module: str = "naming") -> float:
    return samples["nacos_monitor", (("module", module), ("name", name))]


async def test_the_counters_of_nacos_follow_what_clients_do(lab: Lab):
    run = await lab.cluster(size=1)
    publisher, subscriber = await lab.naming(run.cluster.nodes[0]), await lab.naming(run.cluster.nodes[0])
    await publisher.register("orders", 8080)
    await publisher.register("payments", 8081)
    await subscriber.subscribe("orders")
    await lab.leave(run, await lab.naming(run.cluster.nodes[0]))
    found = await scraped(run)
    assert [monitor(found, name) for name in ("serviceCount", "ipCount", "subscriberCount")] == [2, 2, 1]
    assert monitor(found, "longConnection", "core") == 2
    assert found["nacos_naming_publisher", (("version", "v2"),)] == 2
    assert found["nacos_naming_publisher", (("version", "v1"),)] == 0


async def test_pushes_are_counted_and_so_are_the_unacknowledged_ones(lab: Lab):
    run = await lab.cluster(size=1)
    subscriber = await lab.naming(run.cluster.nodes[0])
    await subscriber.subscribe("orders")
    await run.clock.advance(500)
    await subscriber.acknowledge(await subscriber.next_request())
    publisher = await lab.naming(run.cluster.nodes[0])
    await publisher.register("orders", 8080)
    await run.clock.advance(500 + 5_000)
    found = await scraped(run)
    assert (monitor(found, "totalPush"), monitor(found, "failedPush")) == (2, 1)


async def test_each_node_counts_for_itself_and_knows_the_states_of_the_others(lab: Lab):
    run = await lab.cluster(size=3)
    await (await lab.naming(run.cluster.nodes[0])).register("orders", 8080)
    first, second = await scraped(run, 0), await scraped(run, 1)
    assert (monitor(first, "ipCount"), monitor(second, "ipCount")) == (1, 0)
    assert first["distrocheck_members", (("state", "UP"),)] == 2


async def test_distro_operations_are_counted(lab: Lab):
    run = await lab.cluster(size=2)
    await (await lab.naming(run.cluster.nodes[0])).register("orders", 8080)
    await run.clock.advance(1_000)
    found = await scraped(run)
    assert found["distrocheck_distro_syncs_total", (("result", "success"),)] == 1
    assert found["distrocheck_distro_verify_failures_total", ()] == 0
    assert found["distrocheck_distro_load_seconds", ()] == 0
    run.link(0, 1).cut = True
    await run.clock.advance(4_500)
    await (await lab.naming(run.cluster.nodes[0])).register("payments", 8081)
    await run.clock.advance(1_000)
    found = await scraped(run)
    assert found["distrocheck_distro_syncs_total", (("result", "failure"),)] > 0
    assert found["distrocheck_distro_verify_failures_total", ()] > 0
