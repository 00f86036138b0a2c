"""The requests of clients of the 1.x generation, as they are on the wire (docs/protocol #http-v1).

Of those clients themselves one at a time can be installed beside the current SDK at most; here their requests are
written out.
"""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from http_lab import FORM, Web
from impl_lab import NACOS_2_2_4, Lab

pytestmark = pytest.mark.wire

INSTANCE, BEAT, LIST = "/v1/ns/instance", "/v1/ns/instance/beat", "/v1/ns/instance/list"


async def test_the_python_sdk_1_0(lab: Lab) -> None:
    """Booleans are Python's, a cluster that was not given is the text None, and only the exact `ok` is a success."""
    run = await lab.cluster(NACOS_2_2_4)
    node = run.cluster.nodes[0]
    address = {"ip": "10.0.0.7", "port": 80, "serviceName": "web"}
    registration = {
        **address,
        "weight": 1.0,
        "enable": True,
        "healthy": True,
        "clusterName": None,
        "ephemeral": True,
        "groupName": "DEFAULT_GROUP",
        "metadata": '{"k": "v"}',
    }
    beat = {
        **{**address, "serviceName": "DEFAULT_GROUP@@web"},
        "weight": 1.0,
        "cluster": None,
        "scheduled": False,
        "metadata": {"k": "v"},
        "ephemeral": True,
    }
    async with Web() as web:
        answer = await web.ask("POST", node, INSTANCE, headers=FORM, body=urlencode(registration).encode())
        assert answer.text == "ok"
        answer = await web.put(
            node, BEAT, beat=json.dumps(beat), serviceName="DEFAULT_GROUP@@web", groupName="DEFAULT_GROUP"
        )
        assert answer.json["clientBeatInterval"] == 5000
        await run.clock.advance(2_000)
        query = {"serviceName": "web", "clusters": "None", "healthyOnly": False, "groupName": "DEFAULT_GROUP"}
        [host] = (await web.get(node, LIST, **query)).json["hosts"]
        assert (host["clusterName"], host["enabled"], host["metadata"]) == ("None", True, {"k": "v"})
        answer = await web.delete(node, INSTANCE, **address, clusterName="None", ephemeral=True)
        assert answer.text == "ok"


async def test_the_node_client(lab: Lab) -> None:
    """All of it in the query string; grouped names; what it caches is found by `name` and `clusters`."""
    run = await lab.cluster(NACOS_2_2_4)
    node = run.cluster.nodes[0]
    headers = {"User-Agent": "Nacos-Java-Client:v1.0.0", "Client-Version": "Nacos-Java-Client:v1.0.0"}
    registration = {
        "namespaceId": "public",
        "serviceName": "DEFAULT_GROUP@@web",
        "groupName": "DEFAULT_GROUP",
        "clusterName": "DEFAULT",
        "ip": "10.0.0.7",
        "port": "80",
        "weight": "1",
        "enable": "true",
        "healthy": "true",
        "ephemeral": "true",
        "metadata": "{}",
    }
    beat = {"serviceName": "DEFAULT_GROUP@@web", "ip": "10.0.0.7", "port": 80, "cluster": "DEFAULT", "weight": 1}
    async with Web() as web:
        assert (await web.get(node, "/v1/ns/operator/metrics", namespaceId="public")).json["status"] == "UP"
        assert (await web.ask("POST", node, INSTANCE, registration, headers=headers)).text == "ok"
        beaten = {"beat": json.dumps(beat), "namespaceId": "public", "serviceName": "DEFAULT_GROUP@@web"}
        assert (await web.ask("PUT", node, BEAT, beaten, headers=headers)).json["code"] == 10200
        await run.clock.advance(2_000)
        query = {
            "namespaceId": "public",
            "serviceName": "DEFAULT_GROUP@@web",
            "clusters": "DEFAULT",
            "udpPort": "51234",
            "clientIP": "127.0.0.1",
            "healthyOnly": "false",
        }
        for each in run.cluster.nodes:
            info = (await web.ask("GET", each, LIST, query, headers=headers)).json
            assert (info["name"], info["clusters"], info["cacheMillis"]) == ("DEFAULT_GROUP@@web", "DEFAULT", 10_000)
            assert [host["port"] for host in info["hosts"]] == [80]
        services = await web.get(node, "/v1/ns/service/list", pageNo="1", pageSize="10", namespaceId="public")
        assert services.json == {"count": 1, "doms": ["web"]}


async def test_the_java_client_1_4(lab: Lab) -> None:
    """Parameters in the query string, the beat in a form body; once the node requests it, it leaves the beat out."""
    run = await lab.cluster(NACOS_2_2_4)
    node = run.cluster.nodes[0]
    headers = {"User-Agent": "Nacos-Java-Client:v1.4.6", "Request-Module": "Naming", "Accept-Encoding": "gzip", **FORM}
    named = {"namespaceId": "public", "serviceName": "DEFAULT_GROUP@@web", "clusterName": "DEFAULT"}
    address = {**named, "ip": "10.0.0.7", "port": "80"}
    beat = {
        "port": 80,
        "ip": "10.0.0.7",
        "weight": 1.0,
        "serviceName": "DEFAULT_GROUP@@web",
        "cluster": "DEFAULT",
        "metadata": {},
        "scheduled": False,
        "period": 5000,
        "stopped": False,
    }
    async with Web() as web:
        form = urlencode({"beat": json.dumps(beat)}).encode()
        first = await web.ask("PUT", node, BEAT, address, headers=headers, body=form)
        assert first.json == {"clientBeatInterval": 5000, "code": 10200, "lightBeatEnabled": True}
        for _ in range(8):  # longer than an instance lives without beats
            await run.clock.advance(5_000)
            light = await web.ask("PUT", node, BEAT, address, headers=headers, body=b"")
            assert light.json["code"] == 10200
        for each in run.cluster.nodes:
            assert await web.ports(each, "web") == [80]
        assert (await web.ask("DELETE", node, INSTANCE, {**address, "ephemeral": "true"}, headers=headers)).text == "ok"
        await run.clock.advance(2_000)
        for each in run.cluster.nodes:
            assert await web.ports(each, "web") == []
