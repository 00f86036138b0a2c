"""The side of a node that looks at the other members: who they are, how they are asked, what is reported to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

from distro_impl.assembly.core import Core
from distro_impl.config import NodeConfig
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy, PeerLinks
from distro_impl.membership.lookup import POLL_MS, FileMemberLookup, MemberListError
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MemberReportTask
from distro_impl.remote.http_client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Membership:
    core: Core
    lookup: FileMemberLookup | None
    members: ServerMemberManager
    peers: ClusterRpcClientProxy
    http_client: HttpClient
    reports: MemberReportTask

    @classmethod
    def of(cls, core: Core, links: PeerLinks | None) -> Self:
        """Raises MemberListError when the file with the members cannot be used."""
        config = core.config
        lookup = FileMemberLookup(config.member_list_file, config.port) if config.member_list_file else None
        members = ServerMemberManager(config, core.notify_center, _other_members(config, lookup))
        peers = ClusterRpcClientProxy(config, core.clock, members, core.notify_center, core.transport, links)
        http_client = HttpClient(config.options.http_tls, core.transport.http_connector)
        return cls(
            core=core,
            lookup=lookup,
            members=members,
            peers=peers,
            http_client=http_client,
            reports=MemberReportTask(core.clock, core.profile, members, peers, http_client, config.options.identity),
        )

    def begin(self) -> None:
        """Start to report, and to watch the file."""
        now_ms = self.core.clock.now_ms()
        self.members.log.began(self.members.all_members(), standalone=self.core.config.is_standalone)
        if not self.core.config.is_standalone:
            self._begin_reports(now_ms)
        if self.lookup:
            self.core.clock.every(POLL_MS, self._reload, first_ms=now_ms + POLL_MS, name="member list")

    async def close(self) -> None:
        """Nothing is said to any member any more."""
        await asyncio.gather(self.peers.close(), self.http_client.close())

    def _begin_reports(self, now_ms: int) -> None:
        clock, profile = self.core.clock, self.core.profile
        period_ms, first_ms = profile.report_period_ms, now_ms + profile.report_first_ms
        clock.every(period_ms, self.reports.report_to_next, first_ms=first_ms, name="member report")
        if profile.reports_to_members_not_up:
            period_ms = profile.report_not_up_period_ms
            report, name = self.reports.report_to_those_not_up, "report to members that are not UP"
            clock.every(period_ms, report, first_ms=now_ms + period_ms, name=name)

    def _reload(self) -> None:
        listed = self.lookup.read_if_changed() if self.lookup else None
        if listed is not None:
            self.members.change_list(listed)


def _other_members(config: NodeConfig, lookup: FileMemberLookup | None) -> tuple[str, ...]:
    """Those of the configuration, or of the file. Raises MemberListError."""
    if lookup is None:
        return config.other_members
    listed = lookup.read()
    if config.address not in listed:
        raise MemberListError(f"the member list {config.member_list_file} lacks the node itself, {config.address}")
    return tuple(member for member in listed if member != config.address)
