"""The named choices of the bounded cluster: what may happen next, each as a value that says itself in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distro_model.actions import Connect, Crash, Deregister, Disconnect, Register, Restart
from distro_model.messages import CallResult, Request
from distro_model.node import Action
from distro_model.work import Apply


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


class LoadIsInterrupted(AtNode):
    does = "is interrupted while it loads"


class Pauses(AtNode):
    does = "sleeps for longer than a lease"


@dataclass(frozen=True, slots=True)
class Strays:
    """A request about a client, from nobody who should send it."""

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


class Raises(OnLink):
    fate = "arrives, and an exception leaves its handler"


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


Transition = ClientActs | NodeFails | TaskRuns | AtNode | PeriodPasses | OnLink | Strays | AppliesInPart | ReadsRevision
