"""The log `nacos-cluster`: lines about the other members, in the words of a real server.

The texts were read from running servers of 2.0.4, 2.2.4 and 2.3.2; some of them changed in 2.3.0.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from distro_impl.logs import NodeLog, line, logger
from distro_impl.membership.member import Member
from distro_impl.profiles import Profile

cluster = logger("nacos-cluster")


class ClusterLog(NodeLog):
    report_failed = line(
        cluster, logging.ERROR, "failed to report new info to target node : %s, error : caused: %s;", "peer"
    )
    reports_to_unhealthy = line(cluster, logging.WARNING, "report the metadata to the unhealthy node : %s", "peer")
    reported_by_unlisted = line(
        cluster, logging.WARNING, "address %s want to update Member, but not in member list!", "peer"
    )

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
            self.write(cluster, logging.INFO, "[serverlist] changed to : %s", partial(_members, members))
        else:
            self.write(cluster, logging.WARNING, "[serverlist] updated to : %s", partial(_members, members))


def _members(members: Iterable[Member]) -> str:
    return f"[{', '.join(map(_member, members))}]"


def _member(member: Member) -> str:
    shown = member.to_json()
    info = ", ".join(f"{name}={_java(value)}" for name, value in sorted(shown["extendInfo"].items()))
    return f"Member{{ip='{shown['ip']}', port={shown['port']}, state={shown['state']}, extendInfo={{{info}}}}}"


def _java(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
