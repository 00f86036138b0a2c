"""What an SDK may ask, and what it is told (wire-protocol.md sections 3.1 and 3.2)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, SERVICE, STRICT, Lab

from distro_impl import PROFILES, Profile

pytestmark = pytest.mark.wire


async def test_one_entry_per_connection_and_service(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await client.register("web", 81)
    assert await client.ports("web") == [81]
    assert run.last(0, client.id).revision == 2


async def test_the_revision_moves_with_every_request_that_names_a_known_service(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    assert (await client.deregister("never seen")).succeeded
    assert run.last(0, client.id).revision == 1
    await client.deregister("web")
    await client.deregister("web")  # nothing left to remove
    assert run.last(0, client.id).revision == 3


async def test_a_subscriber_is_pushed_half_a_second_after_a_change_with_growing_times(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber, publisher = [await lab.naming(run.cluster.nodes[0]) for _ in range(2)]
    info = (await subscriber.subscribe("web")).body["serviceInfo"]
    await run.clock.advance(500)
    first = await subscriber.next_request()
    await subscriber.acknowledge(first)
    await publisher.register("web", 80)
    await publisher.register("web", 81)
    await run.clock.advance(500)
    second = await subscriber.next_request()
    assert [push.type for push in (first, second)] == ["NotifySubscriberRequest"] * 2
    assert [host["port"] for host in second.body["serviceInfo"]["hosts"]] == [81]
    times = [info["lastRefTime"], *(push.body["serviceInfo"]["lastRefTime"] for push in (first, second))]
    assert times == sorted(set(times))
    assert first.body["requestId"] != second.body["requestId"]


async def test_two_answers_of_one_instant_have_different_times(lab: Lab) -> None:
    """The Python SDK drops what is not newer than what it has."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    times = [(await client.subscribe("web")).body["serviceInfo"]["lastRefTime"] for _ in range(3)]
    assert times == sorted(set(times))


async def test_a_subscriber_is_told_when_the_last_publisher_leaves(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber, publisher = [await lab.naming(run.cluster.nodes[0]) for _ in range(2)]
    await publisher.register("web", 80)
    await subscriber.subscribe("web")
    await run.clock.advance(500)
    await subscriber.acknowledge(await subscriber.next_request())
    await lab.leave(run, 0, publisher)
    await run.clock.advance(500)
    assert (await subscriber.next_request()).body["serviceInfo"]["hosts"] == []


async def test_a_push_that_is_not_acknowledged_is_repeated_and_holds_nothing_up(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    mute = await lab.naming(run.cluster.nodes[0])
    await mute.subscribe("web")
    await run.clock.advance(500)
    await mute.next_request()
    await run.clock.advance(5000 + 1000)  # time-out and retry delay
    again = await mute.next_request()
    assert again.type == "NotifySubscriberRequest"
    await mute.acknowledge(again)
    assert await mute.ports("web") == []  # the answer is read before this request is
    await run.clock.advance(20_000)


async def test_subscribers_on_other_nodes_are_pushed_when_the_copy_arrives(lab: Lab) -> None:
    run = await lab.cluster()
    subscriber, publisher = await lab.naming(run.cluster.nodes[2]), await lab.naming(run.cluster.nodes[0])
    await subscriber.subscribe("web")
    await run.clock.advance(500)
    await subscriber.acknowledge(await subscriber.next_request())
    await publisher.register("web", 80)
    await run.clock.advance(1600)
    push = await subscriber.next_request()
    assert [host["port"] for host in push.body["serviceInfo"]["hosts"]] == [80]


async def test_services_are_listed_by_page_with_plain_names(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    for name in ("web", "api", "db"):
        await client.register(name, 80)
    query = {"namespace": "public", "groupName": "DEFAULT_GROUP", "pageNo": 2, "pageSize": 2}
    reply = await client.ask("ServiceListRequest", query)
    assert (reply.body["count"], reply.body["serviceNames"]) == (3, ["web"])


@pytest.mark.parametrize(
    ("type_name", "body", "told"),
    [
        ("BatchInstanceRequest", {}, "batch registration is not supported"),
        ("PersistentInstanceRequest", {}, "persistent instances is not supported"),
        ("InstanceRequest", {"type": "registerInstance", "instance": {"ephemeral": False}}, "persistent instances"),
        ("InstanceRequest", {"type": "registerInstance", "instance": {"ip": "10.0.0.1"}}, "illegal instance.*port"),
        ("InstanceRequest", {"type": "patch", "instance": {}}, "unsupported request type 'patch'"),
        ("InstanceRequest", {"serviceName": ""}, "'serviceName' is illegal"),
    ],
)
async def test_what_is_not_supported_is_refused_clearly(
    lab: Lab, type_name: str, body: dict[str, Any], told: str
) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask(type_name, {**SERVICE, "serviceName": "web", **body})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 400)
    assert re.search(told, reply.body["message"])


@pytest.mark.parametrize(
    ("profile", "error_code"),
    [(PROFILES["nacos-2.0.2"], 500), (NACOS_2_0_4, None), (NACOS_2_2_4, None), (STRICT, -401)],
)
async def test_registering_on_a_connection_without_naming_client(
    lab: Lab, profile: Profile, error_code: int | None
) -> None:
    run = await lab.cluster(profile, size=1)
    node = run.cluster.nodes[0]
    client = await lab.raw(node.config.sdk_target, source="sdk").connect()
    reply = await client.register("web", 80)
    assert reply.succeeded is (error_code is None)
    assert reply.body["errorCode"] == (error_code or 0)
    assert await client.ports("web") == []


@pytest.mark.parametrize(("profile", "echo"), [(NACOS_2_0_4, None), (NACOS_2_2_4, "registerInstance")])
async def test_from_2_2_on_the_response_echoes_the_type(lab: Lab, profile: Profile, echo: str | None) -> None:
    run = await lab.cluster(profile, size=1)
    reply = await (await lab.naming(run.cluster.nodes[0])).register("web", 80)
    assert reply.body.get("type") == echo
