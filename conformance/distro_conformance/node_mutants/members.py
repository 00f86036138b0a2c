"""Members and owners."""

from __future__ import annotations

from typing import Any

from distro_conformance.node_mutants.mutant import Change, Mutant, add, instead, left_out, mutant, swapped
from distro_conformance.node_mutants.sending import to_who_has_left
from distro_impl.distro import mapper
from distro_impl.distro.mapper import DistroMapper
from distro_impl.jackson import JAVA_INT_MAX
from distro_impl.java_hash import java_hash
from distro_impl.membership import report
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.member import Member, MemberState
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MemberReportTask


@mutant("m-owner-includes-down", DistroMapper, "_read_places")
def _listed(_: Any, self: Any) -> tuple[str, ...]:
    """Members that are DOWN keep their places among the owners."""
    return tuple(member.address for member in self._members.all_members())


@mutant("m-reports-wait-for-who-is-not-up", MemberReportTask, "report_to_next")
async def _reports_to_the_same(old: Any, self: Any) -> None:
    """Reports go to a member that is not UP until it is."""
    before = self._turn
    members = tuple(self._members.others.values())
    await old(self)
    if members and members[before % len(members)].state is not MemberState.UP:
        self._turn = before


@mutant("m-nobody-leaves", ServerMemberManager, "change_list")
def _keeps_everybody(old: Any, self: Any, addresses: Any) -> bool:
    """Who has left the member list stays a member."""
    return bool(old(self, {*addresses, *self.others}))


@mutant("m-nobody-joins", ServerMemberManager, "change_list")
def _takes_nobody(old: Any, self: Any, addresses: Any) -> bool:
    """Who is new in the member list does not become a member."""
    return bool(old(self, {*addresses} & {self.self_member.address, *self.others}))


@mutant("m-list-of-as-many-is-not-announced", ServerMemberManager, "change_list")
def _as_many(old: Any, self: Any, addresses: Any) -> bool:
    """A member list of as many members as before is taken, but the node neither connects to who is new in it nor gives
    clients another owner."""
    if len({*addresses} | {self.self_member.address}) != len(self.others) + 1:
        return bool(old(self, addresses))
    with swapped(self, "_publish", lambda: None):
        return bool(old(self, addresses))


@mutant("m-list-change-revives-the-down", ServerMemberManager, "change_list")
def _revives(old: Any, self: Any, addresses: Any) -> bool:
    """A change of the member list makes every member UP that stays."""
    if {*addresses} != {self.self_member.address, *self.others}:
        for member in self.others.values():
            member.state = MemberState.UP
    return bool(old(self, addresses))


@mutant("m-report-without-address", Member, "to_json")
def _nameless(old: Any, self: Any) -> Any:
    """A report does not name its member."""
    return {key: value for key, value in old(self).items() if key != "address"}


@mutant("m-report-without-version", Member, "to_json")
def _versionless(old: Any, self: Any) -> Any:
    """A report has no version."""
    data = old(self)
    return {**data, "extendInfo": {k: v for k, v in data["extendInfo"].items() if k != "version"}}


@mutant("m-suspicious-gets-requests", ServerMemberManager, "is_up")
def _sends_to_suspicious(_: Any, self: Any, address: str) -> bool:
    """A member that has refused a report and is not DOWN yet is sent Distro requests as before."""
    return address in self.others and not self.is_down(address)


@mutant("m-reporter-is-what-it-says", ServerMemberManager, "receive_report")
def _as_it_says(old: Any, self: Any, node: Any) -> bool:
    """A member that reports has the state that its report names, and is not UP for that it reports."""
    if (member := self.others.get(node.address or "")) is None:
        return bool(old(self, node))
    member.take_over(node)
    self._set_state(member, MemberState(node.state or MemberState.UP))
    return True


@mutant("m-return-by-a-report-is-not-announced", ServerMemberManager, "receive_report")
def _return_is_not_announced(old: Any, self: Any, node: Any) -> Any:
    """A member that was DOWN and reports itself is UP, but owns nothing as long as its report names nothing new."""
    if (member := self.others.get(node.address)) is not None:
        member.state = MemberState.UP
    return old(self, node)


@mutant("m-failures-are-never-forgotten", ServerMemberManager, "report_succeeded")
def _remembers_failures(old: Any, self: Any, member: Any, node: Any) -> None:
    """A report that succeeds leaves the count of failures as it is."""
    failures = member.fail_access_count
    old(self, member, node)
    member.fail_access_count = failures


@mutant("m-down-at-the-third", ServerMemberManager, "report_failed")
def _down_early(old: Any, self: Any, member: Member, *, refused: bool = False) -> None:
    """The third failing report in a row makes a member DOWN."""
    old(self, member, refused=refused or member.fail_access_count + 1 >= self._profile.member_fail_access_count)


@mutant("m-hash-keeps-its-sign", mapper, "distro_hash")
def _signed(_: Any, tag: str) -> int:
    """The owner of a client whose hash is negative is another one than members agree on."""
    return java_hash(tag) % JAVA_INT_MAX


@mutant("m-strangers-join", ServerMemberManager, "receive_report")
def _joins(old: Any, self: Any, node: Any) -> bool:
    """Any node that reports itself becomes a member."""
    self.change_list((self.self_member.address, *self.others, node.address))
    return bool(old(self, node))


@mutant("m-report-is-answered-by-nobody", report, "success")
def _answers_nobody(old: Any, **fields: Any) -> Any:
    """The answer to a report lacks the node."""
    return old(**{name: value for name, value in fields.items() if name != "node"})


left_out("m-nobody-goes-down", ServerMemberManager, "report_failed", "A refused report leaves its member UP.")

add(
    Mutant(
        "m-everybody-owns-everything",
        "Every ip:port client is served where it asks.",
        changes=(instead(DistroMapper, "responsible", lambda *_: True),),
    ),
    Mutant(
        "B36",
        "A node that is new in the member list is UP, also when no server listens there.",
        {"newcomer_starts_down": False},
    ),
    Mutant(
        "m-nobody-comes-back",
        "A report of a member that is DOWN leaves it so.",
        changes=(
            instead(ServerMemberManager, "receive_report", lambda *_: True),
            instead(ServerMemberManager, "report_succeeded", lambda *_: None),
        ),
    ),
    Mutant(
        "m-anonymous-report-is-refused",
        "A report without an address is refused, as before 3.0.0.",
        {"address_from_ip_and_port": False},
    ),
)


def _to_all_known(old: Any) -> Any:
    async def report_to_next(self: Any) -> None:
        left = [each for each in self._clients._clients if each not in self._members.others]
        for address in left:
            await self._report_to(self._members._new_member(address))
        await old(self)

    return report_to_next


add(
    Mutant(
        "m-reports-to-who-left",
        "A member that has left the list is sent reports.",
        changes=(
            Change(MemberReportTask, "report_to_next", _to_all_known),
            Change(ClusterRpcClientProxy, "_follow", to_who_has_left),
        ),
    )
)


@mutant("m-connection-to-who-left-stays", ClusterRpcClientProxy, "_follow")
def _connection_stays(old: Any, self: Any, listed: Any) -> None:
    """The connection to a member that has left the list stays open."""
    old(self, sorted({*listed, *self._clients}))
