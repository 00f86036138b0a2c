"""Whether a caller that speaks as a member of this cluster is one: the "inner API" of the releases.

The identity of the cluster is a header that all members share. Up to 2.5.1 no release asks members for it, 3.x does
once all members are 3.x. `strict` always asks: for the identity where one is configured, otherwise for the address of
a member, which is all there is then. An address can be compared only with an address, so without an identity a node of
`strict` does not start with a member that is listed by name. Source: docs/protocol #member-auth.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from distro_impl.membership.lookup import MemberListError
from distro_impl.membership.members import ServerMemberManager
from distro_impl.options import ServerIdentity
from distro_impl.profiles import InnerAuth, Profile
from distro_impl.security.tokens import AccessDeniedError
from distro_protos.addresses import IpAddress, ip_of, split_address, without_brackets

NO_IDENTITY = "this server has no identity to compare with: set nacos.core.auth.server.identity.key and .value"
WRONG_IDENTITY = "the request does not carry the identity of this cluster"
NO_MEMBER = "the request comes from {}, which is no member of this cluster; members elsewhere need an identity"
LISTED_BY_NAME = (
    "member {} is listed by name, and requests of members are known by their address alone: list its address, or set "
    "nacos.core.auth.server.identity.key and .value on all members"
)


class InnerApi:
    def __init__(self, profile: Profile, identity: ServerIdentity | None, members: ServerMemberManager) -> None:
        self._identity, self._members = identity, members
        """Raises MemberListError where a member could not be known by its address."""
        self._rule = profile.inner_auth
        if self._rule is InnerAuth.ALWAYS and identity is None:
            named = next((each for each in members.other_addresses() if ip_of(_host(each)) is None), None)
            if named is not None:
                raise MemberListError(LISTED_BY_NAME.format(named))
        self._all_were_3x = False
        self._listed: tuple[str, ...] = ()
        self._ips: frozenset[IpAddress] = frozenset()

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
            known = (ip_of(_host(address)) for address in (self._members.self_member.address, *listed))
            self._listed, self._ips = listed, frozenset(each for each in known if each is not None)
        return ip_of(ip) in self._ips


def _host(address: str) -> str:
    return without_brackets(split_address(address)[0])


def header(headers: Mapping[str, str], name: str) -> str | None:
    """Names of headers are the same in upper and lower case."""
    if name in headers:
        return headers[name]
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)
