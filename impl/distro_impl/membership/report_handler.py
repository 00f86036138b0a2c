"""The other end of a report over gRPC: a member reports itself and gets this node's state (docs/protocol
#member-reported, #member-report)."""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.membership.member import ILLEGAL_NODE, addressed, is_legal
from distro_impl.membership.members import ServerMemberManager
from distro_impl.membership.report import MEMBER_REPORT
from distro_impl.profiles import Profile, ReportTransport
from distro_impl.remote.errors import INVALID_PARAM, SERVER_ERROR, NacosError, failure, success
from distro_impl.remote.handlers import Handler, Reply, Request


def report_handlers(members: ServerMemberManager, profile: Profile) -> Mapping[str, Handler]:
    """None in a release that reports over HTTP only."""

    def member_report(request: Request) -> Reply:
        """The answer must carry our own member, or the sender does not count it."""
        node = request.body.node
        if node is None:
            raise NacosError(SERVER_ERROR, "the report is about no node")
        node = addressed(node, profile)
        if not is_legal(node):
            return "MemberReportResponse", failure(SERVER_ERROR, INVALID_PARAM, ILLEGAL_NODE)
        members.receive_report(node)
        return "MemberReportResponse", success(node=members.self_member.to_json())

    return {} if profile.report_transport is ReportTransport.HTTP else {MEMBER_REPORT: member_report}
