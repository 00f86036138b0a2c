"""A Distro request on its way from one member to another, and the journal that records what happens to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from distro_conformance.wire.messages import DistroCall
from distro_protos import Message
from distro_traces.event import Outcome


@dataclass(frozen=True, slots=True)
class Carried:
    """A Distro request on a link: sender, receiver and content, with the id that its four trace rows share."""

    id: str
    source: str
    target: str
    call: DistroCall


class Journal(Protocol):
    """Records every Distro call on a link, in the order of events. See `recording/journal.py`."""

    def new_id(self) -> str: ...
    def sent(self, carried: Carried) -> None: ...
    def received(self, carried: Carried) -> None: ...
    def replied(self, carried: Carried, outcome: Outcome, reply: Message) -> None: ...
    def ended(self, carried: Carried, outcome: Outcome) -> None: ...
    def fault(self, source: str, target: str, what: str) -> None: ...
