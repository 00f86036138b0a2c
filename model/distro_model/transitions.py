"""The named choices of the bounded cluster: what may happen next, each as a value that says itself in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distro_model.actions import Connect, Crash, Deregister, Disconnect, Register, Restart
from distro_model.events import HttpReceived
from distro_model.messages import Answer, CallResult, Request
from distro_model.node import Action


@dataclass(frozen=True, slots=True)
class ClientActs:
    action: Connect | Register | Deregister | Disconnect

    def __str__(self) -> str:
        return str(self.action)


@dataclass(frozen=True, slots=True)
class NodeFails:
    action: Crash | Restart

    def __str__(self) -> str:
        return str(self.action)


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
    """A node does something by itself. The subclass says what."""

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


class Pauses(AtNode):
    does = "sleeps for longer than a lease"


@dataclass(frozen=True, slots=True)
class PeriodPasses:
    def __str__(self) -> str:
        return "a verify period passes"


@dataclass(frozen=True, slots=True)
class OnLink:
    """Something happens to one call. The subclass says what, and how the sender hears that the call has ended."""

    source: str
    target: str
    request: Request
    outcome: CallResult | None = None
    """None: its sender does not hear of its end now."""
    fate: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.source}->{self.target}: {self.request} {self.fate}"


class Delivers(OnLink):
    fate = "arrives and is answered"


class Overtakes(OnLink):
    fate = "arrives before one that was sent earlier, and is answered"


class Duplicates(OnLink):
    fate = "arrives, and will arrive again"


class Loses(OnLink):
    fate = "is lost"


class LosesReply(OnLink):
    fate = "arrives, its reply is lost"


class RepliesLate(OnLink):
    fate = "arrives, its reply is on its way"


class ReplyArrives(OnLink):
    fate = "is answered at last"


class Swallows(OnLink):
    fate = "is acknowledged and not delivered"


class Garbles(OnLink):
    fate = "arrives, its answer cannot be read"


class TimesOut(OnLink):
    fate = "times out"


class Fails(OnLink):
    fate = "finds no connection"


class Abandons(OnLink):
    fate = "is given up by its sender, and is still on its way"


class Arrives(OnLink):
    fate = "arrives although its sender has given it up"


def _asked(request: HttpReceived) -> str:
    return f"{request.client} {request.action} {request.instance or request.service}"


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
        return f"{self.node} goes on with the request in which {_asked(self.request)}"


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
Transition = ClientActs | NodeFails | TaskRuns | AtNode | PeriodPasses | OnLink | OfIpClients | OfMembers
