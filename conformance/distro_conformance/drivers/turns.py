"""How long this process itself takes to hear what is said to it.

Where other programs want the cores it is late as well, and what it is late looks like the lateness of the node. So it
speaks to itself, over the way on which a request of the node comes, and tells the slack how long that took.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import grpc.aio

from distro_conformance.wire.connection import Connection
from distro_conformance.wire.forwarder import Context, node_server
from distro_model.outside import Slack
from distro_protos import Payload, encode

TURN_MS = 100
_KEY = "turn"


async def take_turns(slack: Slack, now_ms: Callable[[], int]) -> None:
    """Again and again, for as long as this is not cancelled. A turn that is due counts from then on."""
    server = node_server(_hear, _hear_nothing)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    to_itself = Connection.bare(f"127.0.0.1:{port}")
    try:
        while True:
            slack.awaits(_KEY, now_ms() + TURN_MS)
            await asyncio.sleep(TURN_MS / 1000)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await to_itself.check_health()
            slack.answered(_KEY, now_ms())
    finally:
        slack.answered(_KEY, now_ms())
        await to_itself.close()
        await server.stop(None)


async def _hear(_: Payload, __: Context) -> Payload:
    return encode("HealthCheckResponse", {"resultCode": 200, "success": True})


async def _hear_nothing(_: object, __: Context) -> None: ...
