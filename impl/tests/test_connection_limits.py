"""How many connections a node takes, and how it sends clients elsewhere (docs/protocol #connection-stream,
#ejector-check, #connection-internal)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, Lab, RawClient

from distro_impl import PROFILES, Node, NodeConfig, Profile, VirtualClock, free_main_ports
from distro_impl.limits import ConnectionLimits
from distro_protos import Message

NACOS_2_3_2 = PROFILES["nacos-2.3.2"]

pytestmark = pytest.mark.wire
OVER_GRPC = True

LIMITS = {
    "in all": ConnectionLimits(count_limit=1),
    "of an address": ConnectionLimits(count_limit_per_client_ip=1),
    "of this address": ConnectionLimits(count_limit_per_client_ip=100, client_ips={"127.0.0.1": 1}),
    "of an application": ConnectionLimits(count_limit_per_client_app=1),
    "of this application": ConnectionLimits(client_apps={"shop": 1}),
}


def shop(lab: Lab, node: Node) -> RawClient:
    return lab.raw(node.config.sdk_target, module="naming", source="sdk", AppName="shop")


async def refusal(client: RawClient) -> list[Message]:
    """The messages that a client receives after its set-up and before its stream is ended; it is not registered."""
    await client.set_up()
    await client.stream_ended()
    reply = await client.ask("HealthCheckRequest", {})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 301)
    return client.arrived()


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS.keys())
async def test_a_connection_beyond_a_limit_is_closed(lab: Lab, limits: ConnectionLimits) -> None:
    node, clock = await lab.node(connection_limits=limits)
    first = await shop(lab, node).connect()
    assert await refusal(shop(lab, node)) == []
    await lab.member(node)  # members are never counted
    await first.close()
    await clock.settle()
    await shop(lab, node).connect()


@pytest.mark.parametrize("labels", [{}, {"source": "cluster"}, {"source": "other"}], ids=["none", "cluster", "other"])
async def test_a_client_cannot_opt_out_of_the_limits(lab: Lab, labels: dict[str, str]) -> None:
    """On the SDK port every connection counts, also one that calls itself a member."""
    node, _ = await lab.node(connection_limits=ConnectionLimits(count_limit_per_client_ip=1))
    await shop(lab, node).connect()
    assert await refusal(lab.raw(node.config.sdk_target, module="naming", **labels)) == []


async def test_a_stream_without_a_set_up_is_ended_when_it_was_idle_for_too_long(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await lab.raw(node.config.sdk_target).open()
    await clock.settle()
    await clock.advance(19_000)
    assert len(node.parts.remote.connections.without_set_up(0)) == 1
    await clock.advance(4_000)
    await client.stream_ended()
    assert node.parts.remote.connections.without_set_up(0) == []


async def test_streams_without_a_set_up_are_bounded_by_the_limit_of_their_address(lab: Lab) -> None:
    node, clock = await lab.node(connection_limits=ConnectionLimits(count_limit_per_client_ip=2))
    waiting = [lab.raw(node.config.sdk_target, module="naming", source="sdk") for _ in range(3)]
    for client in waiting:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the third is closed as it opens
            await client.open()
        await clock.settle()
    await waiting[2].stream_ended()
    await waiting[0].say("ConnectionSetupRequest", {"labels": {"source": "sdk"}})
    await clock.settle()
    assert (await waiting[0].ask("HealthCheckRequest", {})).succeeded


async def test_a_limit_of_one_application_does_not_hold_for_another(lab: Lab) -> None:
    node, _ = await lab.node(connection_limits=ConnectionLimits(client_apps={"shop": 0}))
    assert await refusal(shop(lab, node)) == []
    await lab.naming(node)


@pytest.mark.parametrize("profile", [NACOS_2_0_4, NACOS_2_2_4], ids=["2.0.4", "2.2.4"])
async def test_up_to_2_2_4_a_refused_client_receives_the_refusal(lab: Lab, profile: Profile) -> None:
    node, _ = await lab.node(profile=profile, connection_limits=ConnectionLimits(count_limit=0))
    assert [message.type for message in await refusal(shop(lab, node))] == ["ConnectResetRequest"]


@pytest.mark.parametrize(("source", "registered"), [("sdk", False), ("cluster", True)])
async def test_while_the_node_starts_only_members_are_registered(lab: Lab, source: str, registered: bool) -> None:
    node = Node(NodeConfig(port=free_main_ports(1)[0]), clock=VirtualClock())
    await node.bind()
    client = lab.raw(node.config.sdk_target, source=source)
    client.check = _nothing  # type: ignore[method-assign]  # it would be refused
    await client.set_up(abilityTable={})
    if registered:
        assert (await client.next_request()).type == "SetupAckRequest"
    else:
        await client.stream_ended()
    node.begin()
    assert (await client.ask("HealthCheckRequest", {})).succeeded is registered
    await node.stop()


async def _nothing() -> Any:
    pass


async def test_a_lowered_limit_expels_the_latest(lab: Lab) -> None:
    node, clock = await lab.node()
    oldest, latest = await lab.naming(node), await lab.naming(node)
    node.limit_connections(ConnectionLimits(count_limit=1))
    await clock.advance(1_000)
    assert (await latest.next_request()).type == "ConnectResetRequest"
    assert oldest.arrived() == []


async def test_a_member_that_is_asked_to_reset_says_yes_and_connects_again(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    node, member = run.cluster.nodes
    await run.clock.advance(6_000)  # it has reported by then
    (connection,) = node.parts.remote.connections
    before = run.links.set_ups.count((member.address, node.address))
    node.parts.remote.connections.reset(connection)
    await run.clock.advance(6_000)
    assert run.links.set_ups.count((member.address, node.address)) == before + 1
    assert connection.id not in [each.id for each in node.parts.remote.connections]
