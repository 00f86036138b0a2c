"""Inputs and outputs of one node: the alphabet of the automaton.

Each input carries `at_ms`, the time at which it happens, because a node has no clock. In the bounded cluster of the
explorer `at_ms` is always 0 and a `…Due` input is a choice of the environment instead of a point in time.
"""

from __future__ import annotations

from enum import StrEnum

from distro_model.local_events import LocalEvent
from distro_model.messages import Answer, Request
from distro_model.value import value
from distro_model.work import Apply, Read


@value(frozen=True, slots=True)
class BaseEvent:
    """An event without further data; subclasses define it."""

    at_ms: int


@value(frozen=True, slots=True)
class BaseClientEvent:
    """An event about one client; subclasses define it."""

    at_ms: int
    client: str


@value(frozen=True, slots=True)
class Arrived:
    """A peer's request arrived, in a form that subclasses define; the rule for it ends with exactly one `Reply`."""

    at_ms: int
    source: str
    request: Request


class ClientConnected(BaseClientEvent): ...


class SetupStarted(BaseClientEvent):
    """The first half of a connection's set-up: its transport was found to be open, nothing is inserted yet (B40)."""


class SetupFinished(BaseClientEvent):
    """The second half: the connection is inserted, and with it its client."""


@value(frozen=True, slots=True)
class InstanceRegistered:
    """A client's request; like that for a deregistration or a batch, the rule for it ends with exactly one `Reply`."""

    at_ms: int
    client: str
    service: str
    instance: str


@value(frozen=True, slots=True)
class InstanceDeregistered:
    at_ms: int
    client: str
    service: str


@value(frozen=True, slots=True)
class BatchRegistered:
    """Several instances of one client under one service, replacing what it published there."""

    at_ms: int
    client: str
    service: str
    instances: tuple[str, ...]


InstanceRequest = InstanceRegistered | InstanceDeregistered | BatchRegistered


@value(frozen=True, slots=True)
class RequestStarted:
    """The first half of a client's request: its client is looked up, and not changed yet (B25)."""

    at_ms: int
    request: InstanceRequest


@value(frozen=True, slots=True)
class RequestFinished:
    """The second half: the client is changed, the change published, the request answered."""

    at_ms: int
    request: InstanceRequest


class ClientDisconnected(BaseClientEvent): ...


class RequestReceived(Arrived):
    """It is handled."""


@value(frozen=True, slots=True)
class CallEnded:
    """A call of this node to `target` has ended, with any result."""

    at_ms: int
    target: str
    request: Request
    answer: Answer


@value(frozen=True, slots=True)
class TaskDue:
    """The delay task of (client, target) is taken from the queue and executed."""

    at_ms: int
    client: str
    target: str


class VerifyDue(BaseEvent): ...


@value(frozen=True, slots=True)
class LeaseCheckDue:
    at_ms: int
    last_ms: int | None = None
    """When the check before this one ran; None: when it was due. Like the number of a report it belongs to the timer:
    checks without effect are not passed to the node, so the node cannot know it."""


class ReportDue(BaseEvent): ...


class ReportToNotUpDue(BaseEvent): ...


class LoadDue(BaseEvent): ...


@value(frozen=True, slots=True)
class ConnectionCheckDue:
    """The server checks its connections and finds that those of `idle` were idle for too long."""

    at_ms: int
    idle: tuple[str, ...]


class DetectionAnswered(BaseClientEvent):
    """A client answers a probe: the first half of the server's handling of the answer."""


class DetectionHandled(BaseClientEvent):
    """The second half. Another thread may act between the two."""


class ConnectionCheckEnds(BaseEvent):
    """All answers were counted, or the wait for them is over."""


class HandlingRaised(Arrived):
    """An exception left its handler before anything was done."""


class UnknownReceived(Arrived):
    """It has a type that nothing here handles."""


class LoadInterrupted(BaseEvent):
    """An exception left the loop over the members that are asked for a snapshot."""


@value(frozen=True, slots=True)
class OperatorSet:
    """An operator's change of an instance has been agreed on by all nodes."""

    at_ms: int
    address: str
    value: str


@value(frozen=True, slots=True)
class MetadataDeleted:
    """All nodes have agreed that the metadata of an instance is deleted with it."""

    at_ms: int
    address: str


@value(frozen=True, slots=True)
class LocalEventDue:
    """The first event that waits in one of the node's own queues reaches its subscriber."""

    at_ms: int
    event: LocalEvent


@value(frozen=True, slots=True)
class ApplyDue:
    """The next step of a CHANGE that is not applied at once (B05). The last one ends with one `Reply`."""

    at_ms: int
    apply: Apply


@value(frozen=True, slots=True)
class ReadDue:
    """The revision is read to content that was read before (B05), and the CHANGE is sent."""

    at_ms: int
    read: Read


class HttpAction(StrEnum):
    REGISTER = "registers"
    DEREGISTER = "deregisters"
    BEAT = "beats"
    LIGHT_BEAT = "beats without its instance"


BEATS = (HttpAction.BEAT, HttpAction.LIGHT_BEAT)


@value(frozen=True, slots=True)
class HttpReceived:
    """A request of an ip:port client, answered by `Reply` or `Forward`. `forwarded`: by a node, not the client."""

    at_ms: int
    client: str
    action: HttpAction
    service: str
    instance: str
    forwarded: bool = False
    by_v2: bool = False
    """By version 2 of the HTTP API (docs/protocol #http-v2)."""


@value(frozen=True, slots=True)
class HttpEntered:
    """The request has reached its owner and will go on later."""

    at_ms: int
    request: HttpReceived


@value(frozen=True, slots=True)
class HttpFinished:
    at_ms: int
    request: HttpReceived


class AnnounceDue(BaseClientEvent):
    """The event of a changed ip:port client is handled."""


@value(frozen=True, slots=True)
class BeatCheckDue:
    """The beats of ip:port clients are checked: of those that are due, or of all."""

    at_ms: int
    of: tuple[str, ...] | None = None


@value(frozen=True, slots=True)
class MembersListed:
    """The member list was read; `others` are all members except the reader."""

    at_ms: int
    others: tuple[str, ...]


Event = (
    ClientConnected
    | SetupStarted
    | SetupFinished
    | InstanceRegistered
    | InstanceDeregistered
    | BatchRegistered
    | RequestStarted
    | RequestFinished
    | ClientDisconnected
    | RequestReceived
    | CallEnded
    | TaskDue
    | VerifyDue
    | LeaseCheckDue
    | ReportDue
    | ReportToNotUpDue
    | LoadDue
    | ConnectionCheckDue
    | DetectionAnswered
    | DetectionHandled
    | ConnectionCheckEnds
    | OperatorSet
    | MetadataDeleted
    | LocalEventDue
    | HandlingRaised
    | UnknownReceived
    | LoadInterrupted
    | ApplyDue
    | ReadDue
    | HttpReceived
    | HttpEntered
    | HttpFinished
    | AnnounceDue
    | BeatCheckDue
    | MembersListed
)


@value(frozen=True, slots=True)
class Send:
    """A request to a peer. Its end comes back as `CallEnded`."""

    target: str
    request: Request


@value(frozen=True, slots=True)
class Reply:
    """The answer to the request of this step, a peer's or a client's."""

    answer: Answer


@value(frozen=True, slots=True)
class Forward:
    """An HTTP request is forwarded to the node that is believed to own the client; its answer is relayed."""

    target: str


Output = Send | Reply | Forward
