"""How many connections a node takes, and how it sends clients elsewhere (docs/protocol #connection-stream,
#ejector-check, #connection-internal)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import aiohttp
import grpc
import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, RawClient, Run

from distro_impl import PROFILES, Node, NodeConfig, Profile, VirtualClock, free_main_ports
from distro_impl.limits import ConnectionLimits, LimitRuleError
from distro_protos import Message

NACOS_2_3_2 = PROFILES["nacos-2.3.2"]

pytestmark = pytest.mark.wire

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


def test_a_limit_rule_of_nacos_is_read() -> None:
    rule = b"""{"countLimit": 9, "countLimitPerClientIpDefault": -1, "countLimitPerClientIp": {"10.0.0.1": 2},
               "countLimitPerClientAppDefault": 3, "countLimitPerClientApp": {}, "monitorIpList": ["10.0.0.1"]}"""
    assert ConnectionLimits.from_rule(rule) == ConnectionLimits(
        count_limit=9, client_ips={"10.0.0.1": 2}, count_limit_per_client_app=3
    )
    assert ConnectionLimits.from_rule(b"{}") == ConnectionLimits()


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (b"", "Expecting value"),
        (b"[]", "is not an object"),
        (b'{"countLimitPerClientIp": {"10.0.0.1": "many"}}', "countLimitPerClientIp.10.0.0.1 is not a whole number"),
    ],
)
def test_a_wrong_limit_rule_is_named(rule: bytes, complaint: str) -> None:
    with pytest.raises(LimitRuleError, match=complaint):
        ConnectionLimits.from_rule(rule)


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


async def get(node: Node, path: str, **query: str) -> tuple[int, Any]:
    """Status and answer, JSON where it is JSON."""
    url = f"http://{node.address}/nacos{path}"
    async with aiohttp.ClientSession() as session, session.get(url, params=query) as reply:
        return reply.status, await (reply.json() if reply.content_type == "application/json" else reply.text())


async def test_an_operator_sees_the_connected_clients(lab: Lab) -> None:
    node, clock = await lab.node()
    client = await shop(lab, node).connect()
    await lab.member(node)
    await clock.advance(500)
    await client.ask("HealthCheckRequest", {})
    status, shown = await get(node, "/v2/core/loader/current")
    assert (status, len(shown)) == (200, 2)
    meta = shown[client.id]["metaInfo"]
    assert (meta["appName"], meta["version"], meta["sdkSource"], meta["clusterSource"]) == ("shop", "test", True, False)
    assert meta["labels"] == {"module": "naming", "source": "sdk", "AppName": "shop"}
    assert meta["lastActiveTime"] - meta["createTime"] == 500


@pytest.mark.parametrize(("profile", "names_itself"), [(NACOS_2_2_4, False), (STRICT, True)], ids=["2.2.4", "strict"])
async def test_an_operator_sends_one_client_elsewhere(lab: Lab, profile: Profile, names_itself: bool) -> None:
    node, _ = await lab.node(profile=profile)
    client, other = await lab.naming(node), await lab.naming(node)
    path, redirect = "/v2/core/loader/reloadClient", "10.0.0.7:8848"
    assert await get(node, path, connectionId=client.id, redirectAddress=redirect) == (200, "success")
    reset = await client.next_request()
    assert (reset.type, reset.body["serverIp"], reset.body["serverPort"]) == ("ConnectResetRequest", "10.0.0.7", "8848")
    assert reset.body.get("connectionId") == (client.id if names_itself else None)
    await client.acknowledge(reset, "ConnectResetResponse")
    assert (await client.ask("HealthCheckRequest", {})).succeeded  # it goes by itself
    assert other.arrived() == []
    assert await get(node, path, connectionId="unknown") == (200, "success")


@pytest.mark.parametrize(
    ("profile", "resets_sent"), [(NACOS_2_0_4, 2), (NACOS_2_2_4, 0), (STRICT, 2)], ids=["2.0.4", "2.2.4", "strict"]
)
async def test_an_operator_reduces_the_clients_of_a_node(lab: Lab, profile: Profile, resets_sent: int) -> None:
    """In 2.2.0 to 2.2.4 nothing comes of it: the ejector only counts."""
    node, clock = await lab.node(profile=profile)
    clients = [await lab.naming(node) for _ in range(3)]
    await lab.member(node)
    assert await get(node, "/v2/core/loader/reloadCurrent", count="1") == (200, "success")
    await clock.advance(4_000)
    resets = [client for client in clients[1:] if resets_sent and await client.next_request()]
    assert len(resets) == resets_sent
    assert clients[0].arrived() == []


@pytest.mark.parametrize(("count", "resets_sent"), [("-1", 0), ("0", 0), ("1", 3), ("4", 1), ("5", 0)])
async def test_from_2_3_on_members_count_for_a_reload_and_0_asks_no_client(
    lab: Lab, count: str, resets_sent: int
) -> None:
    """Three clients and two members: the connections beyond the count are taken from the clients."""
    node, clock = await lab.node(profile=NACOS_2_3_2)
    clients = [await lab.naming(node) for _ in range(3)]
    members = [await lab.member(node) for _ in range(2)]
    assert await get(node, "/v2/core/loader/reloadCurrent", count=count) == (200, "success")
    await clock.advance(4_000)
    resets = [await client.next_request() for client in clients[3 - resets_sent :]]
    assert [reset.type for reset in resets] == ["ConnectResetRequest"] * resets_sent
    assert [client.arrived() for client in clients[: 3 - resets_sent]] == [[]] * (3 - resets_sent)
    assert [member.arrived() for member in members] == [[], []]


@pytest.mark.parametrize("redirect", ["", "10.0.0.7"])
async def test_a_text_without_a_port_is_no_address_to_go_to(lab: Lab, redirect: str) -> None:
    node, _ = await lab.node()
    client = await lab.naming(node)
    await get(node, "/v2/core/loader/reloadClient", connectionId=client.id, redirectAddress=redirect)
    reset = await client.next_request()
    assert not {"serverIp", "serverPort", "connectionId"} & reset.body.keys()


@pytest.mark.parametrize(
    ("profile", "only_here"), [(NACOS_2_2_4, {"abilities"}), (STRICT, {"abilityTable", "appLabels"})]
)
async def test_a_connection_is_shown_as_its_release_does(lab: Lab, profile: Profile, only_here: set[str]) -> None:
    node, _ = await lab.node(profile=profile)
    client = await shop(lab, node).connect()
    shown = (await get(node, "/v2/core/loader/current"))[1][client.id]
    assert shown.keys() == {"connected", "traced", "labels", "metaInfo"} | only_here
    assert ("appLabels" in shown["metaInfo"]) is ("appLabels" in only_here)
    assert (await get(node, "/v1/core/loader/current"))[0] == 404


@pytest.mark.parametrize(("profile", "is_told"), [(NACOS_2_0_4, True), (NACOS_2_2_4, False)])
async def test_2_0_reports_its_limits_with_its_load(lab: Lab, profile: Profile, is_told: bool) -> None:
    node, _ = await lab.node(profile=profile, connection_limits=ConnectionLimits(count_limit=7))
    (load,) = (await get(node, "/v2/core/loader/cluster"))[1]["detail"]
    rule = json.loads(load["metric"].get("limitRule", "{}"))
    assert rule.get("countLimit") == (7 if is_told else None)


async def test_a_lowered_limit_expels_the_latest(lab: Lab) -> None:
    node, clock = await lab.node()
    oldest, latest = await lab.naming(node), await lab.naming(node)
    node.limit_connections(ConnectionLimits(count_limit=1))
    await clock.advance(1_000)
    assert (await latest.next_request()).type == "ConnectResetRequest"
    assert oldest.arrived() == []


async def loads(run: Run, asked: int) -> Any:
    return (await get(run.cluster.nodes[asked], "/v2/core/loader/cluster"))[1]


async def test_a_smart_reload_moves_clients_from_the_fullest_to_the_emptiest(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    full, middle, empty = run.cluster.nodes
    clients = [await lab.naming(full) for _ in range(4)]
    middling = [await lab.naming(middle) for _ in range(2)]
    shown = await loads(run, asked=2)
    assert (shown["total"], shown["min"], shown["max"], shown["avg"]) == (6, 0, 4, 2)
    assert shown["threshold"] == pytest.approx(2.2)
    assert (shown["memberCount"], shown["metricsCount"], shown["completed"]) == (3, 3, True)
    assert await get(middle, "/v2/core/loader/smartReloadCluster") == (200, "Ok")
    await run.clock.advance(4_000)
    for client in clients[2:]:
        reset = await client.next_request()
        assert f"{reset.body['serverIp']}:{reset.body['serverPort']}" == empty.address
    assert [client.arrived() for client in clients[:2] + middling] == [[]] * 4


async def test_a_member_that_is_gone_is_missing_from_the_loads(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    await run.cluster.crash(2)
    shown = await loads(run, asked=0)
    assert (shown["metricsCount"], shown["completed"]) == (2, False)


@pytest.mark.parametrize(
    ("path", "query", "complaint"),
    [
        ("reloadCurrent", {"count": "many"}, "'count' is illegal"),
        ("reloadCurrent", {}, "'count' is missing"),
        ("reloadClient", {}, "'connectionId' is missing"),
        ("smartReloadCluster", {"loaderFactor": "a lot"}, "'loaderFactor' is illegal"),
    ],
)
async def test_a_wrong_parameter_is_named(lab: Lab, path: str, query: dict[str, str], complaint: str) -> None:
    node, _ = await lab.node()
    status, answer = await get(node, f"/v2/core/loader/{path}", **query)
    assert status == 400
    assert complaint in answer


async def test_a_member_that_is_asked_to_reset_says_yes_and_connects_anew(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    node, member = run.cluster.nodes
    await run.clock.advance(6_000)  # it has reported by then
    ((connection_id, _),) = (await get(node, "/v2/core/loader/current"))[1].items()
    before = run.links.set_ups.count((member.address, node.address))
    assert await get(node, "/v2/core/loader/reloadClient", connectionId=connection_id) == (200, "success")
    await run.clock.advance(6_000)
    assert run.links.set_ups.count((member.address, node.address)) == before + 1
    assert connection_id not in (await get(node, "/v2/core/loader/current"))[1]
