"""How a receiver answers Distro requests, and which failures its sender can see (docs/protocol #distro-content and
#sync-result)."""

from __future__ import annotations

from typing import Any

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, sync_data

from distro_impl import Profile
from distro_impl.distro.transport_agent import decode_content, distro_body

pytestmark = pytest.mark.wire

BROKEN = {"clientId": "c1"}


@pytest.mark.parametrize(
    ("profile", "result_code"), [(NACOS_2_0_4, 200), (NACOS_2_2_4, 200), (STRICT, 500)], ids=lambda v: str(v)[:40]
)
async def test_only_strict_lets_the_sender_see_an_exception(lab: Lab, profile: Profile, result_code: int) -> None:
    run = await lab.cluster(profile, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    reply = await peer.distro("CHANGE", "c1", BROKEN)
    answer = (reply.type, reply.body["resultCode"], reply.body["errorCode"], reply.body["message"])
    assert answer == ("DistroDataResponse", result_code, 500, "handle distro request with exception")
    assert run.events == []


@pytest.mark.parametrize(
    ("change", "error_code", "message"),
    [
        (
            {"distroKey": {"resourceKey": "c1", "resourceType": "other"}},
            500,
            "[DISTRO-FAILED] distro data handle failed",
        ),
        ({"type": "QUERY"}, 500, "[DISTRO-FAILED] distro data handle failed"),
        ({"type": None}, 500, "handle distro request with exception"),
    ],
)
async def test_a_sync_that_cannot_be_handled(lab: Lab, change: dict[str, Any], error_code: int, message: str) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    body = distro_body("CHANGE", "c1", sync_data("c1", 1, web=80))  # type: ignore[arg-type]
    body["distroData"].update(change)
    reply = await peer.ask("DistroDataRequest", body)
    assert (reply.type, reply.body["errorCode"], reply.body["message"]) == ("DistroDataResponse", error_code, message)


async def test_an_unknown_operation_is_an_error_response(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    reply = await peer.ask("DistroDataRequest", {"dataOperation": "MERGE"})
    assert (reply.type, reply.body["errorCode"]) == ("ErrorResponse", 502)


async def test_a_failed_verify_is_typed(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    reply = await peer.distro("VERIFY", "c1", {"clientId": "c1", "revision": 1})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == ("DistroDataResponse", 500, 500)


async def test_add_is_taken_like_change_and_query_gives_it_back(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    assert (await peer.distro("ADD", "c1", sync_data("c1", 4, web=80))).succeeded
    reply = await peer.distro("QUERY", "c1")
    found = decode_content(reply.body["distroData"])
    assert (found["clientId"], found["serviceNames"]) == ("c1", ["web"])
    unknown = await peer.distro("QUERY", "c2")
    assert unknown.succeeded
    assert "distroData" not in unknown.body


async def test_deleting_an_unknown_client_is_a_success(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    assert (await peer.distro("DELETE", "c1")).succeeded


@pytest.mark.parametrize(("profile", "clusters"), [(NACOS_2_2_4, ["A"]), (STRICT, ["B"])])
async def test_d4_a_change_of_the_cluster_alone_is_only_applied_by_strict(
    lab: Lab, profile: Profile, clusters: list[str]
) -> None:
    run = await lab.cluster(profile, size=1)
    peer, reader = await lab.member(run.cluster.nodes[0]), await lab.naming(run.cluster.nodes[0])
    for revision, cluster in ((1, "A"), (2, "B")):
        data = sync_data("c1", revision, web=80)
        data["instancePublishInfos"][0]["cluster"] = cluster
        await peer.distro("CHANGE", "c1", data)
    assert [host["clusterName"] for host in await reader.hosts("web")] == clusters
