"""The named choices of the bounded cluster: the next transitions, each as a value whose text is a sentence.

Choices that an environment also has on a clock are its actions; automatic events, and choices that only a search has,
are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distro_model import actions
from distro_model.actions import Action as EnvironmentAction
from distro_model.actions import Connect, Crash, Deregister, Disconnect, Register, RegisterBatch, Restart
from distro_model.events import HttpReceived
from distro_model.messages import Answer, CallResult, Request
from distro_model.node import Action
from distro_model.work import Apply

ClientActs = Connect | Register | RegisterBatch | Deregister | Disconnect
NodeFails = Crash | Restart


@dataclass(frozen=True, slots=True)
class TaskRuns:
    node: str
    target: str
    client: str
    action: Action

    def __str__(self) -> str:
        return f"{self.node} executes its {self.action} task of {self.client} for {self.target}"


@dataclass(frozen=True, slots=True)
class AtNode:
    """An automatic event of a node; subclasses define it."""

    node: str
    does: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.node} {self.does}"


class VerifyRuns(AtNode):
    does = "starts a verify round"


class LoadRuns(AtNode):
    does = "starts its load again"


class LeaseCheckRuns(AtNode):
    does = "checks its leases"


class LoadIsInterrupted(AtNode):
    does = "is interrupted while it loads"


class Pauses(AtNode):
    does = "sleeps for longer than a lease"


class EndsConnectionCheck(AtNode):
    does = "closes the connections that did not answer"


@dataclass(frozen=True, slots=True)
class ChecksConnections:
    node: str
    idle: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node} probes {', '.join(self.idle)}, if it probes at all"


@dataclass(frozen=True, slots=True)
class AnswerIsHandled:
    node: str
    client: str

    def __str__(self) -> str:
        return f"{self.node} has handled the answer of {self.client}"


@dataclass(frozen=True, slots=True)
class AtClient:
    """A client's activity that is no action on its data; subclasses define it."""

    client: str
    does: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.client} {self.does}"


class Answers(AtClient):
    does = "answers a probe"


@dataclass(frozen=True, slots=True)
class OperatorSets:
    address: str
    value: str

    def __str__(self) -> str:
        return f"an operator sets {self.value} for {self.address}"


@dataclass(frozen=True, slots=True)
class DeletesMetadata:
    node: str
    address: str

    def __str__(self) -> str:
        return f"{self.node} deletes the metadata of {self.address}, a minute after its last publisher went"


@dataclass(frozen=True, slots=True)
class InsideNode:
    """An event inside one node that cannot be caused or observed from outside; subclasses define it."""

    node: str
    about: object
    does: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.node} {self.does}: {self.about}"


class HandlesEvent(InsideNode):
    does = "handles its event"


class LosesEvent(InsideNode):
    does = "loses its event"


class StartsSetup(InsideNode):
    does = "finds the transport open"


class FinishesSetup(InsideNode):
    does = "inserts the connection"


class StartsRequest(InsideNode):
    does = "looks up the client"


class FinishesRequest(InsideNode):
    does = "continues the request"


class AnswersEarly(InsideNode):
    does = "answers a request of a connection that is not set up"


@dataclass(frozen=True, slots=True)
class Strays:
    """A request about a client that its sender does not own."""

    node: str
    request: Request

    def __str__(self) -> str:
        return f"a stray {self.request} arrives at {self.node}"


@dataclass(frozen=True, slots=True)
class AppliesInPart:
    node: str
    apply: Apply

    def __str__(self) -> str:
        apply = self.apply
        if apply.done < len(apply.content):
            step = f"puts {apply.content[apply.done][0]}"
        else:
            step = "removes what it does not mention" if apply.done == len(apply.content) else "sets its revision"
        return f"{self.node} applies CHANGE {apply.client} revision {apply.revision}: {step}"


@dataclass(frozen=True, slots=True)
class ReadsRevision:
    node: str
    target: str
    client: str

    def __str__(self) -> str:
        return f"{self.node} reads the revision of {self.client} and sends it to {self.target}"


@dataclass(frozen=True, slots=True)
class PeriodPasses:
    def __str__(self) -> str:
        return "a verify period passes"


@dataclass(frozen=True, slots=True)
class OnLink:
    """An event of one call; subclasses define it, and how the sender observes the end of the call."""

    source: str
    target: str
    request: Request
    outcome: CallResult | None = None
    """None: its sender does not observe its end now."""
    fate: ClassVar[str]
    decided_by: ClassVar[type[actions.RequestAction] | None] = None
    """The action that causes it on a clock, for a call that a link holds; None: it is automatic, or no action causes
    it."""

    def __str__(self) -> str:
        return f"{self.source}->{self.target}: {self.request} {self.fate}"


@dataclass(frozen=True, slots=True)
class OnConnection:
    """An event of the connection from one node to another; subclasses define it."""

    source: str
    target: str
    fate: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.source}->{self.target}: the connection {self.fate}"


class BreaksSilently(OnConnection):
    fate = "breaks silently"


class Reconnects(OnConnection):
    fate = "fails its health check and is replaced"


class Delivers(OnLink):
    fate = "arrives and is answered"
    decided_by = actions.Deliver


class Overtakes(OnLink):
    fate = "arrives before one that was sent earlier, and is answered"
    decided_by = actions.Deliver


class Duplicates(OnLink):
    fate = "arrives, and will arrive again"


class Loses(OnLink):
    fate = "is lost"
    decided_by = actions.Drop


class LosesReply(OnLink):
    fate = "arrives, its reply is lost"
    decided_by = actions.LoseReply


class RepliesLate(OnLink):
    fate = "arrives, its reply is on its way"
    decided_by = actions.AnswerLate


class ReplyArrives(OnLink):
    fate = "is answered at last"
    decided_by = actions.Reply


class Swallows(OnLink):
    fate = "is acknowledged and not delivered"
    decided_by = actions.Swallow


class Garbles(OnLink):
    fate = "arrives, its answer is of an unknown type"
    decided_by = actions.Garble


class Raises(OnLink):
    fate = "arrives, and an exception leaves its handler"


class Mistypes(OnLink):
    fate = "arrives as data of a type that its receiver does not know"
    decided_by = actions.Mistype


class BeginsToApply(OnLink):
    fate = "arrives and begins to be applied"


class AppliesLastPart(OnLink):
    fate = "is applied, and answered"


class TimesOut(OnLink):
    fate = "times out"


class Fails(OnLink):
    fate = "finds no connection"


class Abandons(OnLink):
    fate = "is given up by its sender, and is still on its way"


class Arrives(OnLink):
    fate = "arrives although its sender has given it up"


def _asked(request: HttpReceived) -> str:
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
        return f"{_asked(self.request)} {way}: {self.answer.result}"


@dataclass(frozen=True, slots=True)
class HttpEnters:
    node: str
    request: HttpReceived

    def __str__(self) -> str:
        return f"{_asked(self.request)} at {self.node}, which finds no such client and is interrupted"


@dataclass(frozen=True, slots=True)
class HttpEnds:
    node: str
    request: HttpReceived

    def __str__(self) -> str:
        return f"{self.node} continues the request in which {_asked(self.request)}"


@dataclass(frozen=True, slots=True)
class AnnounceRuns:
    node: str
    client: str

    def __str__(self) -> str:
        return f"{self.node} handles the event that {self.client} has changed"


class BeatCheckRuns(AtNode):
    does = "checks the beats"


@dataclass(frozen=True, slots=True)
class Lapses:
    client: str

    def __str__(self) -> str:
        return f"{self.client} is silent for longer than a time-out"


@dataclass(frozen=True, slots=True)
class ReportEnds:
    node: str
    other: str
    answered: bool

    def __str__(self) -> str:
        return f"{self.node} reports to {self.other}, which {'answers' if self.answered else 'is not there'}"


@dataclass(frozen=True, slots=True)
class FalseAlarm:
    node: str
    other: str

    def __str__(self) -> str:
        return f"{self.node} cannot reach {self.other} for a moment"


@dataclass(frozen=True, slots=True)
class ListRead:
    node: str
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.node} reads its member list: {', '.join((self.node, *self.others))}"


OfIpClients = HttpAsks | HttpEnters | HttpEnds | AnnounceRuns | Lapses
OfMembers = ReportEnds | FalseAlarm | ListRead
Transition = (
    EnvironmentAction
    | TaskRuns
    | AtNode
    | AtClient
    | ChecksConnections
    | AnswerIsHandled
    | OperatorSets
    | DeletesMetadata
    | InsideNode
    | PeriodPasses
    | OnConnection
    | OnLink
    | Strays
    | AppliesInPart
    | ReadsRevision
    | OfIpClients
    | OfMembers
)


def labelled(label: object) -> Transition:
    """The label of a transition that a search has found."""
    assert isinstance(label, Transition)  # every chain of the bounded cluster has a label
    return label
