"""The side of a node that looks at the other members: who they are, how they are asked, what is reported to them."""

from __future__ import annotations

import asyncio

from distro_impl.config import NodeConfig
from distro_impl.core import Core
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy, PeerLinks
from distro_impl.membership.lookup import POLL_MS, FileMemberLookup, MemberListError
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MemberReportTask
from distro_impl.remote.http_client import HttpClient


class Membership:
    def __init__(self, core: Core, links: PeerLinks | None) -> None:
        """Raises MemberListError when the file with the members cannot be used."""
        config = core.config
        self.core = core
        self._lookup = FileMemberLookup(config.member_list_file, config.port) if config.member_list_file else None
        self.members = ServerMemberManager(core, _other_members(config, self._lookup))
        self.peers = ClusterRpcClientProxy(core, self.members, links)
        self.http_client = HttpClient(config.options.http_tls, core.transport.http_connector)
        self.reports = MemberReportTask(core, self.members, self.peers, self.http_client)

    def begin(self) -> None:
        """Start to report, and to watch the file."""
        clock, config, profile = self.core.clock, self.core.config, self.core.profile
        now_ms = clock.now_ms()
        self.members.log.began(self.members.all_members(), standalone=config.is_standalone)
        if not config.is_standalone:
            first_ms, period_ms = now_ms + profile.report_first_ms, profile.report_period_ms
            clock.every(period_ms, self.reports.report_to_next, first_ms=first_ms, name="member report")
            if profile.reports_to_members_not_up:
                period_ms, report = profile.report_not_up_period_ms, self.reports.report_to_those_not_up
                clock.every(period_ms, report, first_ms=now_ms + period_ms, name="report to members that are not UP")
        if self._lookup:
            clock.every(POLL_MS, self._reload, first_ms=now_ms + POLL_MS, name="member list")

    async def close(self) -> None:
        """Nothing is said to any member any more."""
        await asyncio.gather(self.peers.close(), self.http_client.close())

    def _reload(self) -> None:
        listed = self._lookup.read_if_changed() if self._lookup else None
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
