"""Inputs and outputs of one node: the alphabet of the automaton.

Each input carries `at_ms`, the time at which it happens, because a node has no clock of its own. In the bounded cluster
of the explorer `at_ms` is always 0 and a `…Due` input is a choice of the environment instead of a point in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from distro_model.messages import Answer, Request


@dataclass(frozen=True, slots=True)
class ClientConnected:
    at_ms: int
    client: str


@dataclass(frozen=True, slots=True)
class InstanceRegistered:
    at_ms: int
    client: str
    service: str
    instance: str


@dataclass(frozen=True, slots=True)
class InstanceDeregistered:
    at_ms: int
    client: str
    service: str


@dataclass(frozen=True, slots=True)
class ClientDisconnected:
    at_ms: int
    client: str


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A peer's request arrived; the rule for it ends with exactly one `Reply`."""

    at_ms: int
    source: str
    request: Request


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call of ours to `target` is over, in whatever way."""

    at_ms: int
    target: str
    request: Request
    answer: Answer


@dataclass(frozen=True, slots=True)
class TaskDue:
    """The delay task of (client, target) is taken from the queue and executed."""

    at_ms: int
    client: str
    target: str


@dataclass(frozen=True, slots=True)
class VerifyDue:
    at_ms: int


@dataclass(frozen=True, slots=True)
class LeaseCheckDue:
    at_ms: int


@dataclass(frozen=True, slots=True)
class ReportDue:
    at_ms: int


@dataclass(frozen=True, slots=True)
class LoadDue:
    at_ms: int


class HttpAction(StrEnum):
    REGISTER = "registers"
    DEREGISTER = "deregisters"
    BEAT = "beats"


@dataclass(frozen=True, slots=True)
class HttpReceived:
    """A request of an ip:port client, answered by `Reply` or `Forward`. `forwarded`: by a node, not the client."""

    at_ms: int
    client: str
    action: HttpAction
    service: str
    instance: str
    forwarded: bool = False


@dataclass(frozen=True, slots=True)
class HttpEntered:
    """The request is inside its owner and will go on later."""

    at_ms: int
    request: HttpReceived


@dataclass(frozen=True, slots=True)
class HttpFinished:
    at_ms: int
    request: HttpReceived


@dataclass(frozen=True, slots=True)
class AnnounceDue:
    """The event of a changed ip:port client is handled."""

    at_ms: int
    client: str


@dataclass(frozen=True, slots=True)
class BeatCheckDue:
    at_ms: int


@dataclass(frozen=True, slots=True)
class MembersListed:
    """The member list was read; `others` are all members but the reader."""

    at_ms: int
    others: tuple[str, ...]


Event = (
    ClientConnected
    | InstanceRegistered
    | InstanceDeregistered
    | ClientDisconnected
    | RequestReceived
    | CallEnded
    | TaskDue
    | VerifyDue
    | LeaseCheckDue
    | ReportDue
    | LoadDue
    | HttpReceived
    | HttpEntered
    | HttpFinished
    | AnnounceDue
    | BeatCheckDue
    | MembersListed
)


@dataclass(frozen=True, slots=True)
class Send:
    """A request to a peer. Its end comes back as `CallEnded`."""

    target: str
    request: Request


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the `RequestReceived` of this step."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Forward:
    """An HTTP request goes on to the node that is believed to own the client; its answer is relayed."""

    target: str


Output = Send | Reply | Forward
