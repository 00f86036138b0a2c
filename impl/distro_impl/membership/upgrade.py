"""2.0.x beside 1.x: naming over gRPC only once every member has shown that it is a 2.x server.

A member shows it with its report, so a cluster of 2.0.x refuses the SDKs for the first seconds, and again when a member
joins that has not reported yet. Source: docs/protocol #member-report, point 5 (UpgradeJudgement, GrpcRequestFilter);
the answer is that of a running 2.0.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from distro_impl.membership.member import Member
from distro_impl.membership.members import ServerMemberManager
from distro_impl.profiles import Profile
from distro_impl.remote.errors import SERVER_ERROR, failure
from distro_impl.remote.handlers import Handler, Reply, Request, response_type

RUNNING_WITH_1X = (
    "Nacos cluster is running with 1.X mode, can't accept gRPC request temporarily. Please check the server status or "
    "close Double write to force open 2.0 mode. Detail https://nacos.io/en-us/docs/2.0.0-upgrading.html."
)


def guarded(profile: Profile, members: ServerMemberManager, handlers: Mapping[str, Handler]) -> Mapping[str, Handler]:
    """The handlers, behind the question whether all members are upgraded where the release asks it."""

    def guard(type_name: str, handler: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            if all(map(is_upgraded, members.others.values())):
                return handler(request)
            return response_type(type_name), failure(SERVER_ERROR, SERVER_ERROR, RUNNING_WITH_1X)

        return handle

    if not profile.waits_for_upgraded_members:
        return handlers
    return {type_name: guard(type_name, handler) for type_name, handler in handlers.items()}


def is_upgraded(member: Member) -> bool:
    """`version` is 2 or above, and `readyToUpgrade` the JSON boolean."""
    major = str(member.extend_info.get("version", "")).partition(".")[0]
    return major.isdigit() and int(major) >= 2 and member.extend_info.get("readyToUpgrade") is True
