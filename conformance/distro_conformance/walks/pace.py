"""Whether the kit serves requests in time: it asks itself over gRPC again and again.

Many runs side by side keep a processor busy with the kit alone. A request of the node then waits for the kit and is
observed later than it was sent, or not at all if the node gives it up before. The event loop is not late meanwhile: a
request takes several of its turns. So runs wait with their next action until the kit is in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from distro_conformance.node.peer import PlayedPeer
from distro_conformance.targets.ports import CLUSTER_OFFSET, free_base_ports, with_offset
from distro_conformance.wire.connection import Connection

IN_TIME_S = 0.25
"""The kit is in time if it answers itself within this; it takes a few milliseconds if there is little to do."""
EVERY_S = 0.1


class Pace:
    """Measured while `measured` is entered; before that, and after it, the kit counts as in time."""

    def __init__(self) -> None:
        self._in_time = asyncio.Event()
        self._in_time.set()

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """Raises TargetError when no port is free."""
        (port,) = free_base_ports()
        peer = PlayedPeer(port, lambda: 0)
        await peer.start()
        connection = Connection.bare(with_offset(peer.address, CLUSTER_OFFSET))
        asking = asyncio.create_task(self._ask_on(connection), name="pace")
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            self._in_time.set()
            await connection.close()
            await peer.close()

    async def until_in_time(self, until_s: float) -> None:
        """Returns when the kit is in time, and at that monotonic time at the latest."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._in_time.wait(), until_s - time.monotonic())

    async def _ask_on(self, connection: Connection) -> None:
        while True:
            answer = asyncio.ensure_future(connection.ask("ServerCheckRequest", {"headers": {}}))
            in_time, _ = await asyncio.wait([answer], timeout=IN_TIME_S)
            if in_time:
                self._in_time.set()
            else:
                self._in_time.clear()
            await answer
            await asyncio.sleep(EVERY_S)
