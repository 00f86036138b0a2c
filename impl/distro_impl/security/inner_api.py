"""Whether somebody who speaks as a member of this cluster is one: the "inner API" of the releases.

The identity of the cluster is a header that all members share. Up to 2.5.1 no release asks members for it, 3.x does
once all members are 3.x. `strict` always asks: for the identity where one is configured, otherwise for the address of
a member, which is all there is then. An address can be compared only with an address: while a member is listed by
name, everybody passes. Source: docs/protocol #member-auth.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from distro_impl.membership.members import ServerMemberManager
from distro_impl.options import ServerIdentity
from distro_impl.profiles import InnerAuth, Profile
from distro_impl.security.tokens import AccessDeniedError

NO_IDENTITY = "this server has no identity to compare with: set nacos.core.auth.server.identity.key and .value"
WRONG_IDENTITY = "the request does not carry the identity of this cluster"
NO_MEMBER = "the request comes from {}, which is no member of this cluster; members elsewhere need an identity"

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class InnerApi:
    def __init__(self, profile: Profile, identity: ServerIdentity | None, members: ServerMemberManager) -> None:
        self._identity, self._members = identity, members
        self._rule = profile.inner_auth
        self._all_were_3x = False
        self._listed: tuple[str, ...] = ()
        self._ips: frozenset[IpAddress | None] = frozenset()

    @property
    def is_checked(self) -> bool:
        """In 3.x once the whole cluster is 3.x, and from then on for good."""
        if self._rule is InnerAuth.ALL_MEMBERS_3X:
            self._all_were_3x = self._all_were_3x or self._all_are_3x()
            return self._all_were_3x
        return self._rule is InnerAuth.ALWAYS

    def check(self, headers: Mapping[str, str], ip: str) -> None:
        """`ip` is where the request comes from. Raises AccessDeniedError."""
        if not self.is_checked:
            return
        if self._identity is not None:
            if not self.is_member(headers):
                raise AccessDeniedError(WRONG_IDENTITY)
        elif self._rule is InnerAuth.ALL_MEMBERS_3X:
            raise AccessDeniedError(NO_IDENTITY)
        elif not self._is_address_of_member(ip):
            raise AccessDeniedError(NO_MEMBER.format(ip))

    def is_member(self, headers: Mapping[str, str]) -> bool:
        """Whether the headers carry the identity, whether or not it is asked for."""
        if self._identity is None:
            return False
        shown = header(headers, self._identity.key) or ""
        return hmac.compare_digest(shown.encode(errors="replace"), self._identity.value.encode())

    def _all_are_3x(self) -> bool:
        members = self._members.all_members()
        return all(str(member.extend_info.get("version", "")).startswith("3.") for member in members)

    def _is_address_of_member(self, ip: str) -> bool:
        listed = self._members.other_addresses()
        if listed != self._listed or not self._ips:
            hosts = (address.rpartition(":")[0] for address in (self._members.self_member.address, *listed))
            self._listed, self._ips = listed, frozenset(map(_ip, hosts))
        return None in self._ips or _ip(ip) in self._ips


@lru_cache(maxsize=1024)
def _ip(host: str) -> IpAddress | None:
    """None for a name. An IPv4 address may come written as one of IPv6."""
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def header(headers: Mapping[str, str], name: str) -> str | None:
    """Names of headers are the same in upper and lower case."""
    if name in headers:
        return headers[name]
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)
