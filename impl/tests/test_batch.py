"""Batch registration and its replication (docs/protocol #naming-requests, #distro-content and #receive-change; D1, D8,
D18)."""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, sync_data

from distro_impl import PROFILES, Profile
from distro_protos import Json

pytestmark = pytest.mark.wire

NACOS_2_1_1, NACOS_2_3_0, NACOS_2_3_1 = (PROFILES[f"nacos-{release}"] for release in ("2.1.1", "2.3.0", "2.3.1"))


def with_batch(data: Json, service: str, *ports: int) -> Json:
    """The ClientSyncData with a batch in one more service."""
    instances = [{"ip": "10.0.0.1", "port": port, "healthy": True, "extendDatum": {}} for port in ports]
    shell = {"port": 0, "healthy": False, "metadataId": "null:0:null", "instancePublishInfos": instances}
    names = {"namespaces": ["public"], "groupNames": ["DEFAULT_GROUP"], "serviceNames": [service]}
    return {**data, "batchInstanceData": {**names, "batchInstancePublishInfos": [shell]}}


async def test_a_batch_is_shown_whole_everywhere_and_replaced_as_one(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    client, elsewhere = await lab.naming(run.cluster.nodes[0]), await lab.naming(run.cluster.nodes[2])
    reply = await client.register_batch("web", 80, 81, 82)
    assert (reply.type, reply.body["type"], reply.succeeded) == ("BatchInstanceResponse", "batchRegisterInstance", True)
    await client.register("api", 90)
    await run.clock.advance(1600)
    assert (await elsewhere.ports("web"), await elsewhere.ports("api")) == ([80, 81, 82], [90])
    await client.register_batch("web", 82, 83)
    assert await client.ports("web") == [82, 83]
    await run.clock.advance(1600)
    assert await elsewhere.ports("web") == [82, 83]
    await client.deregister("web")
    await run.clock.advance(1600)
    assert (await elsewhere.ports("web"), await elsewhere.ports("api")) == ([], [90])


async def test_an_empty_batch_is_an_entry_without_instances(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    client, elsewhere = [await lab.naming(node) for node in run.cluster.nodes]
    await client.register_batch("web", 80)
    await run.clock.advance(1600)
    await client.register_batch("web")
    await run.clock.advance(1600)
    assert (await client.ports("web"), await elsewhere.ports("web")) == ([], [])
    data = run.last(1, client.id).sync_data
    assert data is not None
    assert data["batchInstanceData"]["serviceNames"] == ["web"]


async def test_a_restarted_node_loads_batches(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register_batch("web", 80, 81)
    await run.clock.advance(1600)
    await run.cluster.crash(1)
    await run.cluster.restart(1)
    await run.clock.advance(31_000)
    assert await (await lab.naming(run.cluster.nodes[1])).ports("web") == [80, 81]


async def test_a_batch_in_another_order_is_no_change(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    subscriber = await lab.naming(run.cluster.nodes[0])
    member = await lab.member(run.cluster.nodes[0])
    data = sync_data("c1", 1)
    await member.distro("CHANGE", "c1", with_batch(data, "web", 80, 81))
    await subscriber.subscribe("web")
    await run.clock.advance(600)
    await subscriber.acknowledge(await subscriber.next_request())
    await member.distro("CHANGE", "c1", with_batch(data, "web", 81, 80))
    await run.clock.advance(600)
    await member.distro("CHANGE", "c1", with_batch(data, "web", 81))
    await run.clock.advance(600)
    push = await subscriber.next_request()  # the first one since, and it has the last change
    assert [host["port"] for host in push.body["serviceInfo"]["hosts"]] == [81]


@pytest.mark.parametrize("profile", [NACOS_2_0_4, PROFILES["nacos-2.1.0"]], ids=lambda profile: profile.name)
async def test_before_2_1_1_no_node_knows_batches(lab: Lab, profile: Profile) -> None:
    run = await lab.cluster(profile, size=1)
    client, member = await lab.naming(run.cluster.nodes[0]), await lab.member(run.cluster.nodes[0])
    reply = await client.register_batch("web", 80)
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 302)
    await member.distro("CHANGE", "c1", with_batch(sync_data("c1", 1, api=90), "web", 80))
    assert (await client.ports("web"), await client.ports("api")) == ([], [90])


@pytest.mark.parametrize(
    ("profile", "revisions"),
    [(NACOS_2_2_4, (0, 1, 1)), (NACOS_2_3_0, (1, 2, 3)), (STRICT, (1, 2, 3))],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_2_1_2_to_2_2_4_forget_to_bump_the_revision(
    lab: Lab, profile: Profile, revisions: tuple[int, int, int]
) -> None:
    """D18."""
    run = await lab.cluster(profile, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    seen = []
    for register in (client.register_batch("web", 80), client.register("api", 90), client.register_batch("web", 81)):
        await register
        seen.append(run.last(0, client.id).revision)
    assert tuple(seen) == revisions


@pytest.mark.parametrize("profile", [NACOS_2_2_4, NACOS_2_3_0, STRICT], ids=lambda profile: profile.name)
async def test_a_change_with_a_batch_carries_the_revision_even_where_a_plain_one_does_not(
    lab: Lab, profile: Profile
) -> None:
    """Section 6.4, point 5."""
    run = await lab.cluster(profile, size=1)
    member = await lab.member(run.cluster.nodes[0])
    await member.distro("CHANGE", "c1", sync_data("c1", 1, api=90))
    await member.distro("CHANGE", "c1", sync_data("c1", 2, api=91))
    assert await member.verify("c1", 2) is (profile is not NACOS_2_2_4)
    await member.distro("CHANGE", "c1", with_batch(sync_data("c1", 3, api=91), "web", 80))
    assert await member.verify("c1", 3)
    await member.distro("CHANGE", "c1", with_batch(sync_data("c1", 4, api=91), "web"))
    assert await member.verify("c1", 4)  # an empty batch is one, too


@pytest.mark.parametrize(
    ("profile", "shown"),
    [(NACOS_2_1_1, [80]), (NACOS_2_3_0, [80]), (NACOS_2_3_1, [81, 82]), (STRICT, [81, 82])],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_up_to_2_3_0_a_batch_after_a_single_instance_breaks_the_peer(
    lab: Lab, profile: Profile, shown: list[int]
) -> None:
    """D8: the owner has the batch, its peer answers with a success and keeps the single instance."""
    run = await lab.cluster(profile, size=2)
    client, elsewhere = [await lab.naming(node) for node in run.cluster.nodes]
    await client.register("web", 80)
    await run.clock.advance(profile.sync_delay_ms + 600)
    await client.register_batch("web", 81, 82)
    await run.clock.advance(profile.sync_delay_ms + 600)
    assert (await client.ports("web"), await elsewhere.ports("web")) == ([81, 82], shown)


async def test_a_batch_of_a_persistent_instance_is_refused_whole(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.register_batch("web", 80, ephemeral=False)
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 400)
    assert run.last(0, client.id).revision == 0
