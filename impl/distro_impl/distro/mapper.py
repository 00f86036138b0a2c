"""The owner of an ip:port client: a hash of its `ip:port` over the sorted list of healthy members.

Such a client has no connection that would name its owner, so each member computes it; while their lists differ they
disagree, and a client may have several owners or none (B15). Source: docs/protocol #owner-responsible,
#member-alive, #owner-place, class DistroMapper.
"""

from __future__ import annotations

from functools import lru_cache

from distro_impl.core import Core
from distro_impl.jackson import JAVA_INT_MAX
from distro_impl.java_hash import java_hash
from distro_impl.membership.member import MemberState
from distro_impl.membership.members import MembersChanged, ServerMemberManager
from distro_impl.naming.naming_log import NamingLog
from distro_impl.naming.switch_domain import SwitchDomain

MAX_CACHED_LENGTH = 64
"""Of what is kept: no address is longer, and strangers write what they like for one."""


class DistroMapper:
    """A node that is standalone owns every client."""

    def __init__(self, core: Core, members: ServerMemberManager, switches: SwitchDomain, log: NamingLog) -> None:
        self._profile, self._members, self._switches = core.profile, members, switches
        self._standalone = core.config.is_standalone
        self._log, self._healthy = log, members.healthy_addresses()
        self._own_address = members.self_member.address
        self._places = self._read_places()
        core.notify_center.subscribe(MembersChanged, self._on_members_changed)

    def responsible(self, tag: str) -> bool:
        """Whether this node owns the client `tag` (`ip:port`)."""
        owns_all = self._standalone or not self._switches.distro_enabled
        return owns_all or self._owner(tag) == self._own_address

    def is_followed_by(self, tag: str, member: str | None) -> bool:
        """Whether `member` stands behind this node in the ring of the client: the whole list, from its place on.

        A sender that does not say which member it is may be the first, unless that is this node.
        """
        listed = [each.address for each in self._members.all_members()]
        first = distro_hash(tag) % len(listed)
        ring = [*listed[first:], *listed[:first]]
        own = ring.index(self._own_address)
        return ring.index(member) > own if member in ring else member is None and own == 0

    def map_server(self, tag: str) -> str:
        """The address of the member that owns the client `tag`."""
        return self._owner(tag) if self._switches.distro_enabled else self._own_address

    def _owner(self, tag: str) -> str:
        return self._places[distro_hash(tag) % len(self._places)]

    def begin(self) -> None:
        """Write down whom the node begins with."""
        self._log.healthy_list_changed(self._healthy, self._healthy)

    def _on_members_changed(self, event: MembersChanged) -> None:
        old, self._healthy = self._healthy, event.healthy
        self._log.healthy_list_changed(old, event.healthy)
        self._places = self._read_places()

    def _read_places(self) -> tuple[str, ...]:
        """By configured place: one for each member of the list; that of one that is DOWN is taken by the next that is
        not."""
        if not self._profile.owner_by_configured_place:
            return self._members.healthy_addresses()
        listed = self._members.all_members()
        return tuple(
            next(one.address for one in (*listed[place:], *listed) if one.state is not MemberState.DOWN)
            for place in range(len(listed))
        )


def distro_hash(tag: str) -> int:
    """Never negative. `%` of Java keeps the sign, so the absolute value may as well be taken first."""
    return _short_hash(tag) if len(tag) <= MAX_CACHED_LENGTH else _hash(tag)


def _hash(tag: str) -> int:
    return abs(java_hash(tag)) % JAVA_INT_MAX


_short_hash = lru_cache(maxsize=1 << 16)(_hash)
