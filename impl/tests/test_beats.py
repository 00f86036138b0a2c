"""Beats of ip:port clients, and the expiry without them (docs/protocol #lease-copies)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from impl_lab import LOST_BUT_ACKNOWLEDGED, NACOS_2_2_4, STRICT, Lab, Run
from test_ip_port_clients import API, IP, WEB, beat_for, health, operator, port_owned_by

from distro_impl import Profile
from distro_impl.naming.client import Service
from distro_impl.remote.payloads import Instance

pytestmark = pytest.mark.wire


async def registered(lab: Lab, profile: Profile = STRICT, **metadata: str) -> tuple[Run, int]:
    """Two nodes, the first of which owns the instance that registered there just now; and its port."""
    run = await lab.cluster(profile, size=2)
    port = port_owned_by(run, 0)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port, metadata=metadata))
    return run, port


async def test_without_beats_it_is_unhealthy_after_15_s_and_gone_after_30(lab: Lab) -> None:
    run, port = await registered(lab)
    client = f"{IP}:{port}#true"
    await run.clock.advance(14_900)
    assert [health(run, node) for node in (0, 1)] == [[True], [True]]
    await run.clock.advance(1_100)
    assert [health(run, node) for node in (0, 1)] == [[False], [False]]
    await run.clock.advance(13_900)
    assert [health(run, node) for node in (0, 1)] == [[False], [False]]
    await run.clock.advance(1_100)
    assert [health(run, node) for node in (0, 1)] == [[], []]
    assert run.links.operations(client)[-1] == "CHANGE"
    await run.clock.advance(5_100)
    assert run.links.operations(client)[-1] == "DELETE"
    assert [run.last(0, client).kind, run.last(1, client).kind] == ["client_disconnected", "replica_removed"]


async def test_a_beat_makes_it_healthy_again_everywhere(lab: Lab) -> None:
    run, port = await registered(lab)
    await run.clock.advance(17_000)
    assert [health(run, node) for node in (0, 1)] == [[False], [False]]
    await beat_for(run, 0, port, 60_000)
    assert [health(run, node) for node in (0, 1)] == [[True], [True]]


async def test_to_register_again_counts_as_a_beat(lab: Lab) -> None:
    run, port = await registered(lab)
    await run.clock.advance(10_000)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(14_900)
    assert health(run, 0) == [True]
    await run.clock.advance(100)
    assert health(run, 0) == [False]


async def test_subscribers_of_every_node_are_notified(lab: Lab) -> None:
    run, _ = await registered(lab)
    subscriber = await lab.naming(run.cluster.nodes[1])
    await run.clock.advance(2_000)
    await subscriber.subscribe("web")
    seen = []
    for duration_ms in (600, 14_500, 15_000):
        await run.clock.advance(duration_ms)
        push = await subscriber.next_request()
        seen.append([host["healthy"] for host in push.body["serviceInfo"]["hosts"]])
        await subscriber.acknowledge(push)
    assert seen == [[True], [False], []]


async def test_each_service_of_a_client_is_judged_by_its_own_beats(lab: Lab) -> None:
    run, port = await registered(lab)
    operator(run, 0).register(API, Instance(ip=IP, port=port))
    await beat_for(run, 0, port, 20_000)
    assert health(run, 0, WEB) == [True]
    assert health(run, 0, API) == [False]


@pytest.mark.parametrize(
    ("metadata", "healthy_after_11_s"),
    [
        ({}, [True]),
        ({"preserved.heart.beat.timeout": "10000"}, [False]),
        ({"preserved.ip.delete.timeout": "10000"}, []),
        ({"preserved.heart.beat.timeout": "never"}, [True]),
    ],
    ids=str,
)
async def test_the_metadata_may_set_other_times(
    lab: Lab, metadata: dict[str, str], healthy_after_11_s: list[bool]
) -> None:
    run, _ = await registered(lab, NACOS_2_2_4, **metadata)
    await run.clock.advance(11_000)
    assert health(run, 0) == healthy_after_11_s


@pytest.mark.parametrize(("text", "left"), [("true", [True]), ("Yes", [True]), ("false", [])])
async def test_an_instance_that_its_metadata_exempt_needs_no_beats(lab: Lab, text: str, left: list[bool]) -> None:
    run, _ = await registered(lab, enableClientBeat=text)
    await run.clock.advance(60_000)
    assert [health(run, node) for node in (0, 1)] == [left, left]


async def test_clients_that_came_at_different_times_are_judged_each_at_its_own(lab: Lab) -> None:
    """To the tick of 100 ms after which it came."""
    run = await lab.cluster(size=1)
    healthy_s: list[list[float]] = [[], [], []]
    for port, wait_ms in enumerate((30, 2_000, 3_001)):
        await run.clock.advance(wait_ms)
        operator(run, 0).register(Service("public", "DEFAULT_GROUP", str(port)), Instance(ip=IP, port=port))
    for tenths in range(52, 300):
        await run.clock.advance(run.start_ms + 100 * tenths - run.clock.now_ms())
        for port, healthy in enumerate(healthy_s):
            if health(run, 0, Service("public", "DEFAULT_GROUP", str(port))) == [True]:
                healthy.append(tenths / 10)
    assert [healthy[-1] for healthy in healthy_s] == [15.0, 17.0, 20.0]


async def test_nothing_is_removed_where_instances_do_not_expire(lab: Lab) -> None:
    run, _ = await registered(lab, replace(STRICT, expire_instance=False))
    await run.clock.advance(100_000)
    assert [health(run, node) for node in (0, 1)] == [[False], [False]]


async def test_no_instance_is_judged_while_health_checks_are_off(lab: Lab) -> None:
    run, _ = await registered(lab)
    run.cluster.nodes[0].parts.naming.switches.health_check_enabled = False
    await run.clock.advance(100_000)
    assert health(run, 0) == [True]
    run.cluster.nodes[0].parts.naming.switches.health_check_enabled = True
    await run.clock.advance(5_000)
    assert health(run, 0) == []


async def test_an_empty_client_goes_after_30_s_and_is_not_judged_any_more(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    port = port_owned_by(run, 0)
    client = f"{IP}:{port}#true"
    timers = len(run.cluster.nodes[0].parts.core.clock._timers)
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(7_000)
    operator(run, 0).deregister(WEB, IP, port)
    await run.clock.advance(1_100)
    assert [health(run, node) for node in (0, 1)] == [[], []]
    await run.clock.advance(28_900)
    assert run.last(0, client).kind == "client_changed"
    await run.clock.advance(5_000)
    assert run.last(0, client).kind == "client_disconnected"
    await run.clock.advance(5_000)
    assert run.cluster.nodes[0].parts.naming.clients.get(client) is None
    assert run.cluster.nodes[0].parts.naming.beats._rounds == {}
    assert len(run.cluster.nodes[0].parts.core.clock._timers) == timers
    operator(run, 0).register(WEB, Instance(ip=IP, port=port))
    await run.clock.advance(14_900)
    assert health(run, 0) == [True]


@pytest.mark.parametrize(("profile", "found"), [(NACOS_2_2_4, False), (STRICT, True)])
async def test_b06_a_lost_change_of_health_is_found_by_verify_only_in_strict(
    lab: Lab, profile: Profile, found: bool
) -> None:
    """Real servers keep the revision: seen on 2.2.4."""
    run, port = await registered(lab, profile, **{"preserved.ip.delete.timeout": "100000"})
    client = f"{IP}:{port}#true"
    await run.clock.advance(14_000)
    revision = run.last(0, client).revision
    run.link(0, 1).answers = {"CHANGE": LOST_BUT_ACKNOWLEDGED}
    await run.clock.advance(3_000)
    run.link(0, 1).answers = {}
    assert health(run, 0) == [False]
    assert (run.last(0, client).revision != revision) is found
    await run.clock.advance(60_000)
    assert health(run, 1) == [not found]


@pytest.mark.parametrize(("profile", "survives"), [(NACOS_2_2_4, False), (STRICT, True)])
async def test_b23_after_a_pause_of_its_owner_no_instance_is_removed_in_strict(
    lab: Lab, profile: Profile, survives: bool
) -> None:
    """The beats that were sent meanwhile are handled after the check."""
    run, port = await registered(lab, profile)
    await beat_for(run, 0, port, 10_000)
    run.clock.jump(60_000)
    await run.clock.advance(600)  # a query of the release shows what the last push saw
    assert health(run, 0) == ([True] if survives else [])
    await run.clock.advance(30_000)
    assert health(run, 0) == []  # what began again ends as any other
