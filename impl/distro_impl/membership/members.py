"""The member list and the state of each member: one table, which changes while the node runs.

Code that needs the list reads the present one, or subscribes to `MembersChanged`. The list comes from the configuration
or from a file (lookup.py); the states come from the reports, which are sent and received in report.py. Source:
docs/protocol #member-list and #member-report, docs/real-servers.md#a-played-member.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from distro_impl.core import Core
from distro_impl.logs import logger
from distro_impl.membership.cluster_log import ClusterLog
from distro_impl.membership.member import Member, MemberState
from distro_impl.profiles import Profile
from distro_impl.profiles.profile import ReportTransport
from distro_impl.remote.payloads import Node
from distro_protos import Json

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class MembersChanged:
    """The member list changed, or the state of a member, or what it says of itself. `healthy` are the addresses of
    those that are UP or SUSPICIOUS, this node among them, sorted."""

    healthy: tuple[str, ...]


def _own_abilities(profile: Profile) -> Json:
    remote = {"supportRemoteConnection": True}
    if profile.report_transport is not ReportTransport.HTTP:
        remote["grpcReportEnabled"] = True
    return {
        "remoteAbility": remote,
        "configAbility": {"supportRemoteMetrics": False},
        "namingAbility": {"supportJraft": True},
    }


class ServerMemberManager:
    """Who the members are and in which state."""

    def __init__(self, core: Core, others: Iterable[str]) -> None:
        config, self._profile, self._notify_center = core.config, core.profile, core.notify_center
        self.log = ClusterLog(config.address, config.profile)
        self.self_member = Member(
            config.address,
            extend_info={
                "version": config.profile.version,
                **({"supportGrayModel": True} if config.profile.gray_model_sent else {}),
            },
            abilities=_own_abilities(config.profile),
            shows_grpc_report=config.profile.member_shows_grpc_report,
        )
        self.others = {address: self._new_member(address) for address in sorted(others)}

    # The list

    def all_members(self) -> tuple[Member, ...]:
        """This node included, in ascending order of the addresses."""
        return tuple(sorted([self.self_member, *self.others.values()], key=lambda member: member.address))

    def other_addresses(self) -> tuple[str, ...]:
        """In ascending order of the text, as the servers sort them."""
        return tuple(self.others)

    def connectable_addresses(self) -> tuple[str, ...]:
        """The other members to which there is a cluster client: all, in old releases those that reported themselves."""
        if not self._profile.connects_to_reported_only:
            return self.other_addresses()
        return tuple(address for address, member in self.others.items() if member.supports_remote_connection)

    def healthy_addresses(self) -> tuple[str, ...]:
        """Members that are UP or SUSPICIOUS, this node included, sorted: the list that a responsible member is chosen
        from (docs/protocol #owner-place)."""
        return tuple(member.address for member in self.all_members() if member.is_healthy)

    def has_member(self, address: str) -> bool:
        """Releases also find an address that is part of another one (D13)."""
        known = (self.self_member.address, *self.others)
        return address in known or (
            self._profile.member_found_by_substring and any(address in member for member in known)
        )

    def change_list(self, addresses: Iterable[str]) -> bool:
        """Make this the list; whether anything changed. A member that stays keeps its state.

        This node is always one: a server adds itself to a list that lacks it (docs/protocol #member-self).
        """
        listed = sorted(set(addresses))
        others = [address for address in listed if address != self.self_member.address]
        if len(others) == len(listed):
            log.warning("the member list %s lacks this node, %s", ", ".join(listed), self.self_member.address)
        if others == list(self.others):
            return False
        known = {} if self._profile.member_starts_down else self.others  # 2.0.0 forgets the states of all members
        self.others = {address: known.get(address) or self._newcomer(address) for address in others}
        self.log.list_changed(self.all_members())
        self._publish()
        return True

    def _new_member(self, address: str) -> Member:
        state = MemberState.DOWN if self._profile.member_starts_down else MemberState.UP
        return Member(address, state, shows_grpc_report=self._profile.member_shows_grpc_report)

    def _newcomer(self, address: str) -> Member:
        member = self._new_member(address)
        if self._profile.newcomer_starts_down:
            member.state, member.fail_access_count = MemberState.DOWN, self._profile.member_fail_access_count + 1
        return member

    # The states

    def is_up(self, address: str) -> bool:
        member = self.others.get(address)
        return member is not None and member.state is MemberState.UP

    def is_down(self, address: str) -> bool:
        """Several reports to it in a row have failed."""
        member = self.others.get(address)
        return member is not None and member.state is MemberState.DOWN

    def receive_report(self, node: Node) -> bool:
        """A member of the list that reports is UP; any other sender, False, is answered and otherwise ignored.

        Its count of failures stays, so that the next failing report to it may make it DOWN at once: seen on 2.2.4
        (docs/real-servers.md#a-played-member), against docs/protocol #member-report.
        """
        member = self.others.get(node.address or "")
        if member is None:
            self.log.reported_by_unlisted(node.address or "")
        else:
            changed = member.take_over(node)
            self._set_state(member, MemberState.UP, changed=changed)
        return member is not None

    def report_succeeded(self, member: Member, node: Node | None) -> None:
        """Our report was answered; `node` is what the member said of itself, None where the release says nothing."""
        changed = node is not None and member.take_over(node)
        member.fail_access_count = 0
        self._set_state(member, MemberState.UP, changed=changed)

    def report_failed(self, member: Member, *, refused: bool = False) -> None:
        """One failure more; DOWN after too many in a row, or at once when the connection was refused (over HTTP)."""
        member.fail_access_count += 1
        is_down = refused or member.fail_access_count > self._profile.member_fail_access_count
        self._set_state(member, MemberState.DOWN if is_down else MemberState.SUSPICIOUS)

    def is_of_old_version(self, member: Member) -> None:
        """It knows no reports: its state stays, but this node connects to it no more (2.0.x, 2.1.x)."""
        if member.supports_remote_connection:
            member.set_remote_ability("supportRemoteConnection", False)
            self._publish()

    def _set_state(self, member: Member, state: MemberState, *, changed: bool = False) -> None:
        changed = changed or member.state is not state
        member.state = state
        if changed and self.others.get(member.address) is member:
            self._publish()

    def _publish(self) -> None:
        self._notify_center.publish(MembersChanged(self.healthy_addresses()))
