"""Requests of operators, and of clients that look for a healthy server, over HTTP (docs/protocol #http-v1 and
#http-admin)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from http_lab import Web
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab

from distro_impl import PROFILES, Profile

pytestmark = pytest.mark.wire

INSTANCE, METRICS, SWITCHES = "/v1/ns/instance", "/v1/ns/operator/metrics", "/v1/ns/operator/switches"
NACOS_3_0_3 = PROFILES["nacos-3.0.3"]


async def test_a_node_that_serves_says_up(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    async with Web() as web:
        answer = await web.get(run.cluster.nodes[0], METRICS)
        assert (answer.status, answer.json) == (200, {"status": "UP"})
        assert (await web.get(run.cluster.nodes[0], "/v1/console/health/readiness")).text == "OK"


async def test_the_counters_distinguish_own_clients_from_copies(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    first, second = run.cluster.nodes
    sdk = await lab.naming(first)
    await sdk.register("web", 81)
    await sdk.subscribe("web")
    async with Web() as web:
        await web.post(first, INSTANCE, serviceName="other", ip="10.0.0.7", port=80)
        await run.clock.advance(2_000)
        seen = [(await web.get(node, METRICS, onlyStatus="false")).json for node in (first, second)]
    for counters in seen:
        assert counters["status"] == "UP"
        assert (counters["serviceCount"], counters["instanceCount"], counters["clientCount"]) == (2, 2, 2)
        assert (counters["connectionBasedClientCount"], counters["ephemeralIpPortClientCount"]) == (1, 1)
        assert 0 <= counters["cpu"] <= 1
        assert 0 < counters["mem"] < 1
    assert [counters["subscribeCount"] for counters in seen] == [1, 0]
    assert sum(counters["responsibleClientCount"] for counters in seen) == 2
    assert sum(counters["responsibleInstanceCount"] for counters in seen) == 2


async def test_switches_are_shown_and_turned(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        assert (await web.get(node, SWITCHES)).json["healthCheckEnabled"] is True
        assert (await web.put(node, SWITCHES, entry="healthCheckEnabled", value="false")).text == "ok"
        assert (await web.get(node, "/v2/ns/operator/switches")).json["data"]["healthCheckEnabled"] is False
        assert (await web.put(node, SWITCHES, entry="clientBeatInterval", value="7000")).text == "ok"
        beat = await web.put(node, f"{INSTANCE}/beat", serviceName="web", ip="10.0.0.7", port=80)
        assert beat.json["clientBeatInterval"] == 7000
        await web.post(node, INSTANCE, serviceName="web", ip="10.0.0.7", port=80)
        await run.clock.advance(40_000)  # no instance is judged by beats
        assert await web.ports(node, "web") == [80]
        refused = await web.put(node, SWITCHES, entry="masters", value="x")
        assert (refused.status, refused.text[:36]) == (400, "no switch 'masters' can be turned; k")


async def test_pushes_wait_while_they_are_switched_off(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    subscriber, publisher = [await lab.naming(node) for _ in range(2)]
    await subscriber.subscribe("web")
    async with Web() as web:
        await web.put(node, SWITCHES, entry="pushEnabled", value="false")
        await publisher.register("web", 80)
        await run.clock.advance(5_000)
        await web.put(node, SWITCHES, entry="pushEnabled", value="true")
        switched_on_ms = run.clock.now_ms()
        await run.clock.advance(1_000)
    push = await subscriber.next_request()
    assert [host["port"] for host in push.body["serviceInfo"]["hosts"]] == [80]
    assert push.body["serviceInfo"]["lastRefTime"] >= switched_on_ms


async def test_members_are_listed_in_both_wrappers(lab: Lab) -> None:
    run = await lab.cluster(size=3)
    node, addresses = run.cluster.nodes[0], sorted(run.cluster.addresses)
    async with Web() as web:
        old = (await web.get(node, "/v1/core/cluster/nodes")).json
        new = (await web.get(node, "/v2/core/cluster/node/list")).json
        assert (old["code"], old["message"], new["code"], new["message"]) == (200, None, 0, "success")
        for listed in (old["data"], new["data"]):
            assert [member["address"] for member in listed] == addresses
            assert {member["state"] for member in listed} == {"UP"}
        one = (await web.get(node, "/v1/core/cluster/nodes", keyword=addresses[1])).json["data"]
        assert [member["address"] for member in one] == addresses[1:2]
        own = (await web.get(node, "/v2/core/cluster/node/self")).json["data"]
        assert own["address"] == node.address
        assert (await web.get(node, "/v2/core/cluster/node/list", state="down")).json["data"] == []
        wrong = await web.get(node, "/v2/core/cluster/node/list", state="odd")
        assert (wrong.status, wrong.json["code"]) == (400, 23000)


async def test_clients_are_listed_with_what_they_publish_and_subscribe(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    first, second = run.cluster.nodes
    sdk = await lab.naming(first)
    await sdk.register("web", 81)
    await sdk.subscribe("other")
    await run.clock.advance(2_000)
    named = {"namespace": "public", "group": "DEFAULT_GROUP"}
    async with Web() as web:
        for node in (first, second):
            assert (await web.get(node, "/v2/ns/client/list")).json["data"] == [sdk.id]
            published = (await web.get(node, "/v2/ns/client/publish/list", clientId=sdk.id)).json["data"]
            instance = {"ip": "10.0.0.1", "port": 81, "cluster": "DEFAULT"}
            assert published == [{**named, "serviceName": "web", "registeredInstance": instance}]
        subscribed = (await web.get(first, "/v2/ns/client/subscribe/list", clientId=sdk.id)).json["data"]
        assert [each["serviceName"] for each in subscribed] == ["other"]
        unknown = await web.get(first, "/v2/ns/client/publish/list", clientId="x")
        assert (unknown.status, unknown.json["code"]) == (404, 20004)
        assert unknown.json["data"] == "clientId [ x ] not exist"


@pytest.mark.parametrize("profile", [NACOS_2_2_4, STRICT])
async def test_queries_about_clients_are_lame_in_releases(lab: Lab, profile: Profile) -> None:
    """D20."""
    is_repaired = profile is STRICT
    run = await lab.cluster(profile, size=2)
    first, second = run.cluster.nodes
    sdk = await lab.naming(first)
    await sdk.register("web", 81)
    await run.clock.advance(2_000)
    publishers = "/v2/ns/client/service/publisher/list"
    shown = {"clientId": sdk.id, "ip": "10.0.0.1", "port": 81}
    found = [{**shown, "cluster": "DEFAULT"} if is_repaired else shown]
    async with Web() as web:
        own = (await web.get(first, "/v2/ns/client", clientId=sdk.id)).json["data"]
        assert (own["clientType"], own["connectType"], own["clientIp"]) == ("connection", "GRPC", "127.0.0.1")
        copy = await web.get(second, "/v2/ns/client", clientId=sdk.id)
        assert copy.status == (200 if is_repaired else 500)
        for half in ({}, {"ip": "10.0.0.1"}, {"port": 81}):
            answer = await web.get(first, publishers, serviceName="web", **half)
            assert answer.json["data"] == (found if is_repaired else [])
        exact = await web.get(first, publishers, serviceName="web", ip="10.0.0.1", port=81)
        assert exact.json["data"] == found
        assert (await web.get(first, publishers, serviceName="web", ip="10.0.0.1", port=82)).json["data"] == []


async def test_subscribers_of_a_service(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    sdk = await lab.naming(run.cluster.nodes[0])
    await sdk.subscribe("web")
    async with Web() as web:
        path = "/v2/ns/client/service/subscriber/list"
        [subscriber] = (await web.get(run.cluster.nodes[0], path, serviceName="web")).json["data"]
    assert subscriber == {"clientId": sdk.id, "ip": "127.0.0.1", "port": int(sdk.id.rpartition("_")[2])}


async def test_v2_begins_with_2_2_and_v3_with_3(lab: Lab) -> None:
    async with Web() as web:
        for profile, v2, v3 in ((NACOS_2_0_4, 404, 404), (NACOS_2_2_4, 200, 404), (NACOS_3_0_3, 410, 200)):
            node = (await lab.cluster(profile, size=1)).cluster.nodes[0]
            assert (await web.get(node, "/v2/ns/instance/list", serviceName="web")).status == v2
            assert (await web.get(node, "/v3/client/ns/instance/list", serviceName="web")).status == v3


async def test_3_closes_administration_but_serves_old_clients(lab: Lab) -> None:
    run = await lab.cluster(NACOS_3_0_3, size=1)
    node = run.cluster.nodes[0]
    address = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}
    async with Web() as web:
        assert (await web.post(node, INSTANCE, **address)).text == "ok"
        assert (await web.put(node, f"{INSTANCE}/beat", **address)).json["code"] == 10200
        assert await web.ports(node, "web") == [80]
        for path in (INSTANCE, SWITCHES, "/v2/ns/client/list", "/v1/core/cluster/nodes", "/v1/console/health/liveness"):
            closed = await web.get(node, path, **address)
            assert (closed.status, closed.json["code"]) == (410, 40000)
        assert (await web.get(node, "/v1/cs/configs")).status == 404


async def test_the_client_api_of_3(lab: Lab) -> None:
    run = await lab.cluster(NACOS_3_0_3, size=1)
    node, path = run.cluster.nodes[0], "/v3/client/ns/instance"
    address = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}
    async with Web() as web:
        stranger = await web.post(node, path, **address, heartBeat="true")
        assert (stranger.status, stranger.json) == (200, {"code": 21003, "message": "instance not found", "data": None})
        assert (await web.post(node, path, **address)).json == {"code": 0, "message": "success", "data": "ok"}
        assert (await web.post(node, path, **address, heartBeat="true")).json["code"] == 0
        [host] = (await web.get(node, f"{path}/list", serviceName="web")).json["data"]
        assert (host["ip"], host["port"]) == ("10.0.0.7", 80)
        assert (await web.delete(node, path, **address)).json["data"] == "ok"
        await run.clock.advance(500)
        assert (await web.get(node, f"{path}/list", serviceName="web")).json["data"] == []
        missing = await web.post(node, path, serviceName="web")
        assert (missing.status, missing.json["code"], missing.json["message"]) == (400, 10000, "parameter missing")


async def test_the_v2_api_of_instances(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    node, path = run.cluster.nodes[0], "/v2/ns/instance"
    address = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}
    async with Web() as web:
        assert (await web.post(node, path, **address, weight=11_000)).json["code"] == 21001
        assert (await web.post(node, path, **address)).json == {"code": 0, "message": "success", "data": "ok"}
        info = (await web.get(node, f"{path}/list", serviceName="web", clusterName="DEFAULT")).json["data"]
        assert (info["name"], len(info["hosts"])) == ("DEFAULT_GROUP@@web", 1)
        detail = (await web.get(node, path, **address)).json["data"]
        assert (detail["serviceName"], detail["clusterName"]) == ("DEFAULT_GROUP@@web", "DEFAULT")
        beat = (await web.put(node, f"{path}/beat", **address)).json
        assert beat == {"clientBeatInterval": 5000, "code": 10200, "lightBeatEnabled": True}
        assert (await web.put(node, path, **address, weight=2)).json["data"] == "ok"
        assert (await web.delete(node, path, **address)).json["data"] == "ok"
        await run.clock.advance(500)
        assert (await web.get(node, path, **address)).json["code"] == 20004


async def test_naming_is_refused_until_a_node_is_warm(lab: Lab) -> None:
    """With data warm-up; the load fails here until a member answers. Other servers are served all the same."""
    run = await lab.cluster(replace(NACOS_2_2_4, data_warmup=True), size=2)
    await run.cluster.crash(1)
    await run.cluster.crash(0)
    cold = await run.cluster.restart(0)
    await run.clock.settle()
    async with Web() as web:
        for path in (METRICS, f"{INSTANCE}/list"):
            refused = await web.get(cold, path, serviceName="web")
            assert (refused.status, refused.text) == (503, "server is DOWN now, please try again later!")
        assert (await web.get(cold, "/v1/console/health/readiness")).status == 500
        assert (await web.get(cold, "/v1/console/health/liveness")).status == 200
        server = await web.ask("GET", cold, METRICS, headers={"User-Agent": "Nacos-Server:2.2.4"})
        assert server.json == {"status": "DOWN"}
        await run.cluster.restart(1)
        await run.clock.advance(31_000)
        assert (await web.get(cold, METRICS)).json == {"status": "UP"}


async def test_the_settings_of_a_node(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=2)
    async with Web() as web:
        state = (await web.get(run.cluster.nodes[0], "/v1/console/server/state")).json
    assert (state["version"], state["standalone_mode"]) == ("2.2.4", "cluster")
    assert (state["data_sync_delayMs"], state["data_verify_intervalMs"]) == ("1000", "5000")


async def test_operators_find_the_same_under_ops(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_2_4, size=1)
    async with Web() as web:
        for path in ("metrics", "switches"):
            found = [
                (await web.get(run.cluster.nodes[0], f"/v1/ns/{name}/{path}")).json for name in ("operator", "ops")
            ]
            assert found[0] == found[1]
