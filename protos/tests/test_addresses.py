"""Addresses are taken apart in one place, IPv6 addresses in brackets among them."""

from __future__ import annotations

import pytest

from distro_protos.addresses import Address, AddressError, bracketed, entries, parse_address, split_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.1:8848", "10.0.0.1", 8848),
        ("nacos-0.nacos-headless.default.svc:8848", "nacos-0.nacos-headless.default.svc", 8848),
        ("nacos_1:1", "nacos_1", 1),
        ("[2001:db8::a]:8848", "[2001:db8::a]", 8848),
        ("[::1]:65535", "[::1]", 65535),
        (" [fe80::1%eth0]:8848 ", "[fe80::1%eth0]", 8848),
        ("[::ffff:10.0.0.1]:8848", "[::ffff:10.0.0.1]", 8848),
    ],
)
def test_an_address_is_read_as_it_was_written(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host, port)
    assert str(parse_address(text)) == text.strip()


@pytest.mark.parametrize(
    "text",
    ["", ":8848", "localhost", "localhost:", "a:0", "a:65536", "a:x", "a:８", "a b:1", "2001:db8::a:8848", "[::1]",
     "[::1]:", "[::g]:1", "[10.0.0.1]:1", "[::1:8848", "::1]:8848", "http://a:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        parse_address(text)


def test_who_has_no_port_has_the_default_one() -> None:
    assert str(parse_address("[2001:db8::a]", 8848)) == "[2001:db8::a]:8848"
    assert str(parse_address("a", 8848)) == "a:8848"
    with pytest.raises(AddressError):
        parse_address("a:", 8848)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[2001:db8::a]:8848, [2001:db8::b]:8848]", ["[2001:db8::a]:8848", "[2001:db8::b]:8848"]),
        ("[2001:db8::a]:8848,[2001:db8::b]:8848", ["[2001:db8::a]:8848", "[2001:db8::b]:8848"]),
        ("[2001:db8::a]:8848", ["[2001:db8::a]:8848"]),
        ("[[2001:db8::a]:8848]", ["[2001:db8::a]:8848"]),
        ("[2001:db8::a], [2001:db8::b]", ["[2001:db8::a]", "[2001:db8::b]"]),
        ("[10.0.0.1:8848, nacos-1:8848]", ["10.0.0.1:8848", "nacos-1:8848"]),
        ("10.0.0.1:8848 , 10.0.0.2:8848,", ["10.0.0.1:8848", "10.0.0.2:8848"]),
        ("[10.0.0.1:8848]", ["10.0.0.1:8848"]),
        ("[10.0.0.1:8848, [2001:db8::b]:8848]", ["10.0.0.1:8848", "[2001:db8::b]:8848"]),
        ("[]", []),
        ("", []),
    ],
)
def test_a_list_is_read_with_its_brackets_and_without(text: str, found: list[str]) -> None:
    assert entries(text) == found


def test_one_host_written_in_two_ways_is_one() -> None:
    assert parse_address("[2001:DB8:0:0:0:0:0:A]:1").canonical == parse_address("[2001:db8::a]:1").canonical
    assert parse_address("[2001:db8::b]:1").canonical != parse_address("[2001:db8::a]:1").canonical


def test_an_id_has_its_address_before_the_last_colon() -> None:
    assert split_address("2001:db8::1:80") == ("2001:db8::1", "80")
    assert split_address("null:0") == ("null", "0")
    assert split_address("[::1]") == ("[::1]", "")
    assert (bracketed("::1"), bracketed("[::1]"), bracketed("10.0.0.1")) == ("[::1]", "[::1]", "10.0.0.1")
