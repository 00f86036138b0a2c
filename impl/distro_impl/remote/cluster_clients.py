"""One RPC client for each other member, following the member list (Nacos' ClusterRpcClientProxy).

A member that joins gets a client, one that leaves loses it: what is under way to it may still be answered, nothing new
is sent. Source: wire-protocol.md section 4.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc

from distro_impl.clocks.clock import Clock
from distro_impl.config import NodeConfig
from distro_impl.membership.members import ServerMemberManager
from distro_impl.notify_center import MembersChanged, NotifyCenter
from distro_impl.remote.cluster_client import ClusterClient, PeerUnreachableError
from distro_protos import Message

Interceptors = Callable[[str], Sequence[grpc.aio.ClientInterceptor]]
"""Address of a peer -> what is put on the cluster channel to it: the links of the kit (record, hold, drop, cut)."""


class ClusterRpcClientProxy:
    def __init__(
        self,
        own: NodeConfig,
        clock: Clock,
        members: ServerMemberManager,
        notify_center: NotifyCenter,
        interceptors: Interceptors | None = None,
    ) -> None:
        self._own, self._clock, self._members = own, clock, members
        self._interceptors = interceptors
        self._clients: dict[str, ClusterClient] = {}
        self._leaving: list[tuple[str, ClusterClient]] = []  # retired, and perhaps still waiting for an answer
        self._follow(members.connectable_addresses())
        notify_center.subscribe(MembersChanged, lambda _: self._follow(members.connectable_addresses()))

    async def request(self, member: str, type_name: str, body: Mapping[str, Any], timeout_ms: int) -> Message:
        """The reply, whatever it says. Raises PeerUnreachableError, TimeoutError or UnreadableBodyError."""
        client = self._clients.get(member)
        if client is None:
            raise PeerUnreachableError(f"{self._own.address} has no cluster client for {member}")
        return await client.request(type_name, body, timeout_ms)

    async def wait_lost(self, member: str) -> None:
        """Until the connections of this moment to that member, if there are any, are known to be gone."""
        await asyncio.gather(*(client.wait_lost() for at, client in self._all() if at == member))

    async def close(self) -> None:
        """Close every connection at once, with whatever is under way on it."""
        await asyncio.gather(*(client.close() for _, client in self._all()))

    def _all(self) -> list[tuple[str, ClusterClient]]:
        return [*self._clients.items(), *self._leaving]

    def _follow(self, listed: Sequence[str]) -> None:
        self._leaving = [(member, client) for member, client in self._leaving if not client.is_closed]
        for member in self._clients.keys() - set(listed):
            client = self._clients.pop(member)
            client.retire()
            self._leaving.append((member, client))
        for member in listed:
            if member not in self._clients:
                interceptors = self._interceptors(member) if self._interceptors else ()
                self._clients[member] = ClusterClient(self._own, member, self._clock, interceptors)
