"""A node and played members side by side: their ports, the order of their connections, and their clean-up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from distro_conformance.node.peer import PlayedPeer
from distro_conformance.release import release_of
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.target import OnProgress, Target
from distro_protos.addresses import parse_address

PLAYED = 2
"""Members that the kit plays: so a check can distinguish what one member gets from what all get."""


@asynccontextmanager
async def members_beside(
    target: Target, on_progress: OnProgress, count: int = PLAYED, *, higher: bool = False, listed: bool = True
) -> AsyncIterator[tuple[PlayedPeer, ...]]:
    """The target running, and played members on its list that have been dialled in both directions, if possible.

    `higher`: the members' addresses are higher. Who owns which ip:port client depends on the order
    (docs/protocol #owner-place). `listed`: if false they are on no list of the node, and only send to it.
    """
    async with played_members(target, count, higher=higher) as peers:
        await target.start([peer.address for peer in peers] if listed else [], on_progress)
        for peer in peers:
            await (peer.join if listed and target.limits.counts_members else peer.dial)(target.address)
        yield peers


@asynccontextmanager
async def played_members(
    target: Target, count: int = PLAYED, *, higher: bool = False
) -> AsyncIterator[tuple[PlayedPeer, ...]]:
    """Members that listen; the target has not been started yet. It is stopped before they are."""
    peers: list[PlayedPeer] = []
    try:
        for _ in range(count):
            port = _port_beside(target, higher, *(peer.port for peer in peers))
            is_virtual, version = not target.clock.is_real, _version_of(target.profile)
            peers.append(
                PlayedPeer(
                    port,
                    target.clock.now_ms,
                    version=version,
                    headers=target.member_headers,
                    in_virtual_time=is_virtual,
                    only_reads=not target.limits.takes_syncs,
                )
            )
            await peers[-1].start()
        yield tuple(peers)
    finally:
        for peer in peers:
            await peer.hang_up()
        await target.stop()
        for peer in peers:
            await peer.stop()


def _port_beside(target: Target, higher: bool, *others: int) -> int:
    own = parse_address(target.address).port
    (port,) = free_base_ports(beside=(own, *others), above=own if higher else 0)
    return port


def _version_of(profile: str) -> str:
    """The features of a member of this profile; `strict` is based on the latest 2.x."""
    release = release_of(profile)
    return "2.5.1" if release is None else ".".join(map(str, release))
