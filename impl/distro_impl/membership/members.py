"""The member list and the reports that keep a member UP.

The list is that of the configuration and does not change while the node runs. A report goes to one other member at a
time, in turn; what comes of it, and any report that comes in, decides the state of that member here.
Source: wire-protocol.md section 4.3, real-nacos.md section 3. The releases up to 2.2.0 report over HTTP, which this
node does not speak yet; it reports over gRPC under every profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from distro_impl.config import NodeConfig
from distro_impl.remote.cluster_client import ClusterClient, PeerUnreachableError
from distro_protos import Json, UnreadableBodyError

MEMBER_REPORT = "MemberReportRequest"


class MemberState(StrEnum):
    UP = "UP"
    SUSPICIOUS = "SUSPICIOUS"
    DOWN = "DOWN"


@dataclass(slots=True)
class Member:
    """One entry of the list. A member freshly read from the list is UP."""

    address: str
    state: MemberState = MemberState.UP
    fail_access_count: int = 0
    extend_info: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> Json:
        """The Member object. `address` and `extendInfo` must be there, or real servers refuse it."""
        ip, _, port = self.address.rpartition(":")
        return {
            "ip": ip,
            "port": int(port),
            "state": self.state.value,
            "address": self.address,
            "extendInfo": {"raftPort": str(int(port) - 1000), "readyToUpgrade": True, **self.extend_info},
            "abilities": {
                "remoteAbility": {"supportRemoteConnection": True, "grpcReportEnabled": True},
                "configAbility": {"supportRemoteMetrics": False},
                "namingAbility": {"supportJraft": True},
            },
            "grpcReportEnabled": True,
            "failAccessCnt": self.fail_access_count,
        }


class ServerMemberManager:
    """Who the members are and in which state."""

    def __init__(self, config: NodeConfig, clients: Mapping[str, ClusterClient]) -> None:
        self._profile = config.profile
        self._clients = clients
        self._next_report = 0
        self.self_member = Member(
            config.address, extend_info={"version": config.profile.version, "supportGrayModel": True}
        )
        self.others = {address: Member(address) for address in config.other_members}

    def is_up(self, address: str) -> bool:
        return self.others[address].state is MemberState.UP

    def receive_report(self, node: Mapping[str, Any]) -> None:
        """A member of the list that reports is UP; anybody else is answered and otherwise ignored.

        Its count of failures stays, so that the next failing report of ours may find it DOWN at once: seen on 2.2.4
        (real-nacos.md section 3), against wire-protocol.md section 4.3.
        """
        member = self.others.get(node["address"])
        if member is not None:
            member.extend_info = dict(node.get("extendInfo") or {})
            member.state = MemberState.UP

    async def report_to_next(self) -> None:
        """Report to one member, in turn over the sorted list."""
        targets = tuple(self.others.values())
        member = targets[self._next_report % len(targets)]
        self._next_report += 1
        body = {"node": self.self_member.to_json(), "module": "cluster"}
        try:
            reply = await self._clients[member.address].request(MEMBER_REPORT, body, self._profile.report_timeout_ms)
        except PeerUnreachableError:
            self._failed(member)
        except (TimeoutError, UnreadableBodyError):
            pass  # no change of state: D15
        else:
            if reply.type == "ErrorResponse" or (reply.succeeded and "node" not in reply.body):
                return  # no change of state either
            if reply.succeeded:
                self._succeeded(member)
            else:
                self._failed(member)

    def _succeeded(self, member: Member) -> None:
        member.state = MemberState.UP
        member.fail_access_count = 0

    def _failed(self, member: Member) -> None:
        member.fail_access_count += 1
        is_down = member.fail_access_count > self._profile.member_fail_access_count
        member.state = MemberState.DOWN if is_down else MemberState.SUSPICIOUS
