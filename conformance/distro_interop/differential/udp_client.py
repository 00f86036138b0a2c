"""The socket of a client of the 1.x generation: what a node sends there, and the answer to it.

Source: docs/protocol #http-v1; a packet is JSON, compressed when it is long.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any, Self

from distro_impl.transport.datagrams import Receiver, sent_to
from distro_protos import Json

_GZIP = b"\x1f\x8b"
Address = tuple[str, int]


class UdpClient(asyncio.DatagramProtocol):
    """Use `await UdpClient.open(...)`. `packets`: as received. `seen`: how many were logged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.packets: list[tuple[bytes, Address]] = []
        self.seen = 0
        self._transport: asyncio.DatagramTransport | None = None
        self._receiver: Receiver | None = None

    @classmethod
    async def open(cls, name: str) -> Self:
        client = cls(name)
        loop = asyncio.get_running_loop()
        client._transport, _ = await loop.create_datagram_endpoint(lambda: client, local_addr=("127.0.0.1", 0))
        client._receiver = Receiver(("127.0.0.1", client.port))
        return client

    @property
    def port(self) -> int:
        assert self._transport is not None
        port: int = self._transport.get_extra_info("sockname")[1]
        return port

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.packets.append((data, addr))
        if self._receiver is not None:
            self._receiver.consumed()

    def acknowledge(self) -> None:
        """The packet that came last."""
        if self.packets and self._transport is not None:
            data, node = self.packets[-1]
            sent_to(node)
            number = str(opened(data)["message"].get("lastRefTime"))
            self._transport.sendto(json.dumps({"type": "push-ack", "lastRefTime": number, "data": ""}).encode(), node)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        if self._receiver is not None:
            self._receiver.close()


def opened(packet: bytes) -> Json:
    """The content of a packet, and whether it was compressed. Content that is no JSON object stays a text."""
    is_compressed = packet.startswith(_GZIP)
    text = (gzip.decompress(packet) if is_compressed else packet).decode(errors="replace")
    try:
        message: Any = json.loads(text)
    except ValueError:
        message = {"text": text}
    return {"compressed": is_compressed, "message": message if isinstance(message, dict) else {"text": text}}
