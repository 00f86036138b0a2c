"""Several nodes in one process, for `serve` and for tests: one member list, one clock, free ports.

All servers are bound before the first node begins, so that no node finds its peers closed at start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from distro_impl.clocks.clock import Clock, SystemClock
from distro_impl.config import NodeConfig
from distro_impl.events import Observer
from distro_impl.node import Node
from distro_impl.options import DEFAULT_OPTIONS, NodeOptions
from distro_impl.ports import free_main_ports
from distro_impl.profiles import PROFILES, Profile
from distro_impl.settings.errors import SettingError
from distro_impl.transport.transport import PeerLink, Transport
from distro_protos.addresses import bracketed

Links = Callable[[str, str], PeerLink]
"""(address of the node that sends, address of its peer) -> what stands on that directed link."""


class Cluster:
    """`async with Cluster(3, profile=…, clock=VirtualClock()) as cluster`, or `start` and `stop` by hand.

    Nodes are known by their position; `addresses[i]` and the ports stay the same over a restart.
    """

    def __init__(
        self,
        size: int = 3,
        *,
        profile: Profile = PROFILES["strict"],
        options: NodeOptions = DEFAULT_OPTIONS,
        ip: str = "127.0.0.1",
        clock: Clock | None = None,
        ports: Sequence[int] = (),
        further_members: Sequence[str] = (),
        member_list_file: Path | None = None,
        standalone: bool = False,
        observer: Observer | None = None,
        transport: Transport | None = None,
        links: Links | None = None,
    ) -> None:
        """`ports` are main ports, one a node (default: free ones); `further_members` are not started here.

        A `member_list_file` holds all members, these nodes too, and is watched. `standalone` is one node that knows of
        no cluster; one that does waits for others before it has loaded. Raises MemberListError.
        """
        self.clock: Clock = clock or SystemClock()
        mains = tuple(ports) or free_main_ports(size, ip)
        if len(mains) != size:
            raise ValueError(f"{size} nodes need {size} main ports, got {len(mains)}")
        if standalone and (size > 1 or further_members or member_list_file):
            raise ValueError("a standalone node has no other members")
        listed = {*(f"{bracketed(ip)}:{port}" for port in mains), *further_members}
        members = () if member_list_file or standalone else tuple(sorted(listed))
        self._configs = [
            NodeConfig(
                port=port,
                ip=ip,
                members=members,
                member_list_file=member_list_file,
                profile=profile,
                options=options,
            )
            for port in mains
        ]
        self._observer = observer
        self._transport, self._links = transport, links
        self.nodes: list[Node] = [self._new_node(config) for config in self._configs]

    @property
    def addresses(self) -> tuple[str, ...]:
        """`ip:P` of each node."""
        return tuple(config.address for config in self._configs)

    async def start(self) -> None:
        """Bind all, then begin all. Raises PortInUseError or SettingError, and then nothing is left running."""
        try:
            for node in self.nodes:
                await node.bind()
        except (OSError, SettingError):
            await self.stop()
            raise
        for node in self.nodes:
            node.begin()

    async def stop(self) -> None:
        """Stop every node that runs."""
        await asyncio.gather(*(node.stop() for node in self.nodes))

    async def crash(self, index: int) -> None:
        """Crash one node."""
        await self.nodes[index].crash()

    async def restart(self, index: int) -> Node:
        """Start a new, empty node in the place of one that was crashed or stopped."""
        node = self.nodes[index] = self._new_node(self._configs[index])
        await node.start()
        return node

    def change_members(self, addresses: Iterable[str]) -> None:
        """Give each node in it this list, also when it is started again; other nodes keep their list."""
        members = tuple(sorted(addresses))
        self._configs = [
            replace(config, members=members, member_list_file=None) if config.address in members else config
            for config in self._configs
        ]
        for node in self.nodes:
            if node.address in members:
                node.change_members(members)

    async def __aenter__(self) -> Cluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def _new_node(self, config: NodeConfig) -> Node:
        links = self._links
        return Node(
            config,
            clock=self.clock,
            observer=self._observer,
            transport=self._transport,
            links=None if links is None else lambda peer: links(config.address, peer),
        )
