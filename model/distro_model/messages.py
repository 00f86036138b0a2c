"""Messages between nodes: the five requests that matter to replication, and the possible ends of a call.

Only the meaning travels in the model. The envelope, the JSON and the two result codes belong to the wire (docs/protocol
#wire-envelope and #distro-envelope); of those a node's rules read exactly one of seven `CallResult`s.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from distro_model.value import value

Content = tuple[tuple[str, str], ...]
"""The content of a client: sorted pairs (service, instance). An instance is opaque text, `10.0.0.1:80 v=2`, except that
it begins with its address, and that a word `cluster=…` in it names its cluster. A batch is published as one text
(`batch_of`), since it is one entry of its client like a single instance (docs/protocol #naming-requests)."""

BATCH = "batch of "
AND = " and "
CLUSTER = "cluster="
WITHOUT_ID = " (no id)"
"""In the text of an instance that has no id where others of its kind have one (docs/protocol #http-v2). Nodes hold and
send the id, and compare it; the text without it is shown to callers."""


class Operation(StrEnum):
    """`DataOperation` on the wire, and `MemberReportRequest` (docs/protocol #distro-envelope, #member-report)."""

    CHANGE = "CHANGE"
    DELETE = "DELETE"
    VERIFY = "VERIFY"
    SNAPSHOT = "SNAPSHOT"
    REPORT = "REPORT"


class CallResult(StrEnum):
    """How a call ended, as its sender reads it (docs/protocol #sync-result)."""

    SUCCESS = "success"  # resultCode 200
    FAIL = "fail"  # a typed response with another resultCode
    ERROR = "error"  # ErrorResponse: the call was refused before a handler saw it, or its answer was too large
    UNREADABLE = "unreadable"  # the answer of the right type is no JSON, or empty
    UNHEARD = "unheard"  # the type of the answer is unknown to its receiver
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"


@value(frozen=True, slots=True)
class Change:
    """The full state of one client; also the element of a snapshot (docs/protocol #distro-content)."""

    operation: ClassVar[Operation] = Operation.CHANGE
    client: str
    revision: int
    content: Content
    superseded: tuple[int, ...] = ()
    """Ip:port clients only: the revisions that the content is known to have replaced, ascending."""

    def __str__(self) -> str:
        return f"CHANGE {self.client} revision {self.revision}"


@value(frozen=True, slots=True)
class Delete:
    operation: ClassVar[Operation] = Operation.DELETE
    client: str

    def __str__(self) -> str:
        return f"DELETE {self.client}"


@value(frozen=True, slots=True)
class Verify:
    operation: ClassVar[Operation] = Operation.VERIFY
    client: str
    revision: int

    def __str__(self) -> str:
        return f"VERIFY {self.client} revision {self.revision}"


@value(frozen=True, slots=True)
class OwnedList:
    """All ip:port clients that the sender owns, as Nacos 1.x verified them. Only `v1-checksum-dual-owner-delete`."""

    operation: ClassVar[Operation] = Operation.VERIFY
    clients: tuple[str, ...]

    def __str__(self) -> str:
        return f"VERIFY of exactly {', '.join(self.clients) or 'nothing'}"


@value(frozen=True, slots=True)
class Snapshot:
    operation: ClassVar[Operation] = Operation.SNAPSHOT

    def __str__(self) -> str:
        return "SNAPSHOT"


@value(frozen=True, slots=True)
class Report:
    operation: ClassVar[Operation] = Operation.REPORT

    def __str__(self) -> str:
        return "REPORT"


Request = Change | Delete | Verify | OwnedList | Snapshot | Report


@value(frozen=True, slots=True)
class Answer:
    """The end of a call; `copies` is the content of a snapshot that succeeded, `reason` why a client of the HTTP API
    was refused."""

    result: CallResult
    copies: tuple[Change, ...] = ()
    reason: str = ""


SUCCESS = Answer(CallResult.SUCCESS)
FAIL = Answer(CallResult.FAIL)
TIMEOUT = Answer(CallResult.TIMEOUT)
UNREACHABLE = Answer(CallResult.UNREACHABLE)
NOT_THE_OWNER = Answer(CallResult.FAIL, reason="not the owner")
UNKNOWN_INSTANCE = Answer(CallResult.FAIL, reason="unknown instance")
NO_SUCH_API = Answer(CallResult.FAIL, reason="no such API")


def batch_of(instances: Iterable[str]) -> str:
    """Several instances as the content of one client under one service, in no order."""
    return BATCH + AND.join(sorted(instances))


def is_batch(published: str) -> bool:
    return published.startswith(BATCH)


def instances_of(published: str) -> list[str]:
    """The instances that `batch_of` joined; one instance where the text is no batch."""
    return published.removeprefix(BATCH).split(AND)


def without_clusters(published: str) -> str:
    """The same content, without the cluster of each instance."""
    return " ".join(word for word in published.split(" ") if not word.startswith(CLUSTER))


def shown(content: Content) -> Content:
    """The content as it is shown to callers."""
    return tuple((service, published.replace(WITHOUT_ID, "")) for service, published in content)


def addresses_of(content: Content) -> frozenset[str]:
    """Every `ip:port` that is published."""
    return frozenset(each.partition(" ")[0] for _, published in content for each in instances_of(published))


def text_of(content: Content) -> str:
    """Content in readable form."""
    return ", ".join(f"{service} {instance}" for service, instance in content) or "nothing"


def subject_of(request: Request) -> str | None:
    """The client that a request is about; None for those about all or none."""
    return None if isinstance(request, OwnedList | Snapshot | Report) else request.client


def revision_of(request: Request) -> int | None:
    """The revision that a request carries; None where the message has none."""
    return request.revision if isinstance(request, Change | Verify) else None
