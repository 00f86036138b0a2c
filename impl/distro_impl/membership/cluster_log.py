"""The log `nacos-cluster`: lines about the other members, in the words of a real server.

The texts were read from running servers of 2.0.4, 2.2.4 and 2.3.2; some of them changed in 2.3.0.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from distro_impl.logs import NodeLog, logger
from distro_impl.membership.member import Member
from distro_impl.profiles import Profile

cluster = logger("nacos-cluster")


class ClusterLog(NodeLog):
    def __init__(self, node: str, profile: Profile) -> None:
        super().__init__(node)
        self._says_changed = profile.reports_to_members_not_up  # both since 2.3.0

    def began(self, members: Iterable[Member], *, standalone: bool) -> None:
        lookup = "StandaloneMemberLookup" if standalone else "FileConfigMemberLookup"
        self.write(cluster, logging.INFO, "Current addressing mode selection : %s", lookup)
        if not standalone:
            self.list_changed(members)
        self.write(cluster, logging.INFO, "This node is ready to provide external services")

    def list_changed(self, members: Iterable[Member]) -> None:
        if self._says_changed:
            self.write(cluster, logging.INFO, "[serverlist] changed to : %s", _Members(members))
        else:
            self.write(cluster, logging.WARNING, "[serverlist] updated to : %s", _Members(members))

    def report_failed(self, member: str, reason: str) -> None:
        text = "failed to report new info to target node : %s, error : caused: %s;"
        self.write(cluster, logging.ERROR, text, member, reason, peer=member)

    def reports_to_unhealthy(self, member: str) -> None:
        self.write(cluster, logging.WARNING, "report the metadata to the unhealthy node : %s", member, peer=member)

    def reported_by_unlisted(self, address: str) -> None:
        text = "address %s want to update Member, but not in member list!"
        self.write(cluster, logging.WARNING, text, address, peer=address)


class _Members:
    """The text is made only if the line is written."""

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[Member]) -> None:
        self._members = members

    def __str__(self) -> str:
        return f"[{', '.join(map(_member, self._members))}]"


def _member(member: Member) -> str:
    shown = member.to_json()
    info = ", ".join(f"{name}={_java(value)}" for name, value in sorted(shown["extendInfo"].items()))
    return f"Member{{ip='{shown['ip']}', port={shown['port']}, state={shown['state']}, extendInfo={{{info}}}}}"


def _java(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
