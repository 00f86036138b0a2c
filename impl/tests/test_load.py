"""The initial load and the snapshot (docs/protocol #load-asks)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from impl_lab import LOST_BUT_ACKNOWLEDGED, NACOS_2_2_4, STRICT, Lab, Run, sync_data

from distro_impl import Profile, WorkFailedError
from distro_impl.distro.transport_agent import decode_content, encode_content
from distro_impl.membership.member import MemberState

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


REFUSAL = ("DistroDataResponse", {"resultCode": 500, "errorCode": 500})
NO_CLIENT = encode_content({"clientSyncDataList": [{"clientId": "c1"}]})
NOT_UNDERSTOOD = ("DistroDataResponse", {"resultCode": 200, "errorCode": 0, "distroData": {"content": NO_CLIENT}})
NO_NAME = encode_content({"clientSyncDataList": [sync_data("c1", 1) | {"clientId": ["c1"]}]})
NOT_A_NAME = ("DistroDataResponse", {"resultCode": 200, "errorCode": 0, "distroData": {"content": NO_NAME}})


async def is_loaded(lab: Lab, run: Run, node: int) -> bool:
    """In strict a node that is not loaded gives no snapshot."""
    peer = await lab.member(run.cluster.nodes[node])
    return (await peer.ask("DistroDataRequest", {"dataOperation": "SNAPSHOT"})).succeeded


@pytest.mark.parametrize(("profile", "gives"), [(NACOS_2_2_4, True), (STRICT, False)])
async def test_b33_a_node_that_could_not_load_gives_no_snapshot_in_strict(
    lab: Lab, profile: Profile, gives: bool
) -> None:
    run = await lab.cluster(profile, size=2)
    await run.cluster.crash(0)
    await run.cluster.crash(1)
    await run.cluster.restart(1)
    peer = await lab.member(run.cluster.nodes[1])
    reply = await peer.ask("DistroDataRequest", {"dataOperation": "SNAPSHOT"})
    assert (reply.type, reply.succeeded) == ("DistroDataResponse", gives)


@pytest.mark.parametrize(("profile", "ports"), [(NACOS_2_2_4, []), (STRICT, [80])])
async def test_b33_a_node_that_loads_from_it_goes_on_to_the_next_member(
    lab: Lab, profile: Profile, ports: list[int]
) -> None:
    run = await lab.cluster(profile)
    client = await lab.naming(run.cluster.nodes[2])
    await client.register("web", 80)
    await run.clock.advance(1500)
    await run.cluster.crash(0)
    await run.cluster.crash(1)
    run.link(0, 1).cut = run.link(0, 2).cut = True
    await run.cluster.restart(0)
    await run.cluster.restart(1)
    await run.clock.settle()
    assert await (await lab.naming(run.cluster.nodes[1])).ports("web") == ports


@pytest.mark.parametrize(
    ("answer", "loaded"),
    [
        (REFUSAL, True),
        (LOST_BUT_ACKNOWLEDGED, False),
        (NOT_UNDERSTOOD, False),
        (NOT_A_NAME, False),
        (("ErrorResponse", {}), False),
    ],
    ids=["refused", "no data", "not understood", "no name", "error"],
)
async def test_only_refusals_by_all_are_a_complete_load(
    lab: Lab, answer: tuple[str, dict[str, int]], loaded: bool
) -> None:
    run = await lab.cluster()
    await run.cluster.crash(2)
    run.link(2, 0).answers, run.link(2, 1).answers = {"SNAPSHOT": answer}, {"SNAPSHOT": REFUSAL}
    await run.cluster.restart(2)
    await run.clock.settle()
    assert await is_loaded(lab, run, 2) is loaded
    run.link(2, 0).answers = {}
    await run.clock.advance(30_000)
    assert await is_loaded(lab, run, 2)


async def test_a_node_without_answers_waits(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    await run.cluster.crash(0)
    await run.cluster.crash(1)
    await run.cluster.restart(1)  # its first round fails; by the second one the reports have failed too
    await run.clock.advance(29_000)
    run.link(1, 0).answers = {"SNAPSHOT": REFUSAL}
    await run.clock.advance(2_000)
    assert not await is_loaded(lab, run, 1)


async def test_a_suspicious_member_may_hold_the_clients(lab: Lab) -> None:
    run = await lab.cluster()
    await run.cluster.crash(2)
    run.link(2, 0).answers = run.link(2, 1).answers = {"SNAPSHOT": ("ErrorResponse", {})}
    await run.cluster.restart(2)
    await run.clock.advance(24_000)
    run.link(2, 0).cut = run.link(0, 2).cut = True
    run.link(2, 1).answers = {"SNAPSHOT": REFUSAL}
    suspect = run.cluster.nodes[2].members.others[run.cluster.addresses[0]]
    await run.clock.advance(6_000)  # a report or two have failed by the second round
    assert (suspect.state, await is_loaded(lab, run, 2)) == (MemberState.SUSPICIOUS, False)
    await run.clock.advance(30_000)
    assert (suspect.state, await is_loaded(lab, run, 2)) == (MemberState.DOWN, True)


async def test_two_that_restart_do_not_wait_for_a_third_that_stays_down(lab: Lab) -> None:
    run = await lab.cluster()
    for node in range(3):
        await run.cluster.crash(node)
    for node in range(2):
        await run.cluster.restart(node)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(29_000)
    assert [await is_loaded(lab, run, node) for node in range(2)] == [False, False]
    await run.clock.advance(6_000)
    assert [await is_loaded(lab, run, node) for node in range(2)] == [True, True]
    assert "VERIFY" in run.links.operations(client.id)


async def test_a_third_node_that_was_only_cut_off_replicates_its_clients(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[2])
    await client.register("web", 80)
    await run.clock.advance(1500)
    far = await run.restart_two_without_the_third()
    await run.clock.advance(60_000)
    assert [await is_loaded(lab, run, node) for node in range(3)] == [True, True, True]
    near = [await lab.naming(run.cluster.nodes[node]) for node in range(2)]
    assert [await each.ports("web") for each in near] == [[], []], "content with what they have"
    for link in far:
        link.cut = False
    await run.clock.advance(15_000)
    assert [await each.ports("web") for each in near] == [[80], [80]]


async def test_nodes_that_restart_together_do_not_wait_for_each_other_for_ever(lab: Lab) -> None:
    run = await lab.cluster()
    for node in range(3):
        await run.cluster.crash(node)
    for node in range(3):
        await run.cluster.restart(node)
        await run.clock.settle()
    assert [await is_loaded(lab, run, node) for node in range(3)] == [False, False, True]
    await run.clock.advance(30_000)
    assert [await is_loaded(lab, run, node) for node in range(3)] == [True, True, True]


@pytest.mark.parametrize(
    ("profile", "verifies"),
    [(NACOS_2_2_4, False), (replace(STRICT, load_outlives_exception=False), False), (STRICT, True)],
)
async def test_an_exception_in_the_load_ends_it_for_good_but_not_in_strict(
    lab: Lab, profile: Profile, verifies: bool
) -> None:
    """`load-exception-no-retry`: nothing that a member answered, but the loader itself breaks down."""
    run = await lab.cluster(profile, size=2)
    await run.cluster.crash(1)
    run.link(1, 0).breaks_at = {"SNAPSHOT"}
    await run.cluster.restart(1)
    with pytest.raises(WorkFailedError, match=r"initial load of .* failed: RuntimeError"):
        await run.clock.settle()
    client = await lab.naming(run.cluster.nodes[1])
    run.link(1, 0).breaks_at = set()
    await run.clock.advance(35_000)
    assert ("VERIFY" in run.links.operations(client.id)) is verifies


async def test_a_release_takes_refusals_for_failures(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    await run.cluster.crash(1)
    run.link(1, 0).answers = {"SNAPSHOT": REFUSAL}
    await run.cluster.restart(1)
    run.links.sent.clear()
    await run.clock.advance(30_000)
    assert [sent.operation for sent in run.links.sent] == ["SNAPSHOT", "SNAPSHOT"]
