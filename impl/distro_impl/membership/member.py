"""An entry of the member list: the state of a member, and the data that it reports about itself.

It is not in `members.py` with the list, since the log of the cluster and the reports need only the entry.
Source: docs/protocol #member-list and #member-report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from distro_impl.jackson import FieldError, convert
from distro_impl.profiles import Profile
from distro_impl.remote.payloads import Abilities, Node
from distro_protos import Json
from distro_protos.addresses import parse_address

BASIC_KEYS = ("site", "adWeight", "raftPort", "weight", "version", "readyToUpgrade")
"""The keys of `extendInfo` of which a change counts as a change of the member."""


ILLEGAL_NODE = "Node information is illegal"


def read_member(node: object) -> Node | None:
    """The report of a member about itself; None if `node` is no Member object."""
    try:
        found: Node = convert(Node, node)
    except FieldError:
        return None
    return found


class MemberState(StrEnum):
    UP = "UP"
    SUSPICIOUS = "SUSPICIOUS"
    DOWN = "DOWN"


@dataclass(slots=True)
class Member:
    """An entry of the list. The data that the member sends about itself in reports and answers is stored here."""

    address: str
    state: MemberState = MemberState.UP
    fail_access_count: int = 0
    extend_info: Mapping[str, Any] = field(default_factory=dict)
    abilities: Mapping[str, Any] = field(default_factory=dict)
    grpc_report_enabled: bool = True
    shows_grpc_report: bool = True
    """Whether the release has that field in its Member objects."""
    _reported: Node | None = None
    """The last report about itself; None if this node has changed the entry since."""

    @property
    def is_healthy(self) -> bool:
        return self.state in (MemberState.UP, MemberState.SUSPICIOUS)

    @property
    def supports_remote_connection(self) -> bool:
        """Known only after the first report of the member."""
        return bool(self._remote_ability("supportRemoteConnection", default=False))

    @property
    def supports_grpc_report(self) -> bool:
        return bool(self._remote_ability("grpcReportEnabled", default=True))

    def to_json(self) -> Json:
        """The Member object in JSON. Real servers refuse it without `address` and `extendInfo`."""
        ip, port = parse_address(self.address)
        return {
            "ip": ip,
            "port": port,
            "state": self.state.value,
            "address": self.address,
            "extendInfo": {"raftPort": str(port - 1000), "readyToUpgrade": True, **self.extend_info},
            "abilities": self.abilities,
            **({"grpcReportEnabled": self.grpc_report_enabled} if self.shows_grpc_report else {}),
            "failAccessCnt": self.fail_access_count,
        }

    def take_over(self, node: Node) -> bool:
        """Store the report of the member. Returns whether it counts as a change of the member.

        Fields that the report lacks mean what they mean to a real server: no abilities, and no reports over gRPC.
        """
        if node == self._reported:
            return False
        extend_info = dict(node.extend_info or {})
        abilities = _abilities(node.abilities)
        grpc_report_enabled = node.grpc_report_enabled
        changed = (
            any(self.extend_info.get(key) != extend_info.get(key) for key in BASIC_KEYS)
            or self.abilities != abilities
            or self.grpc_report_enabled != grpc_report_enabled
        )
        self.extend_info, self.abilities, self.grpc_report_enabled = extend_info, abilities, grpc_report_enabled
        self._reported = node
        return changed

    def set_grpc_report(self, *, enabled: bool) -> None:
        """Set whether the member gets reports over gRPC. No event is published."""
        self.set_remote_ability("grpcReportEnabled", enabled)
        self.grpc_report_enabled = enabled

    def set_remote_ability(self, name: str, value: bool) -> None:
        """Set an ability that this node has observed, independently of the reports of the member."""
        self._reported = None
        remote = {**(self.abilities.get("remoteAbility") or {}), name: value}
        self.abilities = {**self.abilities, "remoteAbility": remote}

    def _remote_ability(self, name: str, *, default: bool) -> Any:
        return (self.abilities.get("remoteAbility") or {}).get(name, default)


def addressed(node: Node, profile: Profile) -> Node:
    """The node of a report, with an address if the release derives one (docs/protocol #member-reported)."""
    derived = profile.address_from_ip_and_port and node.address is None and node.ip is not None
    return replace(node, address=f"{node.ip}:{node.port}") if derived else node


def is_legal(node: Node) -> bool:
    """Whether a report names its sender (`Member.check` in Nacos)."""
    return bool((node.ip or "").strip() and (node.address or "").strip()) and node.port >= 0


def _abilities(reported: Abilities | None) -> Json:
    """The abilities without the fields that were not reported."""
    if reported is None:
        return {}
    abilities: Json = to_builtins(reported)
    return {name: ability for name, ability in abilities.items() if ability is not None}
