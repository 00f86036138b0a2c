"""The port where a client of the HTTP API listens for pushes over UDP, as clients of the 1.x generation do.

A packet has the list as JSON within JSON, compressed when it is long, and is acknowledged with its number. Packets are
counted for the virtual clock, as messages on a stream are.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from distro_impl.transport.datagrams import Receiver, sent_to
from distro_protos import Json

_GZIP = b"\x1f\x8b"


@dataclass
class UdpListener(asyncio.DatagramProtocol):
    """`pushes` are the lists that it was sent, in order, repetitions too."""

    pushes: list[Json] = field(default_factory=list)
    acknowledges: bool = True
    port: int = 0
    _transport: asyncio.DatagramTransport | None = None
    _receiver: Receiver | None = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        packet = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        self.pushes.append(json.loads(packet["data"]))
        if self.acknowledges and self._transport is not None:
            answer = {"type": "push-ack", "lastRefTime": packet["lastRefTime"], "data": ""}
            sent_to(addr)
            self._transport.sendto(json.dumps(answer).encode(), addr)
        if self._receiver is not None:
            self._receiver.consumed()

    async def open(self, ip: str) -> None:
        """At any free port."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(ip, 0))
        self.port = self._transport.get_extra_info("sockname")[1]
        self._receiver = Receiver((ip, self.port))

    def close(self) -> None:
        if self._transport is not None and self._receiver is not None:
            self._transport.close()
            self._receiver.close()


@asynccontextmanager
async def listening(ip: str) -> AsyncIterator[UdpListener]:
    listener = UdpListener()
    await listener.open(ip)
    try:
        yield listener
    finally:
        listener.close()
