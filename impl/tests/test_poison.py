"""Accepted data of a peer or a user must not break the node later: beats, reports and checks go on."""

from __future__ import annotations

import base64
import json
from typing import Any

import grpc
import pytest
from http_lab import Web
from impl_lab import STRICT, Lab, errors_logged, sync_data

from distro_impl import PROFILES, PortInUseError, Profile, VirtualClock, WorkFailedError
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.distro.transport_agent import DataOperation, distro_body
from distro_impl.http.server import HttpServer
from distro_impl.membership.member import MemberState
from distro_impl.remote.connection_manager import ConnectionManager
from distro_impl.transport.grpc_transport import GrpcTransport

pytestmark = pytest.mark.wire
OVER_GRPC = True

OWN, OTHER = "10.0.0.1:80#true", "10.0.0.9:90#true"
HEAVY = {"publishInstanceWeight": "heavy"}
WEB: dict[str, Any] = {"serviceName": "web", "ip": "10.0.0.1", "port": 80}


async def test_a_weight_that_is_no_number_does_not_end_the_judging_of_beats(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    poisoned = sync_data(OWN, 1, web=80)
    poisoned["instancePublishInfos"][0]["extendDatum"] = HEAVY
    assert (await peer.distro("CHANGE", OWN, poisoned)).succeeded
    assert (await peer.change(OTHER, 1, web=90)).succeeded
    await run.clock.advance(25_000)
    assert [host["healthy"] for host in await peer.hosts("web")] == [False, False]
    await run.clock.advance(10_000)
    assert await peer.hosts("web") == []


async def test_metadata_under_a_reserved_key_are_only_metadata(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    run = await lab.cluster(size=1)
    async with Web() as web:
        registered = await web.post(run.cluster.nodes[0], "/v1/ns/instance", **WEB, metadata=json.dumps(HEAVY))
        listed = await web.get(run.cluster.nodes[0], "/v1/ns/instance/list", serviceName="web")
    assert (registered.status, registered.text) == (200, "ok")
    assert [host["weight"] for host in listed.json["hosts"]] == [1.0]
    assert errors_logged(caplog) == []


async def test_half_a_surrogate_pair_is_shown_and_loaded_with_a_question_mark(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """JSON can escape it and UTF-8 cannot hold it; a peer may send it."""
    run = await lab.cluster(size=2)
    peer = await lab.member(run.cluster.nodes[0])
    odd = sync_data(OTHER, 1, web=90)
    odd["instancePublishInfos"][0]["extendDatum"] = {"key": "\ud800"}
    content = base64.b64encode(json.dumps(odd).encode()).decode()
    body = distro_body(DataOperation.CHANGE, OTHER, {})
    body["distroData"]["content"] = content
    assert (await peer.ask("DistroDataRequest", body)).succeeded
    await run.clock.advance(1_000)
    await run.cluster.crash(1)
    await run.cluster.restart(1)
    await run.clock.settle()
    async with Web() as web:
        for node in run.cluster.nodes:
            listed = await web.get(node, "/v1/ns/instance/list", serviceName="web")
            assert [host["metadata"] for host in listed.json["hosts"]] == [{"key": "?"}]
    assert errors_logged(caplog) == []


async def test_a_batch_that_a_peer_gave_an_ip_port_client_knows_no_beat(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    instances = sync_data(OWN, 1, web=80)["instancePublishInfos"]
    names = {"namespaces": ["public"], "groupNames": ["DEFAULT_GROUP"], "serviceNames": ["web"]}
    batch = {**names, "batchInstancePublishInfos": [{"instancePublishInfos": instances}]}
    assert (await peer.distro("CHANGE", OWN, sync_data(OWN, 1) | {"batchInstanceData": batch})).succeeded
    async with Web() as web:
        beat = await web.put(run.cluster.nodes[0], "/v1/ns/instance/beat", **WEB)
    assert (beat.status, beat.json["code"]) == (200, 20404)
    assert errors_logged(caplog) == []


@pytest.mark.parametrize("field", [{"abilities": {"remoteAbility": 5}}, {"abilities": [3]}, {"extendInfo": "text"}])
@pytest.mark.parametrize("profile", [STRICT, PROFILES["nacos-2.2.0"]])
async def test_a_report_that_is_no_member_is_refused_and_the_reports_go_on(
    lab: Lab, profile: Profile, field: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run = await lab.cluster(profile, size=2)
    node, other = run.cluster.nodes[0], run.cluster.addresses[1]
    report = {"address": other, **field}
    async with Web() as web:
        over_http = await web.ask("POST", node, "/v1/core/cluster/report", body=json.dumps(report).encode())
    over_grpc = await (await lab.member(node)).ask("MemberReportRequest", {"node": report})
    assert (over_http.status, over_http.json["code"]) == (200, 400)
    assert (over_grpc.type, over_grpc.body["errorCode"]) == ("ErrorResponse", 502)
    await run.clock.advance(20_000)
    assert node.members.others[other].state is MemberState.UP
    assert errors_logged(caplog) == []


async def test_a_verify_of_an_infinite_revision_has_a_typed_answer(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    key = {"resourceKey": "c1", "resourceType": "Nacos:Naming:v2:ClientData"}
    content = base64.b64encode(b'{"clientId":"c1","revision":1e999}').decode()
    data = {"distroKey": key, "type": "VERIFY", "content": content}
    reply = await peer.ask("DistroDataRequest", {"dataOperation": "VERIFY", "distroData": data})
    assert (reply.type, reply.body["resultCode"]) == ("DistroDataResponse", 500)
    assert errors_logged(caplog) == []


async def test_connections_are_checked_again_after_a_check_that_failed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, clock = await lab.node()
    client = await lab.naming(node)
    client.answers_detection = False

    async def breaks(*_: object) -> bool:
        raise RuntimeError("out of order")

    with monkeypatch.context() as patched:
        patched.setattr(ConnectionManager, "detect", breaks)
        with pytest.raises(WorkFailedError, match="connection check failed"):
            await clock.advance(25_000)
    await clock.advance(30_000)
    await client.stream_ended()


async def test_work_that_ends_with_the_node_sets_no_timer_any_more() -> None:
    clock = VirtualClock()
    lifetime = Lifetime(clock)
    await lifetime.end()
    timer = lifetime.call_at(clock.now_ms() + 1, lambda: pytest.fail("fired"), "late")
    timer.cancel()
    assert clock._timers == []


async def test_an_http_port_that_was_taken_in_the_last_moment_is_named(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, _ = await lab.node()
    monkeypatch.setattr("distro_impl.transport.http.is_free", lambda *_: True)
    server = HttpServer(
        ip="127.0.0.1", port=node.config.port, purpose="HTTP of a second node", routes=[], transport=GrpcTransport()
    )
    with pytest.raises(PortInUseError, match=rf"port {node.config.port} \(HTTP of a second node\) is in use"):
        await server.start()


async def test_a_retired_connection_with_a_request_under_way_ends_with_the_node(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).unanswered = {"CHANGE"}
    await client.register("web", 80)
    await run.clock.advance(1_500)
    retired = run.cluster.nodes[0].parts.membership.peers._clients[run.cluster.addresses[1]].connection
    assert retired is not None
    retired.retire()
    await run.clock.settle()
    await run.cluster.crash(0)
    assert retired._channel._channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN
