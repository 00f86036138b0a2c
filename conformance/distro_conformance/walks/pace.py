"""Whether the kit serves requests in time: it asks the members that it plays again and again, as the node does.

Many runs side by side keep a processor busy with the kit alone: each request of the node is compared with the model.
Further requests then wait for the kit and are observed later than they were sent, or not at all if the node gives them
up before. So runs wait with their next action until the kit is in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import grpc.aio

from distro_conformance.wire.connection import Connection

IN_TIME_S = 0.25
"""The kit is in time if a member answers within this; it takes a few milliseconds if there is little to do."""
EVERY_S = 0.1


class Pace:
    """Measured while `measured` is entered; before that, and after it, the kit counts as in time."""

    def __init__(self) -> None:
        self._in_time = asyncio.Event()
        self._in_time.set()

    @asynccontextmanager
    async def measured(self, addresses: Callable[[], Sequence[str]]) -> AsyncIterator[None]:
        """`addresses`: the gRPC ports of the members that answer at present."""
        connections: dict[str, Connection] = {}
        asking = asyncio.create_task(self._ask_on(addresses, connections), name="pace")
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await asyncio.gather(*(each.close() for each in connections.values()))
            self._in_time.set()

    async def until_in_time(self, until_s: float) -> None:
        """Returns when the kit is in time, and at that monotonic time at the latest."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._in_time.wait(), until_s - time.monotonic())

    async def _ask_on(self, addresses: Callable[[], Sequence[str]], connections: dict[str, Connection]) -> None:
        while True:
            asked = addresses()
            connections.update({each: Connection.bare(each) for each in asked if each not in connections})
            answers = asyncio.gather(*(_answered(connections[each]) for each in asked))
            in_time, _ = await asyncio.wait([answers], timeout=IN_TIME_S)
            if in_time:
                self._in_time.set()
            else:
                self._in_time.clear()
            await answers
            await asyncio.sleep(EVERY_S)


async def _answered(connection: Connection) -> None:
    """A member that is stopped meanwhile answers nothing more, and is not late."""
    with suppress(grpc.aio.AioRpcError):
        await connection.ask("ServerCheckRequest", {"headers": {}})
