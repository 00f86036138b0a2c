"""The answers of played members: the replies that a node may get to an operation, and the rules that choose them.

The usual reply is a success; the others are those that the releases distinguish (docs/protocol #sync-result).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace

from distro_conformance.wire.messages import DISTRO_RESPONSE, RESOURCE_TYPE, DistroCall, pack
from distro_conformance.wire.silence import FOR_EVER_MS
from distro_protos import Json, Payload, encode

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
