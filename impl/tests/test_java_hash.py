"""Hash codes of Java, as a JDK computes them.

The revisions are what running servers of 2.2.4 and 2.3.2 sent for these registrations.
"""

from __future__ import annotations

import pytest

from distro_impl.java_hash import java_hash, objects_hash
from distro_impl.naming.client import PublishedInstance, Service
from distro_impl.naming.ip_port_client import IpPortClient
from distro_impl.profiles import profile_named


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        ("", 0),
        ("10.0.0.9:8080", -1414310596),
        ("10.0.0.7:80", 1106847366),
        ("192.168.1.10:9001", 189704631),
        ("\U0001f600", 1772899),  # two UTF-16 code units
        (True, 1231),
        (False, 1237),
        (-5, -5),
        (2**31, -(2**31)),  # a Long
        (-(2**31) - 1, -(2**31)),
        (1.0, 1072693248),
        (0.1, -1507852285),
        ({}, 0),
        ({"a": "b"}, 3),
        ({"a": True, "b": 2.0}, 1073743120),
        ([1, "a"], 1089),
        (frozenset({-1, 1}), 0),
    ],
    ids=repr,
)
def test_the_hash_code_of_what_json_can_hold(value: object, expected: int) -> None:
    assert java_hash(value) == expected


def test_a_value_outside_of_json_has_no_hash() -> None:
    with pytest.raises(TypeError, match="bytes"):
        java_hash(b"")


def test_objects_hash_is_that_of_an_array() -> None:
    assert objects_hash() == 1
    assert objects_hash(None) == 31
    assert objects_hash("a", 1, True) == 97 * 31 * 31 + 31 + 1231 + 31**3


class Alone:
    """Everything is this member's."""

    def responsible(self, _: str) -> bool:
        return True

    def is_followed_by(self, _tag: str, _member: str | None) -> bool:
        return True


@pytest.mark.parametrize(
    ("ip", "service", "revision"),
    [
        ("10.6.0.0", "h0", -419833242),
        ("10.6.0.1", "h1", -1503490009),
        ("10.6.0.2", "h2", 1619638248),
        ("10.6.0.3", "h3", 492056489),
        ("10.9.9.9", "hs", -2099275945),
    ],
)
def test_the_revision_is_that_of_a_real_server(ip: str, service: str, revision: int) -> None:
    datum = {"customInstanceId": f"{ip}#80#DEFAULT#DEFAULT_GROUP@@{service}"}
    client = IpPortClient(f"{ip}:80#true", native=False, renewed_ms=0, ownership=Alone())
    client.publishers[Service("public", "DEFAULT_GROUP", service)] = PublishedInstance(ip, 80, extend_datum=datum)
    assert client.content_hash(profile_named("nacos-2.2.4")) == revision


@pytest.mark.parametrize("profile", ["nacos-2.2.4", "strict"])
def test_the_revision_does_not_depend_on_the_order_of_services_and_sees_every_field(profile: str) -> None:
    one, other = Service("public", "DEFAULT_GROUP", "a"), Service("public", "DEFAULT_GROUP", "b")
    plain = PublishedInstance("10.0.0.1", 80)

    def revision(**publishers: PublishedInstance) -> int:
        client = IpPortClient("10.0.0.1:80#true", native=False, renewed_ms=0, ownership=Alone())
        client.publishers = {{"a": one, "b": other}[name]: instance for name, instance in publishers.items()}
        return client.content_hash(profile_named(profile))

    assert revision(a=plain, b=plain) == revision(b=plain, a=plain)
    ill = PublishedInstance("10.0.0.1", 80, healthy=False)
    assert (revision(a=plain, b=ill) == revision(a=ill, b=plain)) == (profile != "strict")
    variants = [
        plain,
        PublishedInstance("10.0.0.1", 80, healthy=False),
        PublishedInstance("10.0.0.1", 80, cluster="B"),
        PublishedInstance("10.0.0.1", 80, extend_datum={"publishInstanceWeight": 2.0}),
        PublishedInstance("10.0.0.1", 80, extend_datum={"publishInstanceEnable": False}),
        PublishedInstance("10.0.0.1", 80, extend_datum={"zone": "a"}),
    ]
    hashes = {revision(a=variant) for variant in variants} | {revision(b=plain), revision()}
    assert len(hashes) == len(variants) + 2
