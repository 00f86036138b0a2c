"""What a request handler is, and the handlers that belong to neither naming nor Distro."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from distro_impl.membership.members import ILLEGAL_NODE, ServerMemberManager, is_legal
from distro_impl.membership.report import MEMBER_REPORT
from distro_impl.profiles import Profile
from distro_impl.profiles.profile import ReportTransport
from distro_impl.remote.errors import INVALID_PARAM, SERVER_ERROR, NacosError, failure, success
from distro_protos import Json


@dataclass(frozen=True, slots=True)
class Request:
    """A unary request of a registered connection."""

    type: str
    body: Mapping[str, Any]
    connection_id: str
    headers: Mapping[str, str] = field(default_factory=dict)
    client_ip: str = ""
    """Where it comes from, as the transport sees it."""


IRREGULAR_RESPONSES = {
    "PersistentInstanceRequest": "InstanceResponse",
    "ServiceQueryRequest": "QueryServiceResponse",
}


def response_type(request_type: str) -> str:
    """The class of the answer, named after that of the request but for a few."""
    return IRREGULAR_RESPONSES.get(request_type) or request_type.removesuffix("Request") + "Response"


Reply = tuple[str, Json]
"""Type and body."""

Handler = Callable[[Request], Reply]
"""Runs without interruption. What it raises is answered with `ErrorResponse`."""


def core_handlers(members: ServerMemberManager, profile: Profile) -> Mapping[str, Handler]:
    """Request type -> handler."""

    def health_check(_: Request) -> Reply:
        return "HealthCheckResponse", success()

    def member_report(request: Request) -> Reply:
        """The answer must carry our own member, or the sender does not count it (section 4.3)."""
        node = request.body.get("node")
        if node is None:
            raise NacosError(SERVER_ERROR, "the report is about no node")
        if not is_legal(node):
            return "MemberReportResponse", failure(SERVER_ERROR, INVALID_PARAM, ILLEGAL_NODE)
        members.receive_report(node)
        return "MemberReportResponse", success(node=members.self_member.to_json())

    def config_change(_: Request) -> Reply:
        """Members of mixed clusters tell of changed configurations, of which this node keeps none (section 2.6)."""
        return "ConfigChangeClusterSyncResponse", success()

    handlers: dict[str, Handler] = {
        "HealthCheckRequest": health_check,
        "ConfigChangeClusterSyncRequest": config_change,
    }
    if profile.report_transport is not ReportTransport.HTTP:
        handlers[MEMBER_REPORT] = member_report
    return handlers
