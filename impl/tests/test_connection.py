"""Ports, the order of checks, set-up, and the end of connections (docs/protocol #wire-checks and #connection-id)."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest
from impl_lab import NACOS_2_2_4, PUSHED_WITHIN_MS, STRICT, Lab

from distro_impl import Cluster, Node, NodeConfig, PortInUseError, Profile, VirtualClock, free_main_ports

pytestmark = pytest.mark.wire
OVER_GRPC = True


async def test_until_it_begins_a_node_says_that_it_is_starting(lab: Lab) -> None:
    node = Node(NodeConfig(port=free_main_ports(1)[0]), clock=VirtualClock())
    await node.bind()
    client = lab.raw(node.config.sdk_target)
    reply = await client.ask("ServerCheckRequest", {})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == ("ErrorResponse", 500, 300)
    node.begin()
    assert (await client.check()).type == "ServerCheckResponse"
    await node.stop()


async def test_the_order_of_checks_before_set_up(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = lab.raw(run.cluster.nodes[0].config.sdk_target)

    async def error_code(type_name: str) -> int:
        reply = await client.ask(type_name, {})
        assert reply.type == "ErrorResponse"
        code: int = reply.body["errorCode"]
        return code

    assert (await client.check()).succeeded  # needs no registration
    assert await error_code("DistroDataRequest") == 502  # a cluster request on the SDK port, before anything else
    assert await error_code("ConfigQueryRequest") == 302  # no handler, before registration
    assert await error_code("HealthCheckRequest") == 301  # not registered


async def test_releases_below_2_4_3_take_distro_requests_on_the_sdk_port(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    assert (await client.change("c9", 1, web=80)).succeeded
    assert await client.ports("web") == [80]


async def test_an_unreadable_body_is_refused_on_a_registered_connection(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask("HealthCheckRequest", ["not", "an object"])  # type: ignore[arg-type]
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 502)


async def test_the_connection_id_is_made_of_stamp_and_peer_and_stays(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    stamp, ip, port = client.id.split("_")
    assert abs(int(stamp) - run.clock.now_ms()) < 100
    assert ip == "127.0.0.1"
    assert 1024 <= int(port) <= 65535
    assert (await client.check()).body["connectionId"] == client.id
    assert run.kinds(0, client.id) == ["client_connected"]


@pytest.mark.parametrize(
    ("profile", "ability_table", "negotiates", "acknowledged"),
    [(STRICT, {"mcp": True}, True, True), (STRICT, None, True, False), (NACOS_2_2_4, {}, None, False)],
)
async def test_only_a_client_with_abilities_gets_a_setup_ack(
    lab: Lab, profile: Profile, ability_table: dict[str, bool] | None, negotiates: bool | None, acknowledged: bool
) -> None:
    run = await lab.cluster(profile, size=1)
    client = await lab.naming(run.cluster.nodes[0], ability_table)
    assert (await client.check()).body.get("supportAbilityNegotiation") is negotiates
    await client.subscribe("web")
    await run.clock.advance(600)
    first = await client.next_request()  # the ack, or else the push of the subscription
    assert first.type == ("SetupAckRequest" if acknowledged else "NotifySubscriberRequest")
    assert not acknowledged or isinstance(first.body["abilityTable"], dict)


async def test_only_naming_connections_have_a_client(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    await lab.member(run.cluster.nodes[0])
    assert run.events == []


async def test_the_end_of_a_connection_removes_its_client(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await lab.leave(run, client)
    assert run.kinds(0, client.id)[-1] == "client_disconnected"
    assert await (await lab.naming(run.cluster.nodes[0])).ports("web") == []


@pytest.mark.parametrize(
    ("profile", "owned"),
    [(NACOS_2_2_4, False), (replace(STRICT, connection_replaces_copy=False), False), (STRICT, True)],
    ids=["nacos-2.2.4", "strict but for that", "strict"],
)
async def test_a_connection_takes_the_place_of_a_copy_with_its_id_but_only_in_strict(
    lab: Lab, profile: Profile, owned: bool
) -> None:
    """`native-connect-onto-synced`: a release creates a client only where there is none."""
    run = await lab.cluster(profile, size=2)
    node = run.cluster.nodes[0]
    client = lab.raw(node.config.sdk_target, module="naming", source="sdk")
    await client.check()  # names the connection before it is set up
    await (await lab.member(node)).change(client.id, 7, web=80)
    await client.connect()
    assert await client.ports("web") == ([] if owned else [80])
    kept = ["replica_applied"]
    assert run.kinds(0, client.id) == (["replica_applied", "replica_removed", "client_connected"] if owned else kept)
    await client.register("api", 90)
    event = run.last(0, client.id)
    assert (event.native, event.revision) == ((True, 1) if owned else (False, 8))
    assert (await client.ports("api"), await client.ports("web")) == ([90], [] if owned else [80])
    await run.clock.advance(5500)
    assert (run.links.operations(client.id) != []) is owned
    await lab.leave(run, client)
    await run.clock.advance(PUSHED_WITHIN_MS)
    reader = await lab.naming(node)
    assert (await reader.ports("api"), await reader.ports("web")) == ([], [])


@pytest.mark.parametrize(
    ("profile", "error_code", "port"), [(NACOS_2_2_4, 0, 90), (STRICT, -401, 80)], ids=["nacos-2.2.4", "strict"]
)
async def test_a_connection_without_a_client_changes_no_copy_with_its_id_but_only_in_strict(
    lab: Lab, profile: Profile, error_code: int, port: int
) -> None:
    run = await lab.cluster(profile, size=1)
    node = run.cluster.nodes[0]
    client = lab.raw(node.config.sdk_target, module="config", source="sdk")
    await client.check()
    await (await lab.member(node)).change(client.id, 7, web=80)
    await client.connect()
    assert (await client.register("web", 90)).body["errorCode"] == error_code
    await run.clock.advance(PUSHED_WITHIN_MS)
    assert await client.ports("web") == [port]


async def test_a_subscriber_is_notified_that_a_copy_went_when_its_connection_came(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    client = lab.raw(node.config.sdk_target, module="naming", source="sdk")
    await client.check()
    await (await lab.member(node)).change(client.id, 7, web=80)
    subscriber = await lab.naming(node)
    await subscriber.subscribe("web")
    await run.clock.advance(500)
    await subscriber.acknowledge(await subscriber.next_request())
    await client.connect()
    await run.clock.advance(500)
    assert (await subscriber.next_request()).body["serviceInfo"]["hosts"] == []


async def test_a_client_that_completes_its_stream_stays_while_its_transport_does(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await client.complete_stream()
    for _ in range(20):
        assert await client.ports("web") == [80]


@pytest.mark.parametrize("offset", [1000, 1001])
async def test_a_port_in_use_is_named_and_nothing_is_left_behind(offset: int) -> None:
    port = free_main_ports(1)[0]
    node = Node(NodeConfig(port=port), clock=VirtualClock())
    with socket.socket() as occupant:
        occupant.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # whatever an earlier test left in TIME_WAIT
        occupant.bind(("127.0.0.1", port + offset))
        occupant.listen()
        with pytest.raises(PortInUseError, match=f"port {port + offset} .* of node 127.0.0.1:{port}"):
            await node.start()
    again = Node(NodeConfig(port=port), clock=VirtualClock())
    await again.start()
    await again.stop()


async def test_two_nodes_do_not_share_a_port() -> None:
    port = free_main_ports(1)[0]
    first = Cluster(1, ports=[port], clock=VirtualClock())
    async with first:
        with pytest.raises(PortInUseError):
            await Cluster(1, ports=[port], clock=VirtualClock()).start()


@pytest.mark.parametrize("end", ["stop", "crash"])
async def test_an_ended_node_leaves_no_task_and_says_nothing_more(lab: Lab, end: str) -> None:
    before = asyncio.all_tasks()
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    reported = len(run.events)
    await (run.cluster.nodes[0].stop() if end == "stop" else run.cluster.crash(0))
    await run.clock.advance(10_000)
    assert len(run.events) == reported
    assert not run.links.operations(client.id)
    await lab.close()
    await asyncio.sleep(0.05)  # the poller of gRPC hands out what was cancelled
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


async def test_a_stream_without_a_set_up_is_ended_when_it_was_idle_for_too_long(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await lab.raw(node.config.sdk_target).open()
    await clock.settle()
    await clock.advance(19_000)
    assert len(node.parts.remote.connections.without_set_up(0)) == 1
    await clock.advance(4_000)
    await client.stream_ended()
    assert node.parts.remote.connections.without_set_up(0) == []


@pytest.mark.parametrize(("source", "registered"), [("sdk", False), ("cluster", True)])
@pytest.mark.parametrize(("profile", "refusals"), [(STRICT, []), (NACOS_2_2_4, ["ConnectResetRequest"])])
async def test_while_the_node_starts_only_members_are_registered(
    lab: Lab, profile: Profile, refusals: list[str], source: str, registered: bool
) -> None:
    """Up to 2.2.4 a refused client receives the refusal."""
    node = Node(NodeConfig(port=free_main_ports(1)[0], profile=profile), clock=VirtualClock())
    await node.bind()
    client = lab.raw(node.config.sdk_target, source=source)
    client.check = _nothing  # type: ignore[method-assign]  # it would be refused
    await client.set_up(abilityTable={})
    if not registered:
        await client.stream_ended()
        assert [message.type for message in client.arrived()] == refusals
    elif profile.ability_negotiation:
        assert (await client.next_request()).type == "SetupAckRequest"
    node.begin()
    if not registered or profile.ability_negotiation:
        assert (await client.ask("HealthCheckRequest", {})).succeeded is registered
    await node.stop()


async def _nothing() -> Any:
    pass


async def test_a_member_that_is_asked_to_reset_says_yes_and_connects_again(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    node, member = run.cluster.nodes
    await run.clock.advance(6_000)  # it has reported by then
    (connection,) = connections = node.parts.remote.connections
    before = run.links.set_ups.count((member.address, node.address))
    run.clock.spawn(connections.push(connection, "ConnectResetRequest", {"module": "internal"}, 3_000), "reset")
    await run.clock.advance(6_000)
    assert run.links.set_ups.count((member.address, node.address)) == before + 1
    assert connection.id not in [each.id for each in node.parts.remote.connections]
