"""The reports that keep a member UP: one every two seconds, to one other member in turn.

Source: wire-protocol.md section 4.3, real-nacos.md section 3. The releases up to 2.2.0 report over HTTP, which this
node does not speak yet; it reports over gRPC under every profile.
"""

from __future__ import annotations

from distro_impl.membership.members import Member, ServerMemberManager
from distro_impl.profiles import Profile
from distro_impl.remote.cluster_client import PeerUnreachableError
from distro_impl.remote.cluster_clients import ClusterRpcClientProxy
from distro_protos import UnreadableBodyError

MEMBER_REPORT = "MemberReportRequest"


class MemberReportTask:
    def __init__(self, profile: Profile, members: ServerMemberManager, clients: ClusterRpcClientProxy) -> None:
        self._profile, self._members, self._clients = profile, members, clients
        self._turn = 0

    async def report_to_next(self) -> None:
        """Report to one member, in turn over the sorted list of now."""
        targets = tuple(self._members.others.values())
        if targets:
            member = targets[self._turn % len(targets)]
            self._turn += 1
            await self._report_to(member)

    async def _report_to(self, member: Member) -> None:
        body = {"node": self._members.self_member.to_json(), "module": "cluster"}
        try:
            reply = await self._clients.request(member.address, MEMBER_REPORT, body, self._profile.report_timeout_ms)
        except PeerUnreachableError:
            self._members.report_failed(member)
        except (TimeoutError, UnreadableBodyError):
            pass  # no change of state: D15
        else:
            node = reply.body.get("node")
            if reply.type == "ErrorResponse" or (reply.succeeded and not isinstance(node, dict)):
                return  # no change of state either
            if reply.succeeded:
                self._members.report_succeeded(member, node)
            else:
                self._members.report_failed(member)
