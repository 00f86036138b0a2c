"""The named choices of the untimed mode: what may happen next, each as a value that says itself in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from distro_model.actions import Connect, Crash, Deregister, Disconnect, Register, Restart
from distro_model.messages import Request
from distro_model.network import Call
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
class VerifyRuns:
    node: str

    def __str__(self) -> str:
        return f"{self.node} starts a verify round"


@dataclass(frozen=True, slots=True)
class LoadRuns:
    node: str

    def __str__(self) -> str:
        return f"{self.node} starts its load again"


@dataclass(frozen=True, slots=True)
class OnLink:
    """Something happens to one call. The subclass says what."""

    source: str
    target: str
    call: Call

    @property
    def request(self) -> Request:
        return self.call.request

    def _text(self, fate: str) -> str:
        return f"{self.source}->{self.target}: {self.request} {fate}"


@dataclass(frozen=True, slots=True)
class Delivers(OnLink):
    def __str__(self) -> str:
        return self._text("arrives and is answered")


@dataclass(frozen=True, slots=True)
class Loses(OnLink):
    def __str__(self) -> str:
        return self._text("is lost")


@dataclass(frozen=True, slots=True)
class LosesReply(OnLink):
    def __str__(self) -> str:
        return self._text("arrives, its reply is lost")


@dataclass(frozen=True, slots=True)
class Swallows(OnLink):
    def __str__(self) -> str:
        return self._text("is acknowledged and not delivered")


@dataclass(frozen=True, slots=True)
class TimesOut(OnLink):
    def __str__(self) -> str:
        return self._text("times out")


Transition = (
    ClientActs | NodeFails | TaskRuns | VerifyRuns | LoadRuns | Delivers | Loses | LosesReply | Swallows | TimesOut
)
