"""The v1 instance API as clients of the 1.x generation use it (docs/protocol #http-v1), on one node."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from http_lab import FORM, Web
from impl_lab import Lab

pytestmark = pytest.mark.wire

INSTANCE, BEAT, LIST = "/v1/ns/instance", "/v1/ns/instance/beat", "/v1/ns/instance/list"
WEB = {"serviceName": "web", "ip": "10.0.0.7", "port": 80}


async def test_an_instance_is_registered_listed_and_deregistered(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        registered = await web.post(node, INSTANCE, **WEB, weight=2, metadata='{"zone":"a"}')
        assert (registered.status, registered.text) == (200, "ok")
        info = (await web.get(node, LIST, serviceName="web", clusters="DEFAULT")).json
        assert (info["name"], info["groupName"], info["clusters"]) == ("DEFAULT_GROUP@@web", "DEFAULT_GROUP", "DEFAULT")
        [host] = info["hosts"]
        assert host["instanceId"] == "10.0.0.7#80#DEFAULT#DEFAULT_GROUP@@web"
        assert (host["weight"], host["metadata"], host["serviceName"]) == (2.0, {"zone": "a"}, "DEFAULT_GROUP@@web")
        gone = await web.delete(node, INSTANCE, **WEB)
        assert (gone.status, gone.text) == (200, "ok")
        await run.clock.advance(500)
        assert await web.ports(node, "web") == []


async def test_a_deregistration_of_an_unknown_instance_is_ok(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    async with Web() as web:
        assert (await web.delete(run.cluster.nodes[0], INSTANCE, **WEB)).text == "ok"
        assert (await web.delete(run.cluster.nodes[0], INSTANCE, **WEB, ephemeral="false")).text == "ok"


async def test_parameters_may_come_as_a_form_and_the_query_string_has_precedence(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        form = urlencode({**WEB, "port": 81, "metadata": "k=v,l=w"}).encode()
        answer = await web.ask("POST", node, INSTANCE, {"port": 82}, headers=FORM, body=form)
        assert answer.text == "ok"
        [host] = (await web.get(node, LIST, serviceName="web")).json["hosts"]
        assert (host["port"], host["metadata"]) == (82, {"k": "v", "l": "w"})


async def test_a_grouped_name_needs_no_group_and_a_plain_one_may_have_one(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, INSTANCE, **{**WEB, "serviceName": "G@@web"}, groupName="ignored")
        assert (await web.get(node, LIST, serviceName="web", groupName="G")).json["name"] == "G@@web"
        assert await web.ports(node, "G@@web") == [80]
        assert await web.ports(node, "web") == []


async def test_the_detail_of_an_instance(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        missing = await web.get(node, INSTANCE, **WEB)
        assert (missing.status, missing.text) == (404, "no ips found for cluster DEFAULT in service DEFAULT_GROUP@@web")
        await web.post(node, INSTANCE, **WEB, clusterName="c1")
        other = await web.get(node, INSTANCE, **WEB)
        assert (other.status, other.text) == (404, "no matched ip found!")
        assert (await web.get(node, INSTANCE, **WEB, clusterName="c1")).json == {
            "service": "DEFAULT_GROUP@@web",
            "ip": "10.0.0.7",
            "port": 80,
            "clusterName": "c1",
            "weight": 1.0,
            "healthy": True,
            "instanceId": "10.0.0.7#80#c1#DEFAULT_GROUP@@web",
            "metadata": {},
        }
        statuses = await web.get(node, f"{INSTANCE}/statuses", key="public##DEFAULT_GROUP@@web")
        assert statuses.json == {"ips": ["10.0.0.7:80_true"]}


async def test_a_light_beat_of_a_stranger_asks_for_a_registration_and_a_full_one_is_one(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    full = {"ip": "10.0.0.7", "port": 80, "weight": 1.0, "cluster": "DEFAULT", "serviceName": "DEFAULT_GROUP@@web"}
    async with Web() as web:
        light = await web.put(node, BEAT, **WEB)
        assert light.json == {"clientBeatInterval": 5000, "code": 20404, "lightBeatEnabled": True}
        metadata = {"preserved.heart.beat.interval": "2000"}
        beat = json.dumps({**full, "metadata": metadata, "scheduled": False})
        answer = await web.put(node, BEAT, serviceName="DEFAULT_GROUP@@web", beat=beat)
        assert answer.json == {"clientBeatInterval": 2000, "code": 10200, "lightBeatEnabled": True}
        assert await web.ports(node, "web") == [80]
        assert (await web.put(node, BEAT, **WEB)).json["code"] == 10200


async def test_a_full_beat_without_a_weight_registers_the_weight_zero(lab: Lab) -> None:
    """As a real 2.2.4 does; a registration without one has the weight 1."""
    node = (await lab.cluster(size=1)).cluster.nodes[0]
    async with Web() as web:
        beat = json.dumps({"ip": "10.0.0.7", "port": 80, "cluster": "DEFAULT", "serviceName": "DEFAULT_GROUP@@web"})
        await web.put(node, BEAT, serviceName="DEFAULT_GROUP@@web", beat=beat)
        (host,) = (await web.get(node, LIST, serviceName="web")).json["hosts"]
        assert host["weight"] == 0.0


async def test_beats_keep_an_instance_and_their_absence_removes_it(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        await web.post(node, INSTANCE, **WEB)
        for _ in range(8):
            await run.clock.advance(5_000)
            assert (await web.put(node, BEAT, **WEB)).json["code"] == 10200
        assert [host["healthy"] for host in (await web.get(node, LIST, serviceName="web")).json["hosts"]] == [True]
        await run.clock.advance(21_000)
        assert (await web.get(node, LIST, serviceName="web", healthyOnly="True")).json["hosts"] == []
        assert await web.ports(node, "web") == [80]
        await run.clock.advance(15_000)
        assert await web.ports(node, "web") == []


async def test_an_update_changes_what_was_registered_over_http(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        unknown = await web.put(node, INSTANCE, **WEB)
        assert (unknown.status, unknown.text[:17]) == (400, "service not found")
        await web.post(node, INSTANCE, **WEB)
        assert (await web.put(node, INSTANCE, **WEB, weight=0.5, metadata="k=v")).text == "ok"
        await run.clock.advance(500)
        [host] = (await web.get(node, LIST, serviceName="web")).json["hosts"]
        assert (host["weight"], host["metadata"]) == (0.5, {"k": "v"})
        await run.clock.advance(20_000)  # without a beat
        assert (await web.put(node, INSTANCE, **WEB, weight=3)).text == "ok"
        await run.clock.advance(500)
        [host] = (await web.get(node, LIST, serviceName="web")).json["hosts"]
        assert (host["weight"], host["healthy"]) == (3.0, False)
        sdk = await lab.naming(node)
        await sdk.register("web", 81)
        foreign = await web.put(node, INSTANCE, serviceName="web", ip="10.0.0.1", port=81)
        assert (foreign.status, "raft" in foreign.text) == (500, True)


async def test_an_http_and_a_grpc_client_see_each_other(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    sdk = await lab.naming(node)
    async with Web() as web:
        await web.post(node, INSTANCE, **WEB)
        await sdk.register("web", 81)
        await run.clock.advance(500)
        assert await sdk.ports("web") == await web.ports(node, "web") == [80, 81]


async def test_the_list_of_services_comes_in_pages(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        for name in ("a", "b", "c", "G@@d"):
            await web.post(node, INSTANCE, **{**WEB, "serviceName": name})
        page = await web.get(node, "/v1/ns/service/list", pageNo=2, pageSize=2)
        assert page.json == {"count": 3, "doms": ["c"]}
        of_group = await web.get(node, "/v1/ns/service/list", pageNo=1, pageSize=2, groupName="G")
        assert of_group.json == {"count": 1, "doms": ["d"]}
        assert (await web.get(node, "/v1/ns/service/list", pageNo=1)).text == "Param 'pageSize' is required."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ip": ""}, "Param 'ip' is required."),
        ({"serviceName": " "}, "Param 'serviceName' is illegal, it should be format as 'groupName@@serviceName'"),
        ({"port": "http"}, "Param 'port' is not a whole number: 'http'"),
        ({"port": "65536"}, "Param 'port' is not between 0 and 65535: '65536'"),
        ({"serviceName": "@@web"}, '{"timestamp": '),
        ({"weight": "10001"}, "instance format invalid: The weights range from 0.0 to 10000.0"),
        ({"weight": "nan"}, "instance format invalid: The weights range from 0.0 to 10000.0"),
        ({"metadata": "k:v"}, "metadata format incorrect:k:v"),
        ({"metadata": "[1]"}, "metadata in param 'metadata' is not a JSON object"),
        ({"ephemeral": "false"}, "persistent instances are not supported"),
    ],
)
async def test_an_unusable_parameter_is_named(lab: Lab, change: dict[str, Any], said: str) -> None:
    run = await lab.cluster(size=1)
    async with Web() as web:
        answer = await web.post(run.cluster.nodes[0], INSTANCE, **{**WEB, **change})
        assert answer.status == 400
        assert answer.text.startswith(said)


@pytest.mark.parametrize(
    "beat",
    [
        "{",
        "[]",
        '"x"',
        "[" * 100_000,
        '{"port":80}',
        '{"ip":"10.0.0.7","port":"x"}',
        '{"ip":"10.0.0.7","port":1,"ephemeral":false}',
        '{"ip":"10.0.0.7","port":1,"metadata":{"k":{}}}',
    ],
)
async def test_an_unusable_beat_is_refused(lab: Lab, beat: str) -> None:
    run = await lab.cluster(size=1)
    async with Web() as web:
        body = urlencode({"serviceName": "web", "beat": beat}).encode()
        answer = await web.ask("PUT", run.cluster.nodes[0], BEAT, headers=FORM, body=body)
        assert answer.status == 400
        assert answer.text


async def test_an_unserved_path_is_reported_and_a_body_that_is_too_large_is_413(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    async with Web() as web:
        assert (await web.get(node, "/v1/cs/configs", dataId="x", group="y")).status == 404
        assert (await web.get(node, "/v1/ns/distro/datums")).status == 501
        assert (await web.ask("PATCH", node, INSTANCE)).json["error"] == "Not Implemented"
        refused = await web.ask("POST", node, "/v1/core/cluster/nodes")
        assert (refused.status, refused.text) == (500, "caused: Request method 'POST' not supported;")
        assert (await web.ask("POST", node, INSTANCE, headers=FORM, body=b"a=" + b"x" * 11_000_000)).status == 413
        assert await web.ports(node, "web") == []


async def test_a_body_that_never_comes_does_not_hold_up_the_end_of_a_node(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    node = run.cluster.nodes[0]
    _, writer = await asyncio.open_connection(node.config.ip, node.config.port)
    head = "POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    writer.write(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\nip=".encode())
    await writer.drain()
    async with Web() as web:
        assert (await web.get(node, "/v1/ns/operator/metrics")).status == 200  # so the other request has begun as well
    await asyncio.wait_for(node.crash(), 5)
    writer.close()
