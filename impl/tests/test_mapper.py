"""The owner of an ip:port client (docs/protocol #owner-place)."""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_2_4, STRICT

from distro_impl import NodeConfig, Profile, VirtualClock
from distro_impl.core import Core
from distro_impl.distro.mapper import DistroMapper, distro_hash
from distro_impl.membership.members import ServerMemberManager
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.service_manager import ServiceManager
from distro_impl.naming.switch_domain import SwitchDomain

A, B, C = MEMBERS = ("127.0.0.1:8848", "127.0.0.1:8858", "127.0.0.1:8868")


class View:
    """The owners by the member list of one node."""

    def __init__(self, own: str = A, *, profile: Profile = NACOS_2_2_4, standalone: bool = False) -> None:
        config = NodeConfig(port=int(own.rpartition(":")[2]), members=() if standalone else MEMBERS, profile=profile)
        core, self.switches = Core.of(config, VirtualClock()), SwitchDomain()
        self.members = ServerMemberManager(core, config.other_members)
        log = NamingLog(config.address, ServiceManager(core.clock))
        self.mapper = DistroMapper(core, self.members, self.switches, log)

    def without(self, *down: str) -> View:
        for address in down:
            self.members.report_failed(self.members.others[address], refused=True)
        return self


@pytest.mark.parametrize(
    ("tag", "place"),
    [("192.168.1.6:8080", 0), ("192.168.1.5:8080", 1), ("192.168.1.4:8080", 2), ("192.168.1.3:8080", 0)],
)
@pytest.mark.parametrize("profile", [NACOS_2_2_4, STRICT], ids=lambda profile: profile.name)
def test_all_members_agree_on_one_owner_while_their_lists_are_the_same(tag: str, place: int, profile: Profile) -> None:
    mappers = {own: View(own, profile=profile).mapper for own in MEMBERS}
    assert {mapper.map_server(tag) for mapper in mappers.values()} == {MEMBERS[place]}
    assert [own for own, mapper in mappers.items() if mapper.responsible(tag)] == [MEMBERS[place]]


def test_the_owners_of_a_real_cluster() -> None:
    """Seen on three servers of 2.2.4, whose ports these are."""
    places = [distro_hash(f"10.6.0.{number}:80") % 3 for number in range(4)]
    assert places == [1, 0, 2, 1]


@pytest.mark.parametrize(
    ("tag", "owners", "owners_in_strict"),
    [
        ("192.168.1.6:8080", [A], [A]),
        ("192.168.1.5:8080", [B, C], [B, C]),
        ("192.168.1.4:8080", [], [C]),
        ("192.168.1.3:8080", [A, B, C], [A]),
        ("192.168.1.2:8080", [], [B, C]),
        ("192.168.1.1:8080", [B, C], [C]),
    ],
)
def test_b15_while_b_and_c_do_not_see_each_other_strict_leaves_no_client_without_owner(
    tag: str, owners: list[str], owners_in_strict: list[str]
) -> None:
    for profile, expected in ((NACOS_2_2_4, owners), (STRICT, owners_in_strict)):
        views = {
            A: View(A, profile=profile),
            B: View(B, profile=profile).without(C),
            C: View(C, profile=profile).without(B),
        }
        assert [own for own, view in views.items() if view.mapper.responsible(tag)] == expected


def test_a_suspicious_member_keeps_its_clients_and_one_that_is_down_loses_them() -> None:
    view = View(A)
    tag = "192.168.1.5:8080"
    member = view.members.others[B]
    for _ in range(NACOS_2_2_4.member_fail_access_count):
        view.members.report_failed(member)
    assert view.mapper.map_server(tag) == B
    view.members.report_failed(member)
    assert view.mapper.map_server(tag) == C
    view.members.report_succeeded(member, None)
    assert view.mapper.map_server(tag) == B


def test_alone_or_with_the_switch_off_a_node_owns_everything() -> None:
    assert View(standalone=True).mapper.responsible("192.168.1.5:8080")
    view = View(A)
    view.switches.distro_enabled = False
    assert view.mapper.responsible("192.168.1.5:8080")
    assert view.mapper.map_server("192.168.1.5:8080") == A


@pytest.mark.parametrize("profile", [NACOS_2_2_4, STRICT], ids=lambda profile: profile.name)
def test_a_node_keeps_its_place_by_a_list_without_it(profile: Profile) -> None:
    view = View(A, profile=profile)
    view.members.change_list([B, C])
    assert view.mapper.responsible("192.168.1.6:8080")
    assert not view.mapper.responsible("192.168.1.5:8080")
    assert view.mapper.map_server("192.168.1.5:8080") == B


@pytest.mark.parametrize("member", [A, C, None, B, "127.0.0.1:1"], ids=str)
def test_a_node_is_followed_by_later_members_in_the_ring_of_a_client(member: str | None) -> None:
    """The ring is B, C, A. A member that is not named may be the first; one that is on no list stands nowhere."""
    views = {own: View(own, profile=STRICT).mapper for own in (B, C, A)}
    behind = [own for own, mapper in views.items() if mapper.is_followed_by("192.168.1.5:8080", member)]
    assert behind == {A: [B, C], C: [B], None: [B]}.get(member, [])


@pytest.mark.parametrize(("code", "expected"), [(-(2**31), 1), (2**31 - 1, 0), (-1, 1)])
def test_the_edges_of_the_hash(code: int, expected: int) -> None:
    assert distro_hash(_text_with_hash(code)) == expected


def _text_with_hash(code: int) -> str:
    """Digits in base 31, as characters."""
    rest, text = code & 0xFFFFFFFF, ""
    while rest:
        rest, digit = divmod(rest, 31)
        text = chr(digit) + text
    return text
