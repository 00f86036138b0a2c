"""A node: its two servers, and the parts behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import grpc

from distro_impl.clock import Clock
from distro_impl.config import NodeConfig
from distro_impl.events import Observer

Interceptors = Callable[[str], Sequence[grpc.aio.ClientInterceptor]]
"""Address of a peer -> what is put on the cluster channel to it: the links of the kit (record, hold, drop, cut)."""


class Node:
    """One node, one life: a crashed or stopped node is not started again, a new one takes its address."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        clock: Clock,
        observer: Observer | None = None,
        interceptors: Interceptors | None = None,
    ) -> None:
        self.config = config
        self.address: str = config.address
        self._clock, self._observer, self._interceptors = clock, observer, interceptors

    async def start(self) -> None:
        """Bind both ports, then begin. Raises PortInUseError."""
        await self.bind()
        self.begin()

    async def bind(self) -> None:
        """Open both servers; until `begin` they answer that the server is starting. Raises PortInUseError."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the timers, phase now, and the initial load."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Close every connection and end. Peers are told nothing about our clients, as real servers do not."""
        raise NotImplementedError

    async def crash(self) -> None:
        """End at once: nothing more is said or observed, all memory is gone."""
        raise NotImplementedError

    async def wait_disconnected(self, client_id: str) -> None:
        """Until the stream of that client has ended and its removal was handled."""
        raise NotImplementedError

    async def wait_peer_lost(self, peer: str) -> None:
        """Until no cluster connection of ours to `peer` is open."""
        raise NotImplementedError
