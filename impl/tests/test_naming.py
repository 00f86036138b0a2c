"""The requests of SDKs and their answers (docs/protocol #naming-names and #naming-requests)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, PUSHED_WITHIN_MS, SERVICE, STRICT, Lab
from msgspec import Raw

from distro_impl import PROFILES, Profile, VirtualClock
from distro_impl.naming import service_storage
from distro_impl.naming.client import Service
from distro_impl.naming.instance_id import InstanceIdGenerator
from distro_impl.remote.payloads import Instance
from distro_protos import read_json, without_nulls, write_json

pytestmark = pytest.mark.wire

WEB = Service("public", "DEFAULT_GROUP", "web")


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
    assert (await client.deregister("never-seen")).succeeded
    assert run.last(0, client.id).revision == 1
    await client.deregister("web")
    await client.deregister("web")  # nothing left to remove
    assert run.last(0, client.id).revision == 3


async def test_an_empty_namespace_is_one_of_its_own_and_none_at_all_is_refused(lab: Lab) -> None:
    """The Python SDK 2.0 sends an empty one when none was configured; a real 2.2.4 keeps it apart from `public`."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    body = {**SERVICE, "namespace": "", "type": "registerInstance", "instance": {"ip": "10.0.0.1", "port": 80}}
    assert (await client.ask("InstanceRequest", {**body, "serviceName": "web"})).succeeded
    assert [host["port"] for host in await client.hosts("web", namespace="")] == [80]
    assert await client.hosts("web") == []
    refused = await client.ask("ServiceQueryRequest", {"groupName": "DEFAULT_GROUP", "serviceName": "web"})
    assert not refused.succeeded
    assert "'namespace'" in refused.body["message"]


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


async def test_a_change_is_newer_than_what_was_before_it_in_the_same_instant(lab: Lab) -> None:
    """The Python SDK drops a list that is not newer than its own."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    times = []
    for port in range(3):
        await client.register("web", port)
        times.append((await client.subscribe("web")).body["serviceInfo"]["lastRefTime"])
    assert times == sorted(set(times))


async def test_times_do_not_run_ahead_however_often_a_client_asks(lab: Lab) -> None:
    """Another member, to which a client moves, would seem to answer from the past."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    storage = run.cluster.nodes[0].parts.naming.storage
    known, unknown = Service("public", "DEFAULT_GROUP", "web"), Service("public", "DEFAULT_GROUP", "none")
    storage.info(known)
    for _ in range(20_000):
        assert storage.info(known)["lastRefTime"] - run.clock.now_ms() <= 2
        assert storage.info(unknown)["lastRefTime"] == run.clock.now_ms()
    assert run.clock.unique_ms() - run.clock.now_ms() < 10


async def test_the_bytes_kept_of_written_lists_are_bounded(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_storage, "MAX_WRITTEN_BYTES", 1_000)  # three lists of one instance
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    storage = run.cluster.nodes[0].parts.naming.storage
    services = [Service("public", "DEFAULT_GROUP", f"web{number}") for number in range(10)]
    for number, service in enumerate(services):
        await client.register(service.name, 80 + number)
    for _ in range(2):
        for number, service in enumerate(services):
            (host,) = read_json(write_json(storage.written_info(service)))["hosts"]
            assert host["port"] == 80 + number
            assert 0 < storage._written._bytes <= 1_000
    assert list(storage._written._texts) == services[-len(storage._written._texts) :]
    for service in services:
        await client.deregister(service.name)
    assert (storage._written._bytes, storage._written._texts) == (0, {})


async def test_a_list_written_once_for_all_subscribers_is_what_the_view_holds(lab: Lab) -> None:
    """Lists that are asked for without a filter are copied from what was written before."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    storage = run.cluster.nodes[0].parts.naming.storage
    instances = ({"metadata": {"a": "null", "b": None}}, {"enabled": False}, {"healthy": False})
    for port, instance in enumerate(instances):
        await client.register("web", port, **instance)
        for _ in range(2):
            written = read_json(write_json(storage.written_info(WEB)))
            assert written == without_nulls(storage.info(WEB))
            assert len(written["hosts"]) == storage.count(WEB)


async def test_a_name_that_utf_8_cannot_hold_is_written_beside_a_written_list(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    written = run.cluster.nodes[0].parts.naming.storage.written_info(WEB)
    assert isinstance(written, Raw)
    parsed = read_json(write_json({"name": "\ud83d", "serviceInfo": written}))
    assert parsed["name"] == "?"
    assert [host["port"] for host in parsed["serviceInfo"]["hosts"]] == [80]


async def test_a_subscriber_is_notified_when_the_last_publisher_leaves(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber, publisher = [await lab.naming(run.cluster.nodes[0]) for _ in range(2)]
    await publisher.register("web", 80)
    await subscriber.subscribe("web")
    await run.clock.advance(500)
    await subscriber.acknowledge(await subscriber.next_request())
    await lab.leave(run, publisher)
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


async def test_a_subscriber_that_unsubscribed_receives_nothing_more(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber, other, publisher = [await lab.naming(run.cluster.nodes[0]) for _ in range(3)]
    for client in (subscriber, other):
        await client.subscribe("web")
    await publisher.register("web", 80)
    assert (await subscriber.subscribe("web", subscribe=False)).body["serviceInfo"][
        "hosts"
    ] != []  # answered all the same
    await subscriber.subscribe("api")
    await run.clock.advance(PUSHED_WITHIN_MS)
    assert (await other.next_request()).body["serviceInfo"]["name"] == "web"
    assert (await subscriber.next_request()).body["serviceInfo"]["name"] == "api"


async def test_a_push_holds_the_clusters_that_its_subscriber_named(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber, *publishers = [await lab.naming(run.cluster.nodes[0]) for _ in range(3)]
    await subscriber.subscribe("web", clusters="A")
    for client, port, cluster in zip(publishers, (80, 81), "AB", strict=True):
        await client.register("web", port, clusterName=cluster)
    await run.clock.advance(PUSHED_WITHIN_MS)
    info = (await subscriber.next_request()).body["serviceInfo"]
    assert (info["clusters"], [host["port"] for host in info["hosts"]]) == ("A", [80])


@pytest.mark.parametrize(("profile", "lags"), [(NACOS_2_2_4, True), (STRICT, False)])
async def test_in_a_release_a_query_lags_behind_by_the_push_delay_but_for_the_first_change(
    lab: Lab, profile: Profile, lags: bool
) -> None:
    """docs/real-servers.md#a-played-member."""
    run = await lab.cluster(profile, size=1)
    one, other = [await lab.naming(run.cluster.nodes[0]) for _ in range(2)]
    await one.register("web", 80)
    assert await one.ports("web") == [80]
    await other.register("web", 81)
    assert await one.ports("web") == ([80] if lags else [80, 81])
    await run.clock.advance(PUSHED_WITHIN_MS)
    assert await one.ports("web") == [80, 81]


@pytest.mark.parametrize(
    ("type_name", "body", "message"),
    [
        ("BatchInstanceRequest", {"type": "patch"}, "Unsupported request type patch"),
        ("PersistentInstanceRequest", {}, "persistent instances are not supported"),
        ("InstanceRequest", {"type": "registerInstance", "instance": {"ephemeral": False}}, "persistent instances"),
        ("InstanceRequest", {"type": "registerInstance", "instance": {"port": 80}}, "illegal instance.*ip"),
        ("InstanceRequest", {"type": "patch", "instance": {}}, "Unsupported request type patch"),
        (
            "InstanceRequest",
            {"type": "registerInstance", "instance": {"ip": "10.0.0.1", "port": 80, "clusterName": "a_b"}},
            "'clusterName' should be characters",
        ),
        (
            "InstanceRequest",
            {"type": "registerInstance", "instance": {"metadata": {"preserved.heart.beat.timeout": "4999"}}},
            "'heart beat interval' must less",
        ),
    ],
)
async def test_an_unsupported_request_is_refused_clearly(
    lab: Lab, type_name: str, body: dict[str, Any], message: str
) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask(type_name, {**SERVICE, "serviceName": "web", **body})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 400)
    assert re.search(message, reply.body["message"])


@pytest.mark.parametrize(
    ("type_name", "response", "body", "message"),
    [
        ("InstanceRequest", "InstanceResponse", {"namespace": "a b"}, "'namespaceId/tenant' is illegal, illegal char"),
        ("InstanceRequest", "InstanceResponse", {"serviceName": "a@@b"}, "'serviceName' is illegal, illegal char"),
        ("InstanceRequest", "InstanceResponse", {"serviceName": "n" * 513}, "should not exceed 512"),
        ("InstanceRequest", "InstanceResponse", {"instance": {"port": 65536}}, "'port' is illegal, .* 0 and 65535"),
        ("InstanceRequest", "InstanceResponse", {"instance": {"ip": "10.0. 0.1"}}, "'ip' is illegal"),
        ("InstanceRequest", "InstanceResponse", {"instance": {"metadata": {"k": "v" * 1024}}}, "'Metadata' is illegal"),
        ("BatchInstanceRequest", "BatchInstanceResponse", {"instances": [{}, {"clusterName": "ü"}]}, "'cluster'"),
        ("ServiceQueryRequest", "QueryServiceResponse", {"cluster": "A,B B"}, "'cluster' is illegal"),
        ("SubscribeServiceRequest", "SubscribeServiceResponse", {"clusters": "A,,B*"}, "'cluster' is illegal"),
        ("ServiceListRequest", "ServiceListResponse", {"groupName": "a/b"}, "'group' is illegal"),
    ],
)
async def test_from_2_3_on_illegal_parameters_are_answered_in_the_class_of_the_handler(
    lab: Lab, type_name: str, response: str, body: dict[str, Any], message: str
) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask(type_name, {**SERVICE, "serviceName": "web", "type": "registerInstance", **body})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == (response, 500, 400)
    assert re.search(f"^Param check invalid:.*{message}", reply.body["message"])
    assert await client.services() == (0, [])


async def test_before_2_3_parameters_are_taken_as_they_are(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    assert (await client.register("web shop", 80)).succeeded
    assert await client.ports("web shop") == [80]


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
    for reply in (await client.register("web", 80), await client.subscribe("web")):
        assert reply.succeeded is (error_code is None)
        assert reply.body["errorCode"] == (error_code or 0)
    await run.clock.advance(PUSHED_WITHIN_MS)
    assert await client.ports("web") == []


@pytest.mark.parametrize(("profile", "echo"), [(NACOS_2_0_4, None), (NACOS_2_2_4, "registerInstance")])
async def test_from_2_1_2_on_the_response_echoes_the_type(lab: Lab, profile: Profile, echo: str | None) -> None:
    run = await lab.cluster(profile, size=1)
    reply = await (await lab.naming(run.cluster.nodes[0])).register("web", 80)
    assert reply.body.get("type") == echo


@pytest.mark.parametrize(
    ("profile", "error_code"),
    [(PROFILES["nacos-2.1.0"], 302), (PROFILES["nacos-2.2.4"], 302), (PROFILES["nacos-2.3.0"], 400)],
)
async def test_persistent_instances_have_no_handler_before_2_3_and_are_refused_by_it_later(
    lab: Lab, profile: Profile, error_code: int
) -> None:
    run = await lab.cluster(profile, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    body = {**SERVICE, "serviceName": "web", "type": "registerInstance", "instance": {"ip": "10.0.0.1", "port": 80}}
    reply = await client.ask("PersistentInstanceRequest", body)
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", error_code)
    single = await client.register("web", 80, ephemeral=False)
    assert (single.type, single.body["errorCode"]) == ("ErrorResponse", 400)
    assert await client.services() == (0, [])


async def test_up_to_2_1_0_an_impossible_instance_is_taken_and_shown_with_valid_values(lab: Lab) -> None:
    run = await lab.cluster(PROFILES["nacos-2.1.0"], size=1)
    client = await lab.naming(run.cluster.nodes[0])
    metadata = {"preserved.heart.beat.timeout": "4999", "preserved.ip.delete.timeout": "late"}
    await client.register("web", 80, clusterName="a_b", metadata=metadata)
    (host,) = await client.hosts("web")
    assert (host["clusterName"], host["instanceHeartBeatTimeOut"], host["ipDeleteTimeout"]) == ("a_b", 4999, 30_000)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({}, "10.0.0.1#80#null#DEFAULT_GROUP@@web"),
        ({"clusterName": "A"}, "10.0.0.1#80#A#DEFAULT_GROUP@@web"),
        ({"clusterName": ""}, "10.0.0.1#80##DEFAULT_GROUP@@web"),
        ({"serviceName": "mine"}, "10.0.0.1#80#null#mine"),
        ({"instanceId": "own"}, "own"),
        ({"metadata": {"zone": "a"}}, "10.0.0.1#80#null#DEFAULT_GROUP@@web"),
        ({"metadata": {"preserved.instance.id.generator": "simple"}}, "10.0.0.1#80#null#DEFAULT_GROUP@@web"),
    ],
)
async def test_an_instance_without_id_gets_one_in_the_words_of_the_request(
    lab: Lab, instance: dict[str, Any], expected: str
) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80, **instance)
    (host,) = await client.hosts("web")
    assert host["instanceId"] == expected
    metadata = instance.get("metadata")
    assert host.get("instanceIdGenerator") == (
        metadata.get("preserved.instance.id.generator") if metadata else "simple"
    )


@pytest.mark.parametrize("parameter", ["groupName", "serviceName"])
async def test_a_blank_name_is_refused(lab: Lab, parameter: str) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask("ServiceQueryRequest", {**SERVICE, "serviceName": "web", parameter: ""})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 500)
    assert reply.body["message"] == f"Param '{parameter}' is illegal, {parameter} is blank"


async def test_an_instance_without_a_port_has_port_0(lab: Lab) -> None:
    """Seen on 2.2.4: a number that is missing counts as 0."""
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    instance = {"ip": "10.0.0.1"}
    await client.ask(
        "InstanceRequest", {**SERVICE, "serviceName": "web", "type": "registerInstance", "instance": instance}
    )
    assert await client.ports("web") == [0]


async def test_below_2_3_instances_are_given_no_id(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    (host,) = await client.hosts("web")
    assert "instanceId" not in host


async def test_snowflake_ids_hold_a_number_in_the_place_of_the_address(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    metadata = {"preserved.instance.id.generator": "snowflake"}
    await client.register_batch("web", 80, 81, metadata=metadata)
    one, other = [host["instanceId"].split("#") for host in await client.hosts("web")]
    assert one[0].isdigit()
    assert one[0] != other[0]
    assert one[1:] == other[1:] == ["null", "DEFAULT_GROUP@@web"]
    reply = await client.register("web", 80, metadata={"preserved.instance.id.generator": "dice"})
    assert (reply.body["errorCode"], "'dice'" in reply.body["message"]) == (500, True)


def test_two_nodes_give_out_different_snowflake_ids_in_the_same_millisecond() -> None:
    instance = Instance(ip="10.0.0.1", port=80, metadata={"preserved.instance.id.generator": "snowflake"})
    ids = [
        InstanceIdGenerator(VirtualClock(start_ms=1_000), address).generate(instance, WEB)
        for address in ("10.0.0.1:8848", "10.0.0.2:8848")
    ]
    assert ids[0] != ids[1]
