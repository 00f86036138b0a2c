"""A link that can turn into a black hole: its connections stay open, and nothing that is sent arrives.

A broken link looks so to TCP for many minutes, which no link in memory shows: the wire of gRPC has to find out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from distro_impl import Clock, Node, NodeConfig, SystemClock, free_main_ports
from distro_impl.config import CLUSTER_PORT_OFFSET
from distro_impl.core import Core
from distro_impl.options import DEFAULT_OPTIONS, NodeOptions
from distro_impl.remote.cluster_client import ClusterClient
from distro_impl.transport.transport import PeerLink


class Swallower:
    """A forwarder on a real socket. While it swallows it reads everything and passes nothing on, in either way."""

    def __init__(self, target_port: int) -> None:
        """To that port of loopback."""
        self.swallows = False
        self.accepted = 0
        self._target_port = target_port
        self._tasks: set[asyncio.Task[None]] = set()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target_port)
        for source, sink in ((reader, to_server), (from_server, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                if not self.swallows:
                    sink.write(data)
                    await sink.drain()
            if not self.swallows:
                sink.close()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def swallower_on(port: int, target_port: int) -> AsyncIterator[Swallower]:
    """Listen there, and forward everything until a test changes that."""
    swallower = Swallower(target_port)
    listening = await asyncio.start_server(swallower.relay, "127.0.0.1", port)
    try:
        yield swallower
    finally:
        listening.close()
        swallower.stop()


@asynccontextmanager
async def a_peer_behind_a_swallower(
    clock: Clock | None = None, options: NodeOptions = DEFAULT_OPTIONS
) -> AsyncIterator[tuple[Swallower, ClusterClient]]:
    """The RPC client of a member, towards a node with those options; in real time unless a clock is given."""
    near, far = free_main_ports(2)
    clock = clock or SystemClock()
    peer = Node(NodeConfig(port=far, options=options), clock=clock)
    await peer.start()
    own = NodeConfig(port=1, members=("127.0.0.1:1", f"127.0.0.1:{near}"))
    client = ClusterClient(Core.of(own, clock), f"127.0.0.1:{near}", PeerLink())
    try:
        async with swallower_on(near + CLUSTER_PORT_OFFSET, far + CLUSTER_PORT_OFFSET) as swallower:
            yield swallower, client
    finally:
        await client.close()
        await peer.stop()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - no event announces it
            await asyncio.sleep(0.01)
