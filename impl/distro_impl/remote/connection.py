"""One registered connection: who it says it is, when it was last heard, and what waits to be written to it.

A connection knows nothing of gRPC: it is given a way to write and a way to close. Writing is bounded. gRPC takes a
message only when the peer has room for it, so what a peer does not read waits here; beyond 32 KiB a further push is
refused at once, as Nacos does where `isReady` of a stream is false. Source: wire-protocol.md sections 2.2 and 2.4.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc

from distro_impl.clocks.clock import Clock
from distro_protos import Json, Payload

BUSY_ABOVE_BYTES = 32 * 1024
APP_NAME_LABEL = "AppName"


class ConnectionBusyError(ConnectionError):
    """The peer does not read, and enough waits for it already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionMeta:
    """What is known of a connection from its transport and its set-up message."""

    id: str
    client_ip: str
    remote_port: int
    local_port: int
    created_ms: int
    version: str = ""
    tenant: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    abilities: Mapping[str, bool] | None = None
    """As told in `abilityTable`."""

    @property
    def is_sdk(self) -> bool:
        return self.labels.get("source") == "sdk"

    @property
    def is_cluster(self) -> bool:
        return self.labels.get("source") == "cluster"

    @property
    def is_naming(self) -> bool:
        """Only these have a naming client (section 2.3)."""
        return self.labels.get("module") == "naming"

    @property
    def app_name(self) -> str:
        return self.labels.get(APP_NAME_LABEL, "-")

    def to_json(self) -> Json:
        """As an operator sees it."""
        return {
            "connectType": "GRPC",
            "connectionId": self.id,
            "clientIp": self.client_ip,
            "localPort": self.local_port,
            "createTime": self.created_ms,
            "version": self.version,
            "tenant": self.tenant,
            "appName": self.app_name,
            "labels": dict(self.labels),
            "tag": None,
            "sdkSource": self.is_sdk,
            "clusterSource": self.is_cluster,
        }


class Connection:
    """A registered connection. `write` takes one message at a time; `close` completes its stream."""

    def __init__(
        self, meta: ConnectionMeta, clock: Clock, write: Callable[[Payload], Awaitable[Any]], close: Callable[[], None]
    ) -> None:
        self.meta = meta
        self.last_active_ms = meta.created_ms
        self.acks: dict[str, asyncio.Future[bool]] = {}
        self._clock, self._write, self._close = clock, write, close
        self._outbox: deque[Payload] = deque()
        self._outbox_bytes = 0
        self._busy_since_ms: int | None = None
        self._writer: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def id(self) -> str:
        return self.meta.id

    def touch(self) -> None:
        """It gave a sign of life."""
        self.last_active_ms = self._clock.now_ms()

    def idle_ms(self) -> int:
        return self._clock.now_ms() - self.last_active_ms

    def busy_ms(self) -> int:
        """For how long pushes have been refused; 0 when the last one was taken."""
        return 0 if self._busy_since_ms is None else self._clock.now_ms() - self._busy_since_ms

    def send(self, payload: Payload) -> None:
        """Queue a message. Raises ConnectionBusyError. What is queued when the connection closes is lost."""
        if self._outbox_bytes > BUSY_ABOVE_BYTES:
            if self._busy_since_ms is None:
                self._busy_since_ms = self._clock.now_ms()
            raise ConnectionBusyError(f"{self.id} has {self._outbox_bytes} bytes to read first")
        self._busy_since_ms = None
        if self._closed:
            return
        self._outbox.append(payload)
        self._outbox_bytes += payload.ByteSize()
        if self._writer is None:
            self._writer = self._clock.spawn(self._drain(), f"writing to {self.id}")

    async def sent(self) -> None:
        """Until everything that was queued is written, or cannot be any more."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

    def close(self) -> None:
        """Nobody waits for an answer any more, and the stream ends."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
        self._outbox.clear()
        for ack in self.acks.values():
            if not ack.done():
                ack.set_result(False)
        self._close()

    async def _drain(self) -> None:
        """Waiting for a client to read is not work of the node."""
        try:
            with self._clock.parked():
                while self._outbox:
                    await self._write(self._outbox[0])
                    self._outbox_bytes -= self._outbox.popleft().ByteSize()
        except (asyncio.InvalidStateError, grpc.aio.UsageError, grpc.aio.InternalError):
            self._outbox.clear()  # the stream has ended; its handler tells who must know
            self._outbox_bytes = 0
        finally:
            self._writer = None
