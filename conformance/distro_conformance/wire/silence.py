"""A played member that answers late, or never.

In real time the member just waits. In virtual time a request counts as work until its answer arrives, and time stands
still meanwhile; so the member reports at once how long it will be silent, and the link of the embedded node waits in
its place, in the node's own time.
"""

from __future__ import annotations

import asyncio

from distro_impl import Clock
from distro_impl.clocks.clock import Waiting
from distro_impl.transport.transport import Forward, PeerLink
from distro_protos import Payload

_SILENT_MS = "silent-ms"
FOR_EVER_MS = 24 * 3600 * 1000


async def answered_late(reply: Payload, after_ms: int, *, in_virtual_time: bool) -> Payload:
    """The value that a played member gives its server for an answer that is due after this time."""
    if in_virtual_time:
        reply.metadata.headers[_SILENT_MS] = str(after_ms)
    else:
        await asyncio.sleep(after_ms / 1000)
    return reply


class SilentLink(PeerLink):
    """A link of an embedded node on which silence takes virtual time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def carry(self, request: Payload, forward: Forward) -> Payload:
        reply = await forward(request)
        if (silent_ms := reply.metadata.headers.get(_SILENT_MS)) is not None:
            over = Waiting[None](self._clock)
            timer = self._clock.call_at(self._clock.now_ms() + int(silent_ms), lambda: over.give(None), "late answer")
            try:
                await over.taken()
            finally:
                timer.cancel()
        return reply
