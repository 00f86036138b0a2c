"""The endpoints of 1.x data, answered as a running 2.0.4 answers (docs/protocol #releases-matrix)."""

from __future__ import annotations

import json

import pytest
from http_lab import Answer, Web
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, Lab

from distro_impl import Node
from distro_impl.http import distro_v1

pytestmark = pytest.mark.wire

DATUM, DATUMS, CHECKSUM = "/v1/ns/distro/datum", "/v1/ns/distro/datums", "/v1/ns/distro/checksum"
KEY = "com.alibaba.nacos.naming.iplist.ephemeral.public##DEFAULT_GROUP@@old"
OLD = {KEY: {"key": KEY, "timestamp": 7, "value": {"instanceList": [{"ip": "10.0.0.5", "port": 80}]}}}


async def send(web: Web, method: str, node: Node, path: str, body: object, **parameters: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await web.ask(method, node, path, parameters, headers={"Content-Type": "application/json"}, body=data)


async def test_data_of_a_1_x_member_is_given_back_and_shown_in_no_list(lab: Lab) -> None:
    node, _ = await lab.node(profile=NACOS_2_0_4)
    async with Web() as web:
        assert (await web.get(node, DATUMS)).json == {}
        assert (await send(web, "PUT", node, DATUM, OLD)).text == "ok"
        assert (await web.get(node, DATUMS)).json == OLD
        assert (await send(web, "GET", node, DATUM, {"keys": f"{KEY},other"})).json == OLD
        assert (await send(web, "GET", node, DATUM, {"keys": "other"})).json == {}
        assert (await send(web, "PUT", node, CHECKSUM, {KEY: "abc"}, source="127.0.0.1:9")).text == "ok"
        assert await web.ports(node, "old") == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("PUT", DATUM, {}, 400, "receive empty entity!"),
        ("PUT", DATUM, {KEY: {}}, 500, "has no key"),
        ("PUT", DATUM, b"[1", 500, "no JSON object"),
        ("PUT", DATUM, b'{"k":{"key":"k","value":' + b"[" * 900 + b"]" * 900 + b"}}", 500, "no JSON object"),
        ("GET", DATUM, {}, 500, "names no keys"),
        ("PUT", CHECKSUM, {}, 400, "Parameter 'source' is missing"),
    ],
)
async def test_data_that_is_not_of_1_x_is_refused(
    lab: Lab, method: str, path: str, body: object, status: int, text: str
) -> None:
    node, _ = await lab.node(profile=NACOS_2_0_4)
    async with Web() as web:
        answer = await send(web, method, node, path, body)
        assert (answer.status, text in answer.text) == (status, True)
        assert (await web.get(node, DATUMS)).json == {}


async def test_2_2_0_and_later_have_nothing_there(lab: Lab) -> None:
    node, _ = await lab.node(profile=NACOS_2_2_4)
    async with Web() as web:
        assert (await web.get(node, DATUMS)).status == 501


async def test_data_that_no_node_reads_is_bounded(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distro_v1, "MAX_BYTES", 1_000)
    node, _ = await lab.node(profile=NACOS_2_0_4)
    async with Web() as web:
        for key, length, status in (("a", 600, 200), ("b", 600, 500), ("a", 700, 200), ("b", 200, 200)):
            answer = await send(web, "PUT", node, DATUM, {key: {"key": key, "value": "x" * length}})
            assert answer.status == status, answer.text
