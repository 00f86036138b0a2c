"""The envelope: what goes in comes out, and the bytes are those that Nacos reads (docs/protocol #wire-envelope)."""

from __future__ import annotations

import json

import pytest

from distro_protos import Payload, UnreadableBodyError, decode, encode


def test_what_goes_in_comes_out() -> None:
    body = {"instance": {"ip": "10.0.0.9", "weight": 2.0, "metadata": {"name": "Zürich"}}, "clusters": ""}
    sent = encode("InstanceRequest", body, headers={"app": "shop"}, client_ip="10.0.0.9")
    message = decode(Payload.FromString(sent.SerializeToString()))
    assert (message.type, message.body, message.headers, message.client_ip) == (
        "InstanceRequest",
        body,
        {"app": "shop"},
        "10.0.0.9",
    )


def test_field_numbers_are_those_of_upstream() -> None:
    """Metadata 2 {type 3, clientIp 8}, body 3 {value 2}; nothing else."""
    sent = encode("T", {}, client_ip="ip").SerializeToString()
    assert sent == b"\x12\x07\x1a\x01T\x42\x02ip\x1a\x04\x12\x02{}"


def test_nulls_are_left_out_at_every_depth() -> None:
    hosts = {"hosts": [{"instanceId": None, "port": 80}]}
    assert decode(encode("QueryServiceResponse", hosts)).body == {"hosts": [{"port": 80}]}
    body = {"message": None, "serviceInfo": {"checksum": None, **hosts}}
    assert json.loads(encode("T", body).body.value) == {"serviceInfo": {"hosts": [{"port": 80}]}}


def test_floats_stay_floats() -> None:
    assert b"2.0" in encode("T", {"weight": 2.0}).body.value


def test_headers_of_the_envelope_win_over_those_in_the_body() -> None:
    """The Python SDK sends both."""
    sent = encode("T", {"headers": {"app": "inner", "token": "t"}}, headers={"app": "outer"})
    assert decode(sent).headers == {"app": "outer", "token": "t"}


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"\xff", b'{"weight":NaN}', b'{"port":' + b"9" * 5000 + b"}", b"[" * 200_000]
)
def test_a_body_that_is_no_object_is_refused_with_the_type_still_known(value: bytes) -> None:
    payload = encode("HealthCheckRequest", {})
    payload.body.value = value
    with pytest.raises(UnreadableBodyError, match="the body of HealthCheckRequest is unreadable") as raised:
        decode(payload)
    assert raised.value.type_name == "HealthCheckRequest"


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """JSON can escape it, UTF-8 cannot hold it, and the answer that repeats it must still be written."""
    payload = encode("InstanceRequest", {})
    payload.body.value = b'{"serviceName":"a\\ud800b"}'
    assert decode(encode("InstanceResponse", decode(payload).body)).body == {"serviceName": "a?b"}


@pytest.mark.parametrize(
    ("type_name", "body", "succeeded"),
    [
        ("DistroDataResponse", {"resultCode": 200, "errorCode": 500}, True),  # Java looks at resultCode alone
        ("DistroDataResponse", {"resultCode": 500}, False),
        ("DistroDataResponse", {}, True),
        ("DistroDataRequest", {"resultCode": 200}, False),
    ],
)
def test_success_is_read_as_java_reads_it(type_name: str, body: dict[str, int], succeeded: bool) -> None:
    assert decode(encode(type_name, body)).succeeded is succeeded
