"""Connections to this node: their ids, their registration, and pushing to them.

A connection is one transport, known by the peer's address. grpc.aio does not show transports, so the end of the
bidirectional stream stands for the end of the transport (the hint of wire-protocol.md section 2.1); the difference is
visible only to a client that completes its stream and keeps its channel.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import unquote

from distro_impl.clocks.clock import Clock
from distro_protos import Json, Message, Payload, encode

MAX_IDS_WITHOUT_STREAM = 10_000
"""Ids of transports that asked something but opened no stream; nobody tells when those end."""

PeerKey = tuple[int, str]
"""(port of the server, `context.peer()`): one address may have a transport to each of our two servers."""


@dataclass(slots=True, eq=False)
class Connection:
    """A registered connection."""

    id: str
    labels: Mapping[str, str]
    write: Callable[[Payload], Awaitable[None]]
    write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    acks: dict[str, asyncio.Future[bool]] = field(default_factory=dict)

    @property
    def is_naming(self) -> bool:
        """Only these have a naming client (section 2.3)."""
        return self.labels.get("module") == "naming"

    async def send(self, payload: Payload) -> None:
        async with self.write_lock:  # a stream takes one message at a time
            await self.write(payload)


class ConnectionManager:
    """Who is connected. `connected` and `disconnected` are called with the connection, at once."""

    def __init__(
        self, clock: Clock, connected: Callable[[Connection], None], disconnected: Callable[[Connection], None]
    ) -> None:
        self._clock, self._connected, self._disconnected = clock, connected, disconnected
        self._ids: OrderedDict[PeerKey, str] = OrderedDict()
        self._connections: dict[str, Connection] = {}
        self._gone: dict[str, asyncio.Event] = {}
        self._request_ids = count(1)

    def id_of(self, peer: PeerKey) -> str:
        """`<millis>_<ip>_<port>`, the same for all calls of one transport."""
        connection_id = self._ids.get(peer)
        if connection_id is None:
            ip, port = _address(peer[1])
            connection_id = self._ids[peer] = f"{self._clock.unique_ms()}_{ip}_{port}"
            if len(self._ids) > len(self._connections) + MAX_IDS_WITHOUT_STREAM:
                self._forget_oldest_without_stream()
        return connection_id

    def get(self, connection_id: str) -> Connection | None:
        return self._connections.get(connection_id)

    def register(self, connection: Connection) -> None:
        """A second set-up on one transport changes nothing."""
        if connection.id not in self._connections:
            self._connections[connection.id] = connection
            self._connected(connection)

    def unregister(self, peer: PeerKey) -> None:
        """The transport ended."""
        connection = self._connections.pop(self._ids.pop(peer, ""), None)
        if connection is None:
            return
        for ack in connection.acks.values():
            ack.cancel()
        self._disconnected(connection)
        gone = self._gone.pop(connection.id, None)
        if gone is not None:
            gone.set()

    async def wait_gone(self, connection_id: str) -> None:
        """Until it is unregistered and that was handled; at once when it is not registered."""
        if connection_id in self._connections:
            await self._gone.setdefault(connection_id, asyncio.Event()).wait()

    async def push(self, connection: Connection, type_name: str, body: Json, timeout_ms: int) -> bool:
        """Send a request on the stream and wait for its answer; False when there is none or it is no success.

        Waiting for a client is not work of the node.
        """
        request_id = str(next(self._request_ids))
        ack = connection.acks[request_id] = asyncio.get_running_loop().create_future()
        try:
            with self._clock.parked():
                await connection.send(encode(type_name, {"headers": {}, **body, "requestId": request_id}))
                return await self._clock.wait_for(ack, timeout_ms)
        except (TimeoutError, asyncio.InvalidStateError):
            return False
        finally:
            connection.acks.pop(request_id, None)

    def acknowledge(self, connection_id: str, answer: Message) -> None:
        """A response arrived on the stream."""
        connection = self._connections.get(connection_id)
        ack = connection.acks.get(str(answer.body.get("requestId"))) if connection else None
        if ack is not None and not ack.done():
            ack.set_result(answer.succeeded)

    def _forget_oldest_without_stream(self) -> None:
        for peer, connection_id in self._ids.items():
            if connection_id not in self._connections:
                del self._ids[peer]
                return


def _address(peer: str) -> tuple[str, str]:
    """`ipv4:10.0.0.9:40000` or `ipv6:%5B::1%5D:40000` -> (ip, port)."""
    ip, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return ip.strip("[]"), port
