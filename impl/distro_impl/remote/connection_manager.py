"""Connections to this node: their ids, their registration, and pushing to them.

A connection is one transport, known by the peer's address. A server does not see transports, so the end of the last
bidirectional stream stands for the end of the transport (the hint of docs/protocol #connection-setup, #connection-id);
the difference is visible only to a client that ends its stream and keeps its channel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import count
from urllib.parse import unquote

from distro_impl.clocks.clock import Waiting
from distro_impl.core import Core
from distro_impl.remote.connection import Connection, ConnectionBusyError
from distro_impl.remote.connection_log import ConnectionLog
from distro_impl.transport.transport import ServerStream
from distro_protos import Json, encode
from distro_protos.addresses import split_address, without_brackets

MAX_IDS_WITHOUT_STREAM = 10_000
"""Ids of transports that asked something but opened no stream; the end of those is not reported."""

CLIENT_DETECTION = "ClientDetectionRequest"

PeerKey = tuple[int, str]
"""(port of the server, `context.peer()`): one address may have a transport to each of our two servers."""


class _Transport:
    """A transport with at least one stream; `stream` is the first."""

    __slots__ = ("connection_id", "opened_ms", "stream", "streams")

    def __init__(self, connection_id: str, stream: ServerStream, opened_ms: int) -> None:
        self.connection_id, self.stream, self.opened_ms = connection_id, stream, opened_ms
        self.streams = 0


class ConnectionManager:
    """Who is connected. `connected` and `disconnected` are called with the connection, at once."""

    def __init__(
        self,
        core: Core,
        connected: Callable[[Connection], None],
        disconnected: Callable[[Connection], None],
        log: ConnectionLog,
    ) -> None:
        self._clock, self._connected, self._disconnected = core.clock, connected, disconnected
        self.log = log
        self.keeps_clients = False
        """Whether the end of a connection has no consequences any more: the node itself is about to end."""
        self._ids: OrderedDict[PeerKey, str] = OrderedDict()  # of transports without a stream
        self._transports: dict[PeerKey, _Transport] = {}
        self._connections: dict[str, Connection] = {}
        self._request_ids = count(1)

    # Transports

    def id_of(self, peer: PeerKey) -> str:
        """`<millis>_<ip>_<port>`, the same for all calls of one transport."""
        transport = self._transports.get(peer)
        if transport is not None:
            return transport.connection_id
        connection_id = self._ids.get(peer)
        if connection_id is None:
            connection_id = self._ids[peer] = self._new_id(peer)
            if len(self._ids) > MAX_IDS_WITHOUT_STREAM:
                self._ids.popitem(last=False)
        return connection_id

    def stream_opened(self, peer: PeerKey, stream: ServerStream) -> str:
        """The id of its connection."""
        transport = self._transports.get(peer)
        if transport is None:
            transport = self._transports[peer] = _Transport(self.id_of(peer), stream, self._clock.now_ms())
            del self._ids[peer]
            self.log.transport_ready(transport.connection_id)
        transport.streams += 1
        return transport.connection_id

    def stream_ended(self, peer: PeerKey) -> None:
        """With its last stream the transport has ended."""
        transport = self._transports[peer]
        transport.streams -= 1
        if not transport.streams:
            del self._transports[peer]
            self.log.transport_terminated(transport.connection_id)
            self.unregister(transport.connection_id)

    def without_set_up(self, older_than_ms: int) -> list[ServerStream]:
        """Streams of transports that opened so long ago and have not registered. Releases keep them for ever."""
        since_ms = self._clock.now_ms() - older_than_ms
        waiting = (each for each in self._transports.values() if each.connection_id not in self._connections)
        return [each.stream for each in waiting if each.opened_ms <= since_ms]

    # Registration

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._connections.values()))

    def __len__(self) -> int:
        return len(self._connections)

    def get(self, connection_id: str) -> Connection | None:
        return self._connections.get(connection_id)

    def register(self, connection: Connection) -> None:
        """A second set-up on one transport changes nothing."""
        if connection.id in self._connections:
            return
        self._connections[connection.id] = connection
        self.log.registered(connection.meta)
        self._connected(connection)

    def unregister(self, connection_id: str) -> None:
        """Close it and forget it; unknown is fine. Until its stream has ended, its transport is an unregistered one."""
        connection = self._connections.pop(connection_id, None)
        if connection is None:
            return
        self.log.unregistered(connection_id)
        connection.close()
        if not self.keeps_clients:
            self._disconnected(connection)

    # Pushing

    async def push(self, connection: Connection, type_name: str, body: Json, timeout_ms: int) -> bool:
        """Send a request on the stream and wait for its answer; False when there is none or it is no success.

        The message is work of the node until the client has it; waiting for the answer is not.
        """
        request_id = str(next(self._request_ids))
        ack: Waiting[bool] = Waiting(self._clock)
        connection.acks[request_id] = ack
        try:
            connection.send(encode(type_name, {"headers": {}, **body, "requestId": request_id}))
            return await self._clock.wait_for(ack.taken(), timeout_ms)
        except (ConnectionBusyError, TimeoutError):
            return False
        finally:
            del connection.acks[request_id]

    async def detect(self, connection: Connection, timeout_ms: int) -> bool:
        """Whether the client answers in time that it is alive."""
        return await self.push(connection, CLIENT_DETECTION, {"module": "internal"}, timeout_ms)

    def acknowledge(self, connection_id: str, request_id: str | None, succeeded: bool) -> None:
        """A response arrived on the stream."""
        connection = self._connections.get(connection_id)
        if connection is None:
            return
        connection.touch()
        ack = connection.acks.get(request_id or "")
        if ack is not None:
            ack.give(succeeded)

    def _new_id(self, peer: PeerKey) -> str:
        ip, port = peer_address(peer[1])
        return f"{self._clock.unique_ms()}_{ip}_{port}"


def peer_address(peer: str) -> tuple[str, int]:
    """`ipv4:10.0.0.9:40000` or `ipv6:%5B::1%5D:40000` -> (ip, port)."""
    ip, port = split_address(unquote(peer).partition(":")[2])
    return without_brackets(ip), int(port)
