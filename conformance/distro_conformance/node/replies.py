"""The answers of played members: the replies that a node may get to an operation, and the rules that choose them.

The usual reply is a success; the others are those that the releases distinguish (docs/protocol #sync-result).

A member may answer late, or never. In real time it just waits. In virtual time a request counts as work until its
answer arrives, and time stands still meanwhile; so the member reports at once how long it will be silent, and the link
of the embedded node waits in its place, in the node's own time.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, replace

from distro_conformance.wire.messages import DISTRO_RESPONSE, RESOURCE_TYPE, DistroCall, pack
from distro_impl import Clock
from distro_impl.clocks.clock import Waiting
from distro_impl.transport.transport import Forward, PeerLink
from distro_protos import Json, Payload, encode

_SILENT_MS = "silent-ms"
FOR_EVER_MS = 24 * 3600 * 1000
REPORT_RESPONSE = "MemberReportResponse"
OK: Json = {"resultCode": 200, "errorCode": 0, "success": True}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the peer: the type name of a response and its body; None is unreadable."""

    type: str
    body: Json | None
    after_ms: int = 0
    """How long it keeps the node waiting."""

    @property
    def succeeds(self) -> bool:
        return self.body is not None and self.body.get("resultCode") == 200

    def encoded(self) -> Payload:
        if self.body is not None:
            return encode(self.type, self.body)
        payload = encode(self.type, {})
        payload.body.value = b"{"
        return payload

    def __str__(self) -> str:
        wait = f" after {self.after_ms} ms" if self.after_ms else ""
        codes = "unreadable" if self.body is None else f"{self.body.get('resultCode')}/{self.body.get('errorCode')}"
        return f"{self.type} {codes}{wait}"


SUCCESS = Reply(DISTRO_RESPONSE, OK)
FAILURE = Reply(DISTRO_RESPONSE, {"resultCode": 500, "errorCode": 500, "message": "not so here", "success": False})
"""The typed failure, the only one that a sender of VERIFY reacts to (docs/protocol #sync-result)."""
ERROR = Reply("ErrorResponse", {"resultCode": 500, "errorCode": 500, "message": "not now", "success": False})
"""A failure like any other; the typed one means to a `strict` node that loads that the member has not loaded itself."""
UNREADABLE = Reply(DISTRO_RESPONSE, None)
REPORT_FAILURE = Reply(REPORT_RESPONSE, FAILURE.body)
NEVER = replace(SUCCESS, after_ms=FOR_EVER_MS)
"""No answer at all: the node's call times out."""


def snapshot_reply(*clients: Json) -> Reply:
    """A SNAPSHOT with these ClientSyncData objects."""
    return _snapshot_of(pack({"clientSyncDataList": clients}))


def _snapshot_of(content: str) -> Reply:
    key = {"resourceKey": "SNAPSHOT", "resourceType": RESOURCE_TYPE}
    return Reply(DISTRO_RESPONSE, {**OK, "distroData": {"distroKey": key, "content": content}})


HALF_A_SNAPSHOT = _snapshot_of(base64.b64encode(b'{"clientSyncDataList":[').decode())
"""A success, with a content that ends in the middle."""


Answer = Reply | Callable[[DistroCall], Reply]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerRule:
    """How the member answers an operation, of one client or of all; `forget` takes it."""

    operation: str
    client: str | None
    answer: Answer
    once: bool = False


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
