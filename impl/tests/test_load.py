"""The initial load and the snapshot (wire-protocol.md section 6.8)."""

from __future__ import annotations

import pytest
from impl_lab import LOST_BUT_ACKNOWLEDGED, NACOS_2_2_4, Lab, sync_data

from distro_impl.transport_agent import decode_content

pytestmark = pytest.mark.wire


async def test_a_restarted_node_loads_what_the_first_member_knows(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[1])
    await client.register("web", 80)
    await run.clock.advance(1500)
    await run.cluster.crash(2)
    run.links.sent.clear()
    await run.cluster.restart(2)
    await run.clock.settle()
    event = run.last(2, client.id)
    assert (event.kind, event.native, event.revision, event.reason) == ("replica_applied", False, 1, "SNAPSHOT")
    loads = [(sent.sender, sent.peer) for sent in run.links.sent if sent.operation == "SNAPSHOT"]
    assert loads == [(run.cluster.addresses[2], run.cluster.addresses[0])]  # a copy is good enough
    assert await (await lab.naming(run.cluster.nodes[2])).ports("web") == [80]


async def test_a_member_that_cannot_answer_is_skipped(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[1])
    await client.register("web", 80)
    await run.cluster.crash(0)
    await run.cluster.crash(2)
    await run.cluster.restart(2)
    await run.clock.settle()
    assert run.last(2, client.id).reason == "SNAPSHOT"


async def test_without_a_snapshot_there_is_no_verify_until_the_retry_succeeds(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    await run.cluster.crash(1)
    run.link(1, 0).answers = {"SNAPSHOT": LOST_BUT_ACKNOWLEDGED}  # no data: a failure
    await run.cluster.restart(1)
    client = await lab.naming(run.cluster.nodes[1])
    await client.register("web", 80)
    await run.clock.advance(29_999)
    assert run.links.operations(client.id) == ["CHANGE"]  # syncs are sent all the same
    run.link(1, 0).answers = {}
    await run.clock.advance(4000)
    assert run.links.operations(client.id) == ["CHANGE", "VERIFY"]


async def test_a_snapshot_holds_native_and_synced_clients(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    peer = await lab.member(run.cluster.nodes[0])
    await client.register("web", 80)
    await peer.change("c1", 3, api=90)
    reply = await peer.ask("DistroDataRequest", {"dataOperation": "SNAPSHOT"})
    loaded = decode_content(reply.body["distroData"])["clientSyncDataList"]
    assert {data["clientId"]: data["attributes"]["clientAttributes"]["revision"] for data in loaded} == {
        client.id: 1,
        "c1": 3,
    }
    assert loaded[1]["instancePublishInfos"][0]["port"] == sync_data("c1", 3, api=90)["instancePublishInfos"][0]["port"]
