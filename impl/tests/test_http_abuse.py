"""Every request to the HTTP API is answered, and no accepted request breaks the node later."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from http_lab import FORM, Web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from impl_lab import Lab, errors_logged
from payloads import NOT_HTTP

from distro_impl.http.distro_filter import responsible_tag
from distro_impl.http.instance_parameters import beat_of, instance_of, metadata_of
from distro_impl.http.parameters import Parameters, service_of
from distro_impl.http.replies import ApiError
from distro_impl.naming.client import Service
from distro_impl.remote.errors import NacosError

NO_HURRY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
SERVICE = Service("public", "DEFAULT_GROUP", "web")
MEANT = re.compile("Request method '.+' not supported|would be kept by raft")
"""The texts of a 500 that is an intended answer."""
NAMES = [
    "serviceName",
    "groupName",
    "namespaceId",
    "ip",
    "port",
    "clusterName",
    "cluster",
    "weight",
    "enabled",
    "enable",
    "healthy",
    "ephemeral",
    "metadata",
    "beat",
    "clusters",
    "healthyOnly",
    "udpPort",
    "pageNo",
    "pageSize",
    "key",
    "clientId",
    "entry",
    "value",
    "onlyStatus",
    "heartBeat",
]
PATHS = [
    "/v1/ns/instance",
    "/v1/ns/instance/beat",
    "/v1/ns/instance/list",
    "/v1/ns/instance/statuses",
    "/v1/ns/service/list",
    "/v1/ns/operator/metrics",
    "/v1/ns/operator/distro/client",
    "/v2/ns/instance",
    "/v2/ns/instance/list",
    "/v2/ns/client",
    "/v2/ns/client/service/publisher/list",
    "/v2/core/cluster/node/list",
]

texts = st.text('aA0.:@#=,{"\\ \x00\nä€\ud800', max_size=6)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
KEYS = ["publishInstanceWeight", "publishInstanceEnable", "customInstanceId", "preserved.heart.beat.timeout"]
keys = texts | st.sampled_from(KEYS)
metadata_maps = st.dictionaries(keys, texts | st.floats(), max_size=3) | st.dictionaries(keys, json_values, max_size=2)
"""With the keys that mean something to a node (D9)."""
metadata = metadata_maps.map(json.dumps)
beats = st.fixed_dictionaries(
    {},
    optional={
        "ip": json_values | st.just("10.0.0.7"),
        "port": json_values | st.just(80),
        "cluster": json_values,
        "weight": json_values | st.just(1.5),
        "metadata": json_values | metadata_maps,
        "ephemeral": json_values,
    },
).map(json.dumps)
plausible = st.sampled_from(
    ["web", "G@@web", "@@", "10.0.0.7", "80", "0", "-1", "1", "true", "NaN", "1e999", "k=v", "\ud800"]
)
values = plausible | metadata | beats | texts
parameters = st.dictionaries(st.sampled_from(NAMES), values, max_size=6)
usual = st.just({"serviceName": "web", "ip": "10.0.0.7", "port": "80"})
requests = st.tuples(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    st.sampled_from(PATHS),
    st.tuples(usual | st.just({}), parameters).map(lambda both: {**both[0], **both[1]}),
    parameters | st.binary(max_size=40),
)


@settings(NO_HURRY)
@given(parameters)
def test_parameters_are_read_or_refused_by_name(given_parameters: dict[str, str]) -> None:
    read = Parameters(given_parameters)
    responsible_tag(read)
    for question in (lambda asked: instance_of(asked, SERVICE), beat_of, service_of):
        try:
            question(read)
            read.whole_number("pageNo")
        except NacosError as error:
            assert error.code == 400  # noqa: PT017
            assert error.message  # noqa: PT017


@settings(NO_HURRY)
@given(metadata)
def test_metadata_becomes_text_that_can_be_sent(text: str) -> None:
    try:
        read = metadata_of(text)
    except ApiError:
        return
    for key, value in read.items():
        assert json.loads(json.dumps({key: value}, ensure_ascii=False).encode()) == {key: value}


@pytest.mark.wire
@settings(NO_HURRY, max_examples=8)
@given(st.lists(requests, min_size=10, max_size=30))
def test_a_cluster_survives_any_request(asked: list[Any]) -> None:
    asyncio.run(_ask_all(asked))


@pytest.mark.wire
async def test_a_request_that_is_no_http_costs_a_line_of_the_log(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    """And that is a warning: no client can fill the log with errors that are no defects of the node."""
    run = await lab.cluster(size=1)
    (node,) = run.cluster.nodes
    caplog.set_level(logging.WARNING)
    for sent in NOT_HTTP:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.config.port)
        writer.write(sent)
        writer.write_eof()
        await reader.read()
        writer.close()
    async with Web() as web:
        assert (await web.get(node, "/v1/ns/operator/metrics")).status == 200
    assert errors_logged(caplog) == []
    lines = [record.getMessage() for record in caplog.records if record.exc_info is None]
    assert len(lines) == len(caplog.records) <= len(NOT_HTTP)
    beginning = "what 127.0.0.1 has sent is no HTTP request: "
    assert f"{beginning}Duplicate 'Host' header found." in lines
    assert all(line.startswith(beginning) and "\n" not in line and len(line) < 300 for line in lines)


@pytest.mark.wire
async def test_a_body_that_is_not_what_it_claims_to_be_is_refused(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    headers = {**FORM, "Content-Encoding": "gzip"}
    async with Web() as web:
        answer = await web.ask("POST", run.cluster.nodes[0], "/v1/ns/instance", headers=headers, body=b"no gzip")
    assert answer.status == 400
    assert answer.text.startswith("caused: the body cannot be read: ")


async def _ask_all(asked: list[Any]) -> None:
    """No answer of a healthy cluster is a 500, and registered instances can be replicated and listed."""
    lab = Lab()
    try:
        run = await lab.cluster(size=2)
        first, second = run.cluster.nodes
        async with Web() as web:
            for method, path, query, body in asked:
                raw = body if isinstance(body, bytes) else _urlencoded(body)
                answer = await web.ask(method, first, f"{path}?{_urlencoded(query).decode()}", headers=FORM, body=raw)
                is_meant = answer.status < 500 or answer.status == 501 or MEANT.search(answer.text)
                assert is_meant, (method, path, query, body, answer.text)
            await run.clock.advance(2_000)
            for node in (first, second):
                assert (await web.get(node, "/v1/ns/instance/list", serviceName="web")).status == 200
            seen = [(await web.get(node, "/v2/ns/client/list")).json["data"] for node in (first, second)]
            assert sorted(seen[0]) == sorted(seen[1])
    finally:
        await lab.close()


def _urlencoded(values: dict[str, str]) -> bytes:
    """Also what is no UTF-8."""
    return urlencode(values, errors="surrogatepass", quote_via=quote).encode()
