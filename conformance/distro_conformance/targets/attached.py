"""Nodes that the kit did not start: the release is asked for, and they are tested by what can be observed from outside.

The kit does not start or stop it. The kit is not on its member list, so the node sends no Distro requests to the kit,
and the kit sends it no CHANGE, DELETE or VERIFY, since its applications would see the result. The kit reads it as a
member reads (SNAPSHOT, QUERY), and the kit's clients use a separate namespace. With `allow_disruption` they use the
public namespace, and the kit sends the requests of a member.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Self

from distro_conformance.release import numbers_of
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.direct import NO_HEADERS, get
from distro_conformance.targets.nacos import listed_members
from distro_conformance.targets.target import UNLIMITED, Limits, OnProgress, Place, Target
from distro_conformance.verdict import TargetError, UsageError, without_twins
from distro_protos.addresses import AddressError, entries, parse_address

OWN_NAMESPACE = "distrocheck"
_STATES = ("/nacos/v1/console/server/state", "/nacos/v3/admin/core/state")


class NoReleaseError(TargetError):
    """A server that runs does not say which release it is."""


class AttachedNode:
    """A node at an address that the kit neither starts nor stops."""

    pid = None
    logs = ()

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self.address, self._headers = address, headers

    async def start(self, *, until_loaded: bool = True) -> None:
        """Does nothing: the node runs, or the first request to it fails."""

    async def stop(self) -> None:
        raise TargetError(f"{self.address} was not started by the kit, so it is not stopped")

    async def close(self) -> None:
        """Does nothing: the node keeps running."""

    async def change_members(self, addresses: Sequence[str]) -> None:  # noqa: ARG002 - of the contract
        raise TargetError(f"{self.address} was not started by the kit, so its member list is not changed")

    async def members(self) -> Mapping[str, str]:
        listed = await asyncio.to_thread(listed_members, self.address, self._headers)
        return {str(member["address"]): str(member["state"]) for member in listed}


class AttachedTarget(Target):
    """`attach:HOST:PORT,…`, main ports. Raises UsageError; TargetError when the first does not say which release it
    is."""

    kind = "attach"

    def __init__(
        self,
        text: str,
        profile: str | None = None,
        *,
        allow_disruption: bool = False,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        self.addresses = addresses_in(text)
        super().__init__(f"attach:{text}", self.addresses[0])
        self.credentials, self.member_headers = credentials, credentials.headers
        self.client_headers = credentials.client_headers(self.address)
        self.profile = profile or asked_profile(self.address, self.client_headers)
        namespace = UNLIMITED.namespace if allow_disruption else OWN_NAMESPACE
        self.limits = Limits(namespace, counts_members=False, takes_syncs=allow_disruption)

    def fresh(self) -> Self:
        raise TargetError(f"{self.address} was not started by the kit: a second node like it cannot be started")

    async def node(self, place: Place, on_progress: OnProgress) -> AttachedNode:  # noqa: ARG002 - of the contract
        return AttachedNode(self.address, self.client_headers)

    async def suspend(self, ms: int) -> None:  # noqa: ARG002 - of the contract
        raise TargetError(f"{self.address} was not started by the kit, so it is not suspended")


def addresses_in(text: str) -> tuple[str, ...]:
    """Main ports, HOST:PORT with commas between them, in order. Raises UsageError."""
    try:
        addresses = tuple(sorted(str(parse_address(address)) for address in entries(text)))
    except AddressError as error:
        raise UsageError(f"attach: takes HOST:PORT,HOST:PORT,... (main ports), not '{text}': {error}") from error
    if not addresses:
        raise UsageError(f"attach: takes HOST:PORT,HOST:PORT,... (main ports), not '{text}'")
    return tuple(without_twins(addresses, f"attach:{text}"))


def asked_profile(address: str, headers: Mapping[str, str] = NO_HEADERS) -> str:
    """The profile of the release that a running server reports. Raises NoReleaseError."""
    own = [member.get("extendInfo") for member in listed_members(address, headers) if member["address"] == address]
    versions = [str(info.get("version", "")) for info in own if isinstance(info, dict)]
    for path in () if any(versions) else _STATES:
        versions += re.findall(r'"version"\s*:\s*"([\d.]+)', get(f"http://{address}{path}", headers=headers) or "")
    if not any(versions):
        raise NoReleaseError(
            f"{address} does not say which release it is; is a server there? From 3.0 on it requires the identity "
            "(--identity) or a login (--username) for that; or name the release by --profile"
        )
    return f"nacos-{numbers_of(next(filter(None, versions)))}"
