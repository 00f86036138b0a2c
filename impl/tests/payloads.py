"""Valid requests of every type that a node handles, and ways to spoil them.

Shared by the Hypothesis test and by the endurance bench, which draws from the same spoilers with a random generator.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from impl_lab import SERVICE, sync_data

from distro_impl.distro.transport_agent import DataOperation, decode_content, distro_body
from distro_protos import Json, Payload

INSTANCE: Json = {
    "instanceId": "",
    "ip": "10.0.0.1",
    "port": 80,
    "weight": 1.0,
    "healthy": True,
    "enabled": True,
    "ephemeral": True,
    "clusterName": "DEFAULT",
    "serviceName": "",
    "metadata": {"preserved.heart.beat.interval": "1000", "zone": "a"},
}
WEB: Json = {**SERVICE, "serviceName": "web"}
MEMBER: Json = {
    "ip": "10.0.0.2",
    "port": 8848,
    "state": "UP",
    "address": "10.0.0.2:8848",
    "extendInfo": {"version": "2.2.4", "readyToUpgrade": True, "raftPort": "7848"},
    "abilities": {"remoteAbility": {"supportRemoteConnection": True}},
    "grpcReportEnabled": True,
    "failAccessCnt": 0,
}

DATUM: Json = {
    "publishInstanceWeight": 2.0,
    "publishInstanceEnable": True,
    "customInstanceId": "i",
    "preserved.heart.beat.interval": "1000",
}
"""`extendDatum` with the keys that mean something."""


def with_datum(sync: Json) -> Json:
    """ClientSyncData whose instances have DATUM, with a batch of two of them besides."""
    infos = [{**info, "extendDatum": DATUM} for info in sync["instancePublishInfos"]]
    batch = {
        "namespaces": ["public"],
        "groupNames": ["DEFAULT_GROUP"],
        "serviceNames": ["batch"],
        "batchInstancePublishInfos": [{"instancePublishInfos": infos}],
    }
    return {**sync, "instancePublishInfos": infos, "batchInstanceData": batch}


SDK_REQUESTS: list[tuple[str, Json]] = [
    ("HealthCheckRequest", {"module": "internal"}),
    ("ServerCheckRequest", {"module": "internal"}),
    ("InstanceRequest", {**WEB, "type": "registerInstance", "instance": INSTANCE}),
    ("InstanceRequest", {**WEB, "type": "deregisterInstance", "instance": INSTANCE}),
    ("BatchInstanceRequest", {**WEB, "type": "batchRegisterInstance", "instances": [INSTANCE, INSTANCE]}),
    ("PersistentInstanceRequest", {**WEB, "type": "registerInstance", "instance": {**INSTANCE, "ephemeral": False}}),
    ("SubscribeServiceRequest", {**WEB, "subscribe": True, "clusters": ""}),
    ("ServiceQueryRequest", {**WEB, "cluster": "", "healthyOnly": False, "udpPort": 0}),
    ("ServiceListRequest", {**SERVICE, "serviceName": "", "pageNo": 1, "pageSize": 10, "selector": ""}),
]
CLUSTER_REQUESTS: list[tuple[str, Json]] = [
    ("MemberReportRequest", {"node": MEMBER}),
    *(
        ("DistroDataRequest", distro_body(operation, "c1", data))
        for operation, data in (
            (DataOperation.CHANGE, with_datum(sync_data("c1", 3, web=80, api=81))),
            (DataOperation.ADD, sync_data("c1", 3, web=80)),
            (DataOperation.DELETE, None),
            (DataOperation.VERIFY, {"clientId": "c1", "revision": 3}),
            (DataOperation.QUERY, None),
            (DataOperation.SNAPSHOT, None),
        )
    ),
    ("ConfigChangeClusterSyncRequest", {"dataId": "d", "group": "g", "tenant": ""}),
]
REQUESTS = SDK_REQUESTS + CLUSTER_REQUESTS

DEEP = 3_000
"""Levels that no decoder may follow: the interpreter's recursion ends at 1,000."""
NASTY: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    -(2**63) - 1,
    10**400,
    1.5,
    -0.0,
    1e308,
    "",
    " ",
    "web",
    "ERROR",
    "\ud800",
    "\x00",
    "a@@b",
    "#",
    "10.0.0.1:80#true",
    "x" * 10_000,
    "null",
    "NaN",
    "-1",
    "١٢",
    [],
    {},
    [None],
    [[]],
    {"": ""},
    {"key": {"key": [1, "x"]}},
    [INSTANCE],
    INSTANCE,
)
"""Values for any place in a body."""

NASTY_TEXTS: tuple[bytes, ...] = (
    b"",
    b"null",
    b"[]",
    b"3",
    b'"text"',
    b"{",
    b"}",
    b'{"a":}',
    b"\xff\xfe\x00",
    b"\x00" * 100,
    b"{" * 100,
    b"[" * 200_000,
    b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    b'{"namespace":NaN}',
    b'{"instance":{"port":' + b"9" * 5_000 + b"}}",
    "{}".encode("utf-16"),
)
"""Bodies that are no JSON object, or that should not be read as one."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a body, outermost first."""
    found = [path]
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of `value` with `new` at `path`; DROP takes the place out."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, Mapping) else list(value)
    key, *rest = path
    if new is DROP and not rest:
        del copy[key]
    else:
        copy[key] = replaced(copy[key], tuple(rest), new)
    return copy


DROP = object()

Choose = Callable[[Any], Any]
"""Takes one of a sequence."""


def with_content(body: Json, choose: Choose, new: Any) -> Json:
    """The same with a nasty value somewhere inside the Base64 content, where there is one."""
    text = body.get("distroData", {}).get("content")
    if text is None:
        return body
    content = decode_content(body["distroData"])
    spoiled = replaced(content, choose(places(content)[1:]), new)
    return {**body, "distroData": {**body["distroData"], "content": b64encode(json.dumps(spoiled).encode()).decode()}}


def spoiled(choose: Choose, requests: list[tuple[str, Json]] = REQUESTS) -> bytes:
    """A serialized request with something wrong in it, or sometimes nothing."""
    type_name, body = choose(requests)
    how = choose(("value", "value", "value", "content", "content", "dropped", "body", "type", "bytes"))
    if how in ("value", "dropped"):
        paths = places(body)[1:]
        if paths:
            body = replaced(body, choose(paths), DROP if how == "dropped" else choose(NASTY))
    elif how == "content":
        body = with_content(body, choose, choose((*NASTY, DROP)))
    elif how == "type":
        type_name = choose(("", "NobodyKnowsRequest", "InstanceResponse", "PushAckRequest", "ConnectionSetupRequest"))
    payload = Payload()
    payload.metadata.type = type_name
    payload.body.value = choose(NASTY_TEXTS) if how == "body" else json.dumps(body).encode()
    serialized = payload.SerializeToString()
    if how == "bytes":
        cut = choose(range(len(serialized)))
        serialized = choose((serialized[:cut], serialized[:cut] + b"\xff\xff" + serialized[cut:], serialized[cut:]))
    return serialized


def random_payloads(seed: int, requests: list[tuple[str, Json]] = REQUESTS) -> Callable[[], bytes]:
    random = Random(seed)
    return lambda: (
        spoiled(random.choice, requests) if random.random() < 0.9 else random.randbytes(random.randrange(300))
    )


def nested_payloads(seed: int) -> Callable[[], bytes]:
    """Requests whose body is nested deeper than any is read, most of them just as deep as the interpreter goes."""
    random = Random(seed)
    types = [type_name for type_name, _ in REQUESTS if type_name != "ServerCheckRequest"]  # its body is never read

    def make() -> bytes:
        type_name = random.choice(types)
        levels = random.choice((*range(900, 1_000, 5), DEEP))
        opened, closed = random.choice(((b'{"a":', b"}"), (b"[", b"]"), (b'[{"a":', b"}]")))
        payload = Payload()
        payload.metadata.type = type_name
        payload.body.value = b'{"a":' + opened * levels + b"1" + closed * levels + b"}"
        return payload.SerializeToString()

    return make


_LINE, _FORM = b"GET /nacos/v1/ns/operator/metrics HTTP/1.1\r\n", b"Content-Type: application/x-www-form-urlencoded\r\n"
_POST = b"POST /nacos/v1/ns/instance HTTP/1.1\r\nHost: a\r\n" + _FORM
_REPORT = b"POST /nacos/v1/core/cluster/report HTTP/1.1\r\nHost: a\r\n"
NOT_HTTP: tuple[bytes, ...] = (
    _LINE + b"Host: a\r\nHost: b\r\n\r\n",
    _LINE + b"Host: a\r\nX: a\x01b\r\n\r\n",
    _LINE + b"Host: a\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /?\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 32,
    _POST + b"Content-Length: -1\r\n\r\n",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    _POST + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
    _POST + b"Content-Length: 500\r\n\r\nabcde",
    _REPORT + b"Content-Type: application/json; charset=none\r\nContent-Length: 2\r\n\r\n{}",
    _REPORT + b"Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n" + b"[" * 5_000,
)
"""Bytes to the HTTP port that are no request, or a request whose body cannot be read."""
