"""One registered connection: its labels, its last sign of life, and the stream for messages to it.

Writing is bounded. What a peer does not read waits in the stream; beyond 32 KiB a further push is refused at once, as
Nacos does where `isReady` of a stream is false. Source: docs/protocol #connection-handshake and #ejector-check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from distro_impl.clocks.clock import Clock, Waiting
from distro_impl.transport.transport import ServerStream
from distro_protos import Payload

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

    @property
    def is_sdk(self) -> bool:
        return self.labels.get("source") == "sdk"

    @property
    def is_naming(self) -> bool:
        """Only these have a naming client (docs/protocol #connection-stream)."""
        return self.labels.get("module") == "naming"

    @property
    def app_name(self) -> str:
        return self.labels.get(APP_NAME_LABEL, "-")


class Connection:
    """A registered connection."""

    def __init__(self, meta: ConnectionMeta, clock: Clock, stream: ServerStream) -> None:
        self.meta = meta
        self.last_active_ms = meta.created_ms
        self.acks: dict[str, Waiting[bool]] = {}
        self._clock, self._stream = clock, stream
        self._busy_since_ms: int | None = None

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
        unsent_bytes = self._stream.unsent_bytes
        if unsent_bytes > BUSY_ABOVE_BYTES:
            if self._busy_since_ms is None:
                self._busy_since_ms = self._clock.now_ms()
            raise ConnectionBusyError(f"{self.id} has {unsent_bytes} bytes to read first")
        self._busy_since_ms = None
        self._stream.send(payload.SerializeToString())

    async def sent(self) -> None:
        """Until everything that was queued is written, or cannot be any more."""
        await self._stream.drained()

    def close(self) -> None:
        """End every wait for an answer, and the stream."""
        for ack in self.acks.values():
            ack.give(False)
        self._stream.close()
