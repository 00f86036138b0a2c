"""A node that the kit did not start: its release is asked for, and it is tested by what can be observed from outside.

The kit does not start or stop it. The kit is not on its member list, so the node sends no Distro requests to the kit,
and the kit sends it no CHANGE, DELETE or VERIFY, since its applications would see the result. The kit reads it as a
member reads (SNAPSHOT, QUERY), and the kit's clients use a separate namespace. With `allow_disruption` they use the
public namespace, and the kit sends the requests of a member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Self

from distro_conformance.release import numbers_of
from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.direct import get
from distro_conformance.targets.identity import NO_HEADERS
from distro_conformance.targets.nacos import listed_members
from distro_conformance.targets.target import UNLIMITED, Limits, OnProgress
from distro_conformance.verdict import TargetError, UsageError, without_twins
from distro_conformance.waiting import RealClock
from distro_protos.addresses import AddressError, entries, parse_address

OWN_NAMESPACE = "distrocheck"
_STATES = ("/nacos/v1/console/server/state", "/nacos/v3/admin/core/state")


class NoReleaseError(TargetError):
    """A server that runs does not say which release it is."""


class AttachedTarget:
    """`attach:HOST:PORT`, a main port. Raises UsageError; TargetError when it does not say which release it is."""

    kind = "attach"
    lease_ms = None

    def __init__(
        self,
        address: str,
        profile: str | None,
        *,
        allow_disruption: bool = False,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        self.spec = f"attach:{address}"
        named = addresses_in(address)
        if len(named) > 1:
            raise UsageError(f"the requirements are checked on one node, and {self.spec} names {len(named)}")
        (self.address,) = named
        self.member_headers = credentials.headers
        self.client_headers = credentials.client_headers(self.address)
        self.profile = profile or asked_profile(self.address, self.client_headers)
        self.clock = RealClock()
        self._allow_disruption = allow_disruption

    @property
    def limits(self) -> Limits:
        if self._allow_disruption:
            return Limits(UNLIMITED.namespace, counts_members=False, takes_syncs=True)
        return Limits(OWN_NAMESPACE, counts_members=False, takes_syncs=False)

    def fresh(self) -> Self:
        raise TargetError(f"{self.address} was not started by the kit: a second node like it cannot be started")

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        """Nothing to do: the node runs, or the first request to it fails."""

    async def change_members(self, other_members: Sequence[str]) -> None:  # noqa: ARG002 - of the contract
        raise TargetError(f"{self.address} was not started by the kit, so its member list is not changed")

    def shorten_lease(self) -> None:
        """Nothing to do: the lease of an attached node is not changed."""

    async def suspend(self, ms: int) -> None:  # noqa: ARG002 - of the contract
        raise TargetError(f"{self.address} was not started by the kit, so it is not stopped")

    async def stop(self) -> None:
        """Nothing to do: the node keeps running."""


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
