"""The configuration of a node, and the addresses of its servers that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from distro_impl.options import DEFAULT_OPTIONS, NodeOptions
from distro_impl.profiles import PROFILES, Profile
from distro_protos.addresses import bracketed, parse_address

SDK_PORT_OFFSET = 1000
CLUSTER_PORT_OFFSET = 1001


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node. `port` is the main port P: identity in every message, and the port of the HTTP server.

    `members` are `ip:P` texts, the node itself included. Instead a file may hold them, in the syntax of `cluster.conf`;
    it is watched. With neither the node is alone (standalone). Timings and switches are those of the profile;
    `dataclasses.replace(profile, sync_delay_ms=…)` overrides one.
    """

    port: int
    ip: str = "127.0.0.1"
    """An IPv6 address is given brackets, as it stands in every message."""
    members: tuple[str, ...] = ()
    member_list_file: Path | None = None
    profile: Profile = PROFILES["strict"]
    options: NodeOptions = DEFAULT_OPTIONS
    serves_http: bool = True
    """Off for a harness that speaks gRPC alone and starts nodes by the hundred: the routes are half of a start."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ip", bracketed(self.ip))
        if self.members and self.member_list_file is not None:
            raise ValueError(f"the members are given and so is a file with them, {self.member_list_file}; give one")
        if self.members and self.address not in self.members:
            raise ValueError(f"the member list {', '.join(self.members)} lacks the node itself, {self.address}")

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"

    @property
    def sdk_target(self) -> str:
        """Where SDKs connect."""
        return f"{self.ip}:{self.port + SDK_PORT_OFFSET}"

    @property
    def cluster_target(self) -> str:
        """Where the other members connect."""
        return cluster_target(self.address)

    @property
    def is_standalone(self) -> bool:
        """No cluster at all: no sync, no verify, no reports, and nothing to load (docs/protocol #sync-announce)."""
        return not self.members and self.member_list_file is None

    @property
    def other_members(self) -> tuple[str, ...]:
        """In ascending order of the text, as the servers sort them."""
        return tuple(sorted(member for member in self.members if member != self.address))


def cluster_target(member: str) -> str:
    """`ip:P` of a member to the address of its cluster server."""
    return str(parse_address(member).moved(CLUSTER_PORT_OFFSET))
