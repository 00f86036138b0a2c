"""A member list that is written down: its syntax, and the file that is watched (docs/protocol #member-list)."""

from __future__ import annotations

from pathlib import Path

import pytest

from distro_impl import PROFILES, MemberListError, Node, NodeConfig, VirtualClock, parse_member_list
from distro_impl.membership.lookup import FileMemberLookup

A, B, C = "10.0.0.1:8848", "10.0.0.2:8848", "10.0.0.3:8858"


@pytest.mark.parametrize(
    "text",
    [
        f"{A}\n{B}\n{C}\n",
        f"# written by hand\n\n  {C} , {A}  # two in one line\n{B},\n{A}",
        "10.0.0.3:8858\n10.0.0.2\n10.0.0.1",
    ],
    ids=["one in a line", "commas, comments, repetition", "our own port where there is none"],
)
def test_a_member_list_may_have_several_forms(text: str) -> None:
    assert parse_member_list(text, 8848) == (A, B, C)


def test_names_and_ipv6_addresses_are_members_too() -> None:
    assert parse_member_list("nacos-0.nacos\n[fe80::1]\n[fe80::2]:99", 8848) == (
        "[fe80::1]:8848",
        "[fe80::2]:99",
        "nacos-0.nacos:8848",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the member list names no member"),
        (f"{A}\n# {B}\n10.0.0.2:http", "line 3: '10.0.0.2:http' has no usable port"),
        ("10.0.0.2:65536", "line 1: '10.0.0.2:65536' has no usable port"),
        ("10.0.0.2:", "has no usable port"),
        (":8848", "':8848' is no address"),
        ("10.0.0.1 10.0.0.2", "'10.0.0.1 10.0.0.2' is no address"),
        ("fe80::1:8848", "an IPv6 address in brackets"),
    ],
)
def test_a_field_that_is_no_list_is_refused_with_its_path(text: str, problem: str) -> None:
    with pytest.raises(MemberListError, match=problem.replace("[", r"\[")):
        parse_member_list(text, 8848)


def test_a_file_is_read_again_only_when_it_says_something_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cluster.conf"
    path.write_text(f"{A}\n{B}\n")
    lookup = FileMemberLookup(path, 8848)
    assert lookup.read() == (A, B)
    assert lookup.read_if_changed() is None
    path.write_text(f"{A}\n{C}\n")
    assert lookup.read_if_changed() == (A, C)
    path.write_text("nonsense here\n")
    assert lookup.read_if_changed() is None
    assert lookup.read_if_changed() is None
    path.unlink()
    assert lookup.read_if_changed() is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    path.write_text(f"{B}\n")
    assert lookup.read_if_changed() == (B,)


def test_a_node_does_not_start_with_a_file_that_lacks_it_or_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "cluster.conf"
    config = NodeConfig(ip="10.0.0.1", port=8848, member_list_file=path, profile=PROFILES["strict"])
    with pytest.raises(MemberListError, match=r"cluster\.conf cannot be read: No such file or directory$"):
        Node(config, clock=VirtualClock())
    path.write_bytes(b"10.0.0.1\xff")
    with pytest.raises(MemberListError, match=r"cluster\.conf is not UTF-8 \(byte 8\)"):
        Node(config, clock=VirtualClock())
    path.write_text(f"{B}\n{C}\n")
    with pytest.raises(MemberListError, match=rf"cluster\.conf lacks the node itself, {A}"):
        Node(config, clock=VirtualClock())


def test_a_list_and_a_file_with_a_list_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give one"):
        NodeConfig(ip="10.0.0.1", port=8848, members=(A,), member_list_file=tmp_path / "cluster.conf")
