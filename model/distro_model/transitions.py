"""The labels of a search's transitions: each says in a sentence what happened, and how a clock comes to do the same.

A choice that an environment has on a clock too is its action. What happens to one call is `OnLink`, a request of the
HTTP API is `HttpAsks`, and any other event `Happens`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from distro_model import actions
from distro_model.actions import Action
from distro_model.events import HttpAction, HttpReceived
from distro_model.messages import Answer, CallResult, Request, subject_of

ClientActs = actions.Connect | actions.Register | actions.RegisterBatch | actions.Deregister | actions.Disconnect
NodeFails = actions.Crash | actions.Restart


class Cause(Enum):
    """What makes an event happen on a clock, where no action does."""

    NOTHING = auto()
    INSIDE = auto()
    """The node handles what it has begun, at once."""
    TASK = auto()
    TIMER = auto()
    LEASE = auto()
    """A timer that fires within minutes."""


AUTOMATIC = (Cause.TASK, Cause.TIMER, Cause.LEASE)


@dataclass(frozen=True, slots=True)
class Happens:
    """An event at a node or a client; `at` is empty where it concerns no single one."""

    at: str
    what: str
    cause: Cause = Cause.NOTHING

    def __str__(self) -> str:
        return f"{self.at} {self.what}".lstrip()


class CallStep(Enum):
    """What happens to a call, and the action that decides so for a call that a link holds; without one it is automatic,
    or no action causes it."""

    def __init__(self, text: str, decided_by: type[actions.RequestAction] | None = None) -> None:
        self.text, self.decided_by = text, decided_by

    DELIVERED = "arrives and is answered", actions.Deliver
    OVERTAKES = "arrives before one that was sent earlier, and is answered", actions.Deliver
    DUPLICATED = "arrives, and will arrive again"
    LOST = "is lost", actions.Drop
    REPLY_LOST = "arrives, its reply is lost", actions.LoseReply
    REPLY_LATE = "arrives, its reply is on its way", actions.AnswerLate
    REPLY_ARRIVES = "is answered at last", actions.Reply
    SWALLOWED = "is acknowledged and not delivered", actions.Swallow
    GARBLED = "arrives, its answer is of an unknown type", actions.Garble
    RAISES = "arrives, and an exception leaves its handler"
    MISTYPED = "arrives as data of a type that its receiver does not know", actions.Mistype
    BEGINS_TO_APPLY = "arrives and begins to be applied"
    APPLIES_LAST_PART = "is applied, and answered"
    TIMES_OUT = "times out"
    FAILS = "finds no connection"
    ABANDONED = "is given up by its sender, and is still on its way"
    ARRIVES_LATE = "arrives although its sender has given it up"


@dataclass(frozen=True, slots=True)
class OnLink:
    source: str
    target: str
    request: Request
    step: CallStep
    outcome: CallResult | None = None
    """How the sender observes the end of the call; None: it does not observe it now."""

    def __str__(self) -> str:
        return f"{self.source}->{self.target}: {self.request} {self.step.text}"


def asked(request: HttpReceived) -> str:
    by = " by v2" if request.by_v2 else ""
    return f"{request.client} {request.action} {request.instance or request.service}{by}"


@dataclass(frozen=True, slots=True)
class HttpAsks:
    node: str
    handling: str
    request: HttpReceived
    answer: Answer

    def __str__(self) -> str:
        way = f"at {self.node}" + ("" if self.node == self.handling else f", which forwards it to {self.handling}")
        return f"{asked(self.request)} {way}: {self.answer.result}"


Transition = Action | Happens | OnLink | HttpAsks


def labelled(label: object) -> Transition:
    """The label of a transition that a search has found."""
    assert isinstance(label, Transition)  # every chain of the bounded cluster has a label
    return label


def cause_of(label: Transition) -> Cause:
    match label:
        case Happens():
            return label.cause
        case OnLink(step=CallStep.TIMES_OUT | CallStep.FAILS):
            return Cause.TIMER
    return Cause.NOTHING


HTTP_REQUESTS: Mapping[HttpAction, type[actions.HttpRequest]] = {
    HttpAction.REGISTER: actions.HttpRegister,
    HttpAction.DEREGISTER: actions.HttpDeregister,
    HttpAction.BEAT: actions.HttpBeat,
    HttpAction.LIGHT_BEAT: actions.HttpLightBeat,
}


class NoActionError(ValueError):
    """No action of an environment has this effect. The message states why."""


def action_of(label: Transition) -> Action:
    """The action that does the same on a clock, for an event that is not automatic. Raises NoActionError."""
    match label:
        case HttpAsks(node, _, request):
            instance = request.instance or request.client.partition("#")[0]
            return HTTP_REQUESTS[request.action](request.service, instance, node, request.by_v2)
        case OnLink(source, target, request, step) if step.decided_by is not None:
            about = (str(request.operation), subject_of(request))
            if issubclass(step.decided_by, actions.Fault):
                return step.decided_by(source, target, *about, held=True)
            return step.decided_by(source, target, *about)
        case Happens(cause=Cause.INSIDE):
            raise NoActionError(f"no action controls events inside a node: {label}")
        case Happens() | OnLink():
            raise NoActionError(f"no action has this effect: {label}")
    return label
