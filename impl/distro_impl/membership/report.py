"""The reports that keep a member UP: one every two seconds, to one other member in turn.

They go over HTTP in the releases up to 2.2.0 and over gRPC afterwards, unless the other member cannot take them there.
What comes of a report decides the state of that member (members.py). A member that reports itself over gRPC gets this
node's state. Source: docs/protocol #member-report-not-up, #member-report-end, #member-report, #member-reported,
docs/real-servers.md#a-played-member.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping

import aiohttp

from distro_impl.core import Core
from distro_impl.membership.cluster_clients import ClusterRpcClientProxy
from distro_impl.membership.member import ILLEGAL_NODE, Member, MemberState, addressed, is_legal, read_member
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile, ReportTransport
from distro_impl.remote.errors import INVALID_PARAM, NO_HANDLER, SERVER_ERROR, NacosError, failure, success
from distro_impl.remote.handlers import Handler, Reply, Request
from distro_impl.remote.http_client import HttpAnswer, HttpClient
from distro_impl.remote.payloads import Node
from distro_impl.remote.peer_connection import CallFailedError, PeerUnreachableError
from distro_protos import UnreadableBodyError, read_json

MEMBER_REPORT = "MemberReportRequest"
REPORT_PATH = "/nacos/v1/core/cluster/report"
OLD_VERSION_CODES = (404, 501)
"""How a member that does not know the path answers, or says that it does not."""


class MemberReportTask:
    def __init__(
        self, core: Core, members: ServerMemberManager, clients: ClusterRpcClientProxy, http: HttpClient
    ) -> None:
        self._clock, self._profile, self._identity = core.clock, core.profile, core.config.options.identity
        self._members, self._clients, self._http = members, clients, http
        self._turn = 0

    async def report_to_next(self) -> None:
        """Report to one member, in turn over the sorted list of now."""
        targets = tuple(self._members.others.values())
        if targets:
            member = targets[self._turn % len(targets)]
            self._turn += 1
            await self._report_to(member)

    def report_to_those_not_up(self) -> None:
        """From 2.3.0 on, in a period of its own. A member that does not answer delays no other one."""
        for member in tuple(self._members.others.values()):
            if member.state is not MemberState.UP:
                self._members.log.reports_to_unhealthy(member.address)
                self._clock.spawn(self._report_to(member), f"report to {member.address}, not UP")

    async def _report_to(self, member: Member) -> None:
        if self._profile.report_transport.is_grpc_for(
            ability=member.supports_grpc_report, member=member.grpc_report_enabled
        ):
            await self._report_over_grpc(member)
        else:
            await self._report_over_http(member)

    async def _report_over_grpc(self, member: Member) -> None:
        body = {"node": self._members.self_member.to_json(), "module": "cluster"}
        try:
            reply = await self._clients.request(member.address, MEMBER_REPORT, body, self._profile.report_timeout_ms)
        except (CallFailedError, TimeoutError, UnreadableBodyError):
            pass  # no change of state: D15
        except PeerUnreachableError:
            self._members.report_failed(member)
        else:
            node = read_member(reply.body.get("node"))
            if reply.type == "ErrorResponse" or (reply.succeeded and node is None):
                if reply.body.get("errorCode") == NO_HANDLER:
                    member.set_grpc_report(enabled=False)
                return  # no change of state either
            if reply.succeeded:
                self._members.report_succeeded(member, node)
            else:
                self._members.report_failed(member)

    async def _report_over_http(self, member: Member) -> None:
        headers = {"Nacos-Server": self._profile.version, "Content-Type": "application/json"}
        if self._identity is not None:
            headers[self._identity.key] = self._identity.value
        body = json.dumps(self._members.self_member.to_json()).encode()
        url = self._http.url(member.address, REPORT_PATH)
        try:
            answer = await self._clock.wait_for(
                self._http.request("POST", url, headers=headers, body=body), self._profile.report_timeout_ms
            )
        except (TimeoutError, aiohttp.ClientError) as error:
            reason = "Connection refused" if _is_refusal(error) else str(error) or "timeout"
            self._members.log.report_failed(member.address, reason)
            self._http_failed(member, refused=_is_refusal(error))
            return
        code, node = _read_answer(answer)
        if code == 200:
            self._members.report_succeeded(member, node)
        elif code in OLD_VERSION_CODES and self._profile.report_transport is ReportTransport.HTTP:
            self._members.is_of_old_version(member)
        else:
            self._http_failed(member, refused=False)

    def _http_failed(self, member: Member, *, refused: bool) -> None:
        if self._profile.report_transport is ReportTransport.GRPC_UNLESS_BOTH_REFUSE:
            member.set_grpc_report(enabled=True)
        self._members.report_failed(member, refused=refused)


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


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED


def _read_answer(answer: HttpAnswer) -> tuple[int, Node | None]:
    """The code, and what the member says of itself, which up to 2.1.2 is nothing: `data` is then just "true"."""
    if answer.status != 200:
        return answer.status, None
    try:
        result = read_json(answer.body)
        code = int(result["code"])
        node = read_json((result.get("data") or "null").encode())
    except (ValueError, KeyError, TypeError, AttributeError):
        return 500, None
    return code, read_member(node)
