"""One RPC client for each other member, following the member list (Nacos' ClusterRpcClientProxy).

A member that joins gets a client, one that leaves loses it: what is under way to it may still be answered, nothing new
is sent. Source: docs/protocol #member-client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distro_impl.core import Core
from distro_impl.membership.members import MembersChanged, ServerMemberManager
from distro_impl.remote.cluster_client import ClusterClient
from distro_impl.remote.peer_connection import PeerUnreachableError
from distro_impl.transport.transport import PeerLink
from distro_protos import Message

PeerLinks = Callable[[str], PeerLink]
"""Address of a peer -> what stands on the link to it: that of the kit can record, hold, drop and cut."""


class ClusterRpcClientProxy:
    def __init__(self, core: Core, members: ServerMemberManager, links: PeerLinks | None) -> None:
        self._core, self._members, self._links = core, members, links
        self._clients: dict[str, ClusterClient] = {}
        self._leaving: list[tuple[str, ClusterClient]] = []  # retired, and perhaps still waiting for an answer
        self._follow(members.connectable_addresses())
        core.notify_center.subscribe(MembersChanged, lambda _: self._follow(members.connectable_addresses()))

    async def request(self, member: str, type_name: str, body: Mapping[str, Any], timeout_ms: int) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError, TimeoutError or UnreadableBodyError."""
        client = self._clients.get(member)
        if client is None:
            raise PeerUnreachableError(f"{self._core.config.address} has no cluster client for {member}")
        return await client.request(type_name, body, timeout_ms)

    async def close(self) -> None:
        """Close every connection at once, with whatever is under way on it."""
        await asyncio.gather(*(client.close() for _, client in self._all()))

    def _all(self) -> list[tuple[str, ClusterClient]]:
        return [*self._clients.items(), *self._leaving]

    def _follow(self, listed: Sequence[str]) -> None:
        self._leaving = [(member, client) for member, client in self._leaving if not client.is_closed]
        for member in sorted(self._clients.keys() - set(listed)):
            client = self._clients.pop(member)
            client.retire()
            self._leaving.append((member, client))
        for member in listed:
            if member not in self._clients:
                link = self._links(member) if self._links else PeerLink()
                self._clients[member] = ClusterClient(self._core, member, link)
