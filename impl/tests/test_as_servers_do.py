"""Details of running servers, each of which distinguishes them from another implementation.

The differential test found them (`distrocheck test differential`) on a real server; these tests
need none.
"""

from __future__ import annotations

import json

import pytest
from http_lab import Web
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, Lab

from distro_impl import PROFILES, Profile

pytestmark = pytest.mark.wire

NACOS_2_3_2, NACOS_2_5_1 = PROFILES["nacos-2.3.2"], PROFILES["nacos-2.5.1"]
V1, V2 = "/v1/ns/instance", "/v2/ns/instance"
WEB = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}
SERVICE = {"namespace": "public", "groupName": "DEFAULT_GROUP", "serviceName": "web"}


async def test_json_has_no_charset_and_errors_without_a_handler_have_a_page(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    url = f"http://{run.cluster.nodes[0].address}/nacos"
    async with Web() as web, web._session.get(f"{url}/v1/ns/operator/metrics") as reply:
        assert reply.headers["Content-Type"] == "application/json"
        page = (await web.get(run.cluster.nodes[0], "/v2/ns/none")).json
        assert (page["status"], page["error"], page["path"]) == (404, "Not Found", "/nacos/v2/ns/none")


async def test_the_detail_shows_a_disabled_instance_which_lists_leave_out(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, V1, **WEB, enabled="false")
        assert (await web.get(node, V1, **WEB, cluster="not read here")).json["ip"] == "10.0.0.7"
        assert (await web.get(node, f"{V1}/list", serviceName="web")).json["hosts"] == []


async def test_v2_gives_no_instance_id_and_lists_have_no_nulls(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, V2, **WEB, metadata='{"a":"b"}')
        (host,) = (await web.get(node, f"{V1}/list", serviceName="web")).json["hosts"]
        assert "instanceId" not in host
        assert None not in host.values()
        assert (await web.get(node, V1, **WEB)).json["instanceId"] is None


@pytest.mark.parametrize(("profile", "status"), [(NACOS_2_0_4, 200), (NACOS_2_2_4, 400)])
async def test_cluster_names_are_checked_over_http_too(lab: Lab, profile: Profile, status: int) -> None:
    run = await lab.cluster(profile, size=1)
    async with Web() as web:
        assert (await web.post(run.cluster.nodes[0], V1, **WEB, clusterName="a b")).status == status


async def test_pages_and_keys_that_make_no_sense(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, V1, **WEB)
        path = "/v1/ns/service/list"
        assert (await web.get(node, path, pageNo="first", pageSize=10)).json == {"count": 1, "doms": ["web"]}
        negative = await web.get(node, path, pageNo=1, pageSize=-1)
        assert (negative.status, negative.text) == (400, "fromIndex(0) > toIndex(-1)")
        assert (await web.get(node, f"{V1}/statuses", key="web")).status == 400


@pytest.mark.parametrize(
    ("profile", "has_handler", "keys"),
    [
        (NACOS_2_0_4, False, set()),
        (NACOS_2_2_4, True, set()),
        (NACOS_2_3_2, True, {"grpcReportEnabled"}),
        (NACOS_2_5_1, True, {"grpcReportEnabled", "supportGrayModel"}),
    ],
)
async def test_the_description_of_a_member_is_that_of_its_release(
    lab: Lab, profile: Profile, has_handler: bool, keys: set[str]
) -> None:
    run = await lab.cluster(profile, size=2, strangers=True)
    own, other = run.cluster.nodes
    member = await lab.member(own)
    report = {"node": {"ip": "127.0.0.1", "port": 1, "address": other.address, "extendInfo": {}}}
    reply = await member.ask("MemberReportRequest", report)
    assert reply.body["errorCode"] == (0 if has_handler else 302)
    async with Web() as web:
        shown = (await web.get(own, "/v1/core/cluster/self")).json["data"]
    assert {"grpcReportEnabled", "supportGrayModel"} & {*shown, *shown["extendInfo"]} == keys
    assert ("grpcReportEnabled" in shown["abilities"]["remoteAbility"]) is has_handler


@pytest.mark.parametrize(
    ("node", "type_name", "code"),
    [
        (None, "ErrorResponse", 500),
        ({}, "MemberReportResponse", 400),
        ({"address": "127.0.0.1:1", "port": 1}, "MemberReportResponse", 400),
        ({"ip": "127.0.0.1", "address": "127.0.0.1:1", "port": -1}, "MemberReportResponse", 400),
    ],
)
async def test_a_report_without_its_sender(lab: Lab, node: dict[str, object] | None, type_name: str, code: int) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    member = await lab.member(run.cluster.nodes[0])
    reply = await member.ask("MemberReportRequest", {} if node is None else {"node": node})
    assert (reply.type, reply.body["resultCode"], reply.body["errorCode"]) == (type_name, 500, code)


async def test_a_report_over_http_of_a_stranger_is_answered_with_false(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_0_4, size=2)
    own, other = run.cluster.nodes
    async with Web() as web:
        for address, known in ((other.address, "true"), ("127.0.0.9:1", "false")):
            body = json.dumps({"ip": "127.0.0.1", "address": address, "extendInfo": {}}).encode()
            headers = {"Content-Type": "application/json"}
            answer = await web.ask("POST", own, "/v1/core/cluster/report", headers=headers, body=body)
            assert answer.json == {"code": 200, "message": None, "data": known}


@pytest.mark.parametrize(
    ("profile", "body", "code"),
    [
        (NACOS_2_2_4, {"instance": {"ip": "10.0.0.1"}}, 500),
        (NACOS_2_2_4, {"type": "registerInstance"}, 500),
        (NACOS_2_3_2, {"type": "registerInstance"}, 400),
        (NACOS_2_3_2, {"type": "deregisterInstance"}, 500),
        (NACOS_2_0_4, {"type": "deregisterInstance"}, 0),
    ],
)
async def test_a_missing_field_of_a_registration_has_the_code_of_the_release(
    lab: Lab, profile: Profile, body: dict[str, object], code: int
) -> None:
    run = await lab.cluster(profile, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    reply = await client.ask("InstanceRequest", {**SERVICE, **body})
    assert reply.body["errorCode"] == code


async def test_selectors_that_are_missing(lab: Lab) -> None:
    """A subscription without one is answered without one, a query as if it were empty."""
    run = await lab.cluster(NACOS_2_2_4, size=1)
    client = await lab.naming(run.cluster.nodes[0])
    subscribed = await client.ask("SubscribeServiceRequest", {**SERVICE, "subscribe": True})
    assert "clusters" not in subscribed.body["serviceInfo"]
    queried = await client.ask("ServiceQueryRequest", SERVICE)
    assert queried.body["serviceInfo"]["clusters"] == ""
    listed = await client.ask("ServiceListRequest", {"groupName": "DEFAULT_GROUP", "pageNo": 1, "pageSize": 10})
    assert (listed.type, listed.body["errorCode"]) == ("ErrorResponse", 500)


async def test_distro_requests_that_say_too_little_get_a_typed_answer(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    member = await lab.member(run.cluster.nodes[0])
    nothing = await member.ask("DistroDataRequest", {})
    assert (nothing.type, nothing.body["resultCode"], nothing.body["errorCode"]) == ("DistroDataResponse", 200, 500)
    key = {"resourceKey": "c1", "resourceType": "other"}
    asked = await member.ask("DistroDataRequest", {"dataOperation": "QUERY", "distroData": {"distroKey": key}})
    assert asked.body["distroData"] == {"distroKey": key, "content": ""}
    change = {"dataOperation": "CHANGE", "distroData": {"type": "CHANGE", "distroKey": {"resourceKey": "c1"}}}
    assert "handle failed" in (await member.ask("DistroDataRequest", change)).body["message"]


async def test_a_clients_detail_and_its_subscriptions_name_its_sdk(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node = run.cluster.nodes[0]
    client = await lab.naming(node)
    await client.subscribe("web")
    async with Web() as web:
        (known,) = (await web.get(node, "/v2/ns/client/list")).json["data"]
        detail = (await web.get(node, "/v2/ns/client", clientId=known)).json["data"]
        (subscribed,) = (await web.get(node, "/v2/ns/client/subscribe/list", clientId=known)).json["data"]
    assert detail["appName"] == "-"
    assert subscribed["subscriberInfo"] == {"app": "unknown", "agent": detail["version"], "addr": "127.0.0.1"}


@pytest.mark.parametrize(("profile", "more"), [(NACOS_2_2_4, {}), (NACOS_2_3_2, {"cluster": "DEFAULT"})])
async def test_publishers_are_shown_with_their_cluster_from_2_3_on(
    lab: Lab, profile: Profile, more: dict[str, str]
) -> None:
    run = await lab.cluster(profile, size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, V1, **WEB)
        (shown,) = (await web.get(node, "/v2/ns/client/service/publisher/list", **WEB)).json["data"]
    assert shown == {"clientId": "10.0.0.7:80#true", "ip": "10.0.0.7", "port": 80, **more}


async def test_switches_that_are_never_turned_are_shown_too(lab: Lab) -> None:
    for profile, status in ((NACOS_2_0_4, 200), (NACOS_2_2_4, 501)):
        run = await lab.cluster(profile, size=1)
        async with Web() as web:
            switches = (await web.get(run.cluster.nodes[0], "/v1/ns/operator/switches")).json
            assert (switches["distroThreshold"], switches["masters"]) == (0.7, None)
            assert (await web.get(run.cluster.nodes[0], "/v1/ns/operator/servers")).status == status
