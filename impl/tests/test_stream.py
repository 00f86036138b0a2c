"""How a node handles the messages on a stream, and a transport (docs/protocol #wire-errors, #wire-checks,
#connection-id, #connection-stream)."""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, RawClient

from distro_impl import Node, NodeConfig, Profile, VirtualClock, free_main_ports

pytestmark = pytest.mark.wire
OVER_GRPC = True

PERSISTENT = {"ip": "10.0.0.1", "port": 80, "ephemeral": False}


async def is_registered(client: RawClient) -> bool:
    return (await client.ask("HealthCheckRequest", {})).succeeded


async def test_without_labels_a_connection_is_never_registered_and_its_stream_stays(lab: Lab) -> None:
    node, _ = await lab.node()
    client = lab.raw(node.config.sdk_target)
    await client.set_up(labels=None, abilityTable={})
    await client.say("ConnectionSetupRequest", {"labels": {"source": ["sdk"]}, "abilityTable": {}})
    await client.say("ConnectionSetupRequest", {"abilityTable": {}})
    await client.say("ConnectionSetupRequest", {"labels": {}, "abilityTable": {}})
    assert (await client.next_request()).type == "SetupAckRequest"
    assert await is_registered(client)
    assert client.arrived() == []  # one set-up was acknowledged, the last


async def test_a_second_set_up_changes_nothing(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.member(run.cluster.nodes[0])
    naming = {"labels": {"source": "sdk", "module": "naming"}, "abilityTable": {}}
    await client.say("ConnectionSetupRequest", naming)
    assert (await client.next_request()).type == "SetupAckRequest"
    assert await is_registered(client)
    assert run.events == []  # it has no naming client


async def test_set_up_need_not_be_the_first_message_and_unknown_ones_are_ignored(lab: Lab) -> None:
    node, _ = await lab.node()
    client = lab.raw(node.config.sdk_target, source="sdk")
    await client.set_up(labels=None)
    for type_name in ("PushAckRequest", "HealthCheckRequest", "NobodyKnowsRequest", "NobodyKnowsResponse", ""):
        await client.say(type_name, {"requestId": "1"})
    await client.say("ConnectionSetupRequest", {"labels": {"source": "sdk"}, "abilityTable": {}})
    assert (await client.next_request()).type == "SetupAckRequest"
    assert await is_registered(client)


async def test_a_push_ack_request_has_no_handler_and_a_changed_configuration_is_taken_note_of(lab: Lab) -> None:
    node, _ = await lab.node()
    member = await lab.member(node)
    refused = await member.ask("PushAckRequest", {"requestId": "1", "success": True})
    assert (refused.type, refused.body["errorCode"]) == ("ErrorResponse", 302)
    answer = await member.ask("ConfigChangeClusterSyncRequest", {"dataId": "d", "group": "g"})
    assert (answer.type, answer.succeeded) == ("ConfigChangeClusterSyncResponse", True)


CLUSTER_REQUESTS = (
    "DistroDataRequest",
    "MemberReportRequest",
    "ConfigChangeClusterSyncRequest",
)


@pytest.mark.parametrize(("profile", "is_refused"), [(NACOS_2_2_4, False), (STRICT, True)], ids=["2.2.4", "strict"])
async def test_requests_for_members_only_are_refused_on_the_sdk_port(
    lab: Lab, profile: Profile, is_refused: bool
) -> None:
    """From 2.4.3 on, before anything else is looked at."""
    node, _ = await lab.node(profile=profile)
    client = await lab.naming(node)
    for type_name in CLUSTER_REQUESTS:
        reply = await client.ask(type_name, {"dataOperation": "SNAPSHOT", "node": {}})
        assert (reply.type == "ErrorResponse") is is_refused
        if is_refused:
            expected = (502, f" invoke {type_name} from sdk is forbidden")
            assert (reply.body["errorCode"], reply.body["message"]) == expected


async def test_a_forbidden_request_is_forbidden_even_while_the_node_starts(lab: Lab) -> None:
    node = Node(NodeConfig(port=free_main_ports(1)[0]), clock=VirtualClock())
    await node.bind()
    client = lab.raw(node.config.sdk_target)
    codes = {name: (await client.ask(name, {})).body["errorCode"] for name in ("DistroDataRequest", "Unknown")}
    assert codes == {"DistroDataRequest": 502, "Unknown": 300}
    await node.stop()


@pytest.mark.parametrize(("profile", "result_code"), [(NACOS_2_0_4, 500), (STRICT, 400)], ids=["2.0.4", "strict"])
async def test_an_error_of_a_handler_has_its_code_in_both_places_from_2_1_1_on(
    lab: Lab, profile: Profile, result_code: int
) -> None:
    node, _ = await lab.node(profile=profile)
    reply = await (await lab.naming(node)).register("web", **PERSISTENT)
    answer = (reply.type, reply.body["resultCode"], reply.body["errorCode"], reply.body["success"])
    assert answer == ("ErrorResponse", result_code, 400, False)


async def test_the_end_of_one_of_two_streams_is_not_the_end_of_the_transport(lab: Lab) -> None:
    node, _ = await lab.node()
    client = await lab.naming(node)
    await client.register("web", 80)
    await client.open_another_stream_and_end_it()
    for _ in range(20):
        assert await client.ports("web") == [80]


async def test_connections_are_distinguished_by_transport_on_both_ports(lab: Lab) -> None:
    """Ids are made of the peer's address and the time, and differ even in one millisecond."""
    node, _ = await lab.node()
    clients = [await lab.naming(node) for _ in range(3)] + [await lab.member(node) for _ in range(3)]
    assert len({client.id for client in clients}) == 6
    for client in clients:
        before = client.id
        await client.check()
        assert client.id == before
        millis, ip, port = client.id.split("_")
        assert (ip, millis.isdecimal(), port.isdecimal()) == ("127.0.0.1", True, True)


class ListeningClock(VirtualClock):
    """Remembers the names of all timers and of all work."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def call_at(self, when_ms, callback, name):  # type: ignore[no-untyped-def]
        self.names.add(name)
        return super().call_at(when_ms, callback, name)


@pytest.mark.parametrize(("members", "alone"), [((), True), (("127.0.0.1:1",), False)], ids=["alone", "cluster"])
async def test_a_node_alone_has_no_sync_no_verify_no_reports(lab: Lab, members: tuple[str, ...], alone: bool) -> None:
    """The second case shows that the names are the right ones."""
    port, clock = free_main_ports(1)[0], ListeningClock()
    config = NodeConfig(port=port, members=(f"127.0.0.1:{port}", *members) if members else ())
    node = Node(config, clock=clock)
    await node.start()
    client = await lab.naming(node)
    await client.register("web", 80)
    await clock.advance(40_000)
    assert clock.names.isdisjoint({"verify round", "member report", "distro delay tasks", "initial load"}) is alone
    assert clock.names >= {"connection check", "expired client cleaner"}
    assert await client.ports("web") == [80]
    await node.stop()
