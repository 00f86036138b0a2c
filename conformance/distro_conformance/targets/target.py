"""Nodes, and the target that makes them.

A `Node` is one server, wherever it runs: started and stopped, with its address, its process and its view of the
members. A `Target` is what `--target` names: it makes nodes, for a cluster as many as are needed, and it is itself the
one node under test of `test node`, with the clock, the headers and the limits that apply to it. A kind of target is
one file with a class and one entry in `registry.py`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

from distro_conformance.targets.credentials import NO_CREDENTIALS, Credentials
from distro_conformance.targets.direct import NO_HEADERS
from distro_conformance.targets.ports import free_base_ports
from distro_conformance.targets.server_process import HOST, signal_group
from distro_conformance.waiting import Clock, RealClock
from distro_protos.addresses import parse_address

OnProgress = Callable[[str], None]


class Node(Protocol):
    """One node. `start` and `stop` may alternate; `address` is the node's name in every message, host:port."""

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """The id of its process while it runs; None for a node without a process of its own."""
        ...

    @property
    def logs(self) -> Sequence[Path]:
        """The files with its output and its logs, which `close` removes; none of a node in this process."""
        ...

    async def start(self, *, until_loaded: bool = True) -> None:
        """Returns when it serves and, with `until_loaded`, has loaded. Raises TargetError."""
        ...

    async def stop(self) -> None:
        """Ends the node at once, like SIGKILL: it sends nothing more and loses its memory."""
        ...

    async def close(self) -> None:
        """Stop, and leave nothing behind."""
        ...

    async def change_members(self, addresses: Sequence[str]) -> None: ...

    async def members(self) -> Mapping[str, str]:
        """Address of a member to its state as this node sees it; empty while it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of tests on a node: the namespace of the kit's clients, whether the kit's members are on its list, whether
    the kit may send it a member's requests, and the FEATURES that it lacks."""

    namespace: str = "public"
    counts_members: bool = True
    takes_syncs: bool = True
    lacks: frozenset[str] = frozenset()


FEATURES = ("http", "batch")
"""Features that a server may lack: clients of the HTTP API, and several instances of a service from one client."""

UNLIMITED = Limits()
"""The limits of every node that the kit starts."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node listens, a base port, and what it is started with. `members` are all of them.

    `offset`, the distance to the ports of its peers, and `lease_ms`, of an unverified copy: if not the usual ones.
    """

    port: int
    members: tuple[str, ...]
    offset: int | None = None
    lease_ms: int | None = None


class Target:
    """Nodes of one kind in real time, and one of them at an address that is chosen when this object is made."""

    kind: str
    mutant: str | None = None
    """The deliberate bug of its nodes, if any."""
    limits: Limits = UNLIMITED
    member_headers: Mapping[str, str] = NO_HEADERS
    """Headers of a member's requests: the identity, if the node requires one."""
    client_headers: Mapping[str, str] = NO_HEADERS
    """Headers of a client's requests, if the node requires any."""
    credentials: Credentials = NO_CREDENTIALS
    """For servers that the kit has not configured."""
    takes_offset = True
    """Whether its nodes can be started so that they connect to each other over links of the kit."""
    fixed_list: str | None = None
    """Why a running node cannot get another member list, or None."""
    short_lease_ms: int | None = None
    """The lease of an unverified copy with which a node can be started instead of its default."""

    def __init__(self, spec: str, address: str | None = None, clock: Clock | None = None) -> None:
        self.spec = spec
        self.address = address or _free_address()
        self.clock: Clock = clock or RealClock()
        self._node: Node | None = None
        self._has_short_lease = False

    @cached_property
    def profile(self) -> str:
        """The expected behaviour: `nacos-2.2.4`, `strict`, …"""
        raise NotImplementedError

    @property
    def lease_ms(self) -> int | None:
        """The lease of an unverified copy, if the node is configured with another time than its default."""
        return self.short_lease_ms if self._has_short_lease else None

    async def node(self, place: Place, on_progress: OnProgress) -> Node:
        """A node, not started yet. Raises TargetError."""
        raise NotImplementedError

    def fresh(self) -> Self:
        """Another target of this kind, at another address and not started, with its default lease; real time is the
        same for both."""
        other = copy(self)
        other.address, other._node, other._has_short_lease = _free_address(), None, False
        return other

    async def start(self, other_members: Sequence[str], on_progress: OnProgress, *, until_loaded: bool = True) -> None:
        """Returns when the node serves and, with `until_loaded`, has loaded.

        Raises TargetError; `stop` must be called all the same.
        """
        members = (self.address, *other_members)
        place = Place(parse_address(self.address).port, members, lease_ms=self.lease_ms)
        self._node = await self.node(place, on_progress)
        await self._node.start(until_loaded=until_loaded)
        self.clock.watch(self._node.pid)
        if self.credentials.username is not None:
            self.client_headers = await asyncio.to_thread(self.credentials.client_headers, self.address)

    async def change_members(self, other_members: Sequence[str]) -> None:
        """Replace the other members on the list of the running node. Raises TargetError if the list is fixed."""
        assert self._node is not None
        await self._node.change_members(sorted((self.address, *other_members)))

    def unaltered(self) -> str | None:
        """Why the mutant, if any, has changed nothing on the nodes that have stopped; None if it has."""
        return None

    def shorten_lease(self) -> None:
        """From its next start on, if that can be configured."""
        self._has_short_lease = True

    async def suspend(self, ms: int) -> None:
        """Stop the process for this time and let it continue. Raises TargetError if that is not possible."""
        assert self._node is not None
        signal_group(self._node.pid, self.address, signal.SIGSTOP)
        try:
            await self.clock.pass_ms(ms)
        finally:
            signal_group(self._node.pid, self.address, signal.SIGCONT)

    async def stop(self) -> None:
        """Stop the node and remove its files; safe to call twice, and after a failed start."""
        node, self._node = self._node, None
        if node is not None:
            await node.close()


def _free_address() -> str:
    (port,) = free_base_ports()
    return f"{HOST}:{port}"
