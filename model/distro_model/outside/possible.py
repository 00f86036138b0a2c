"""One state in which a node may be that is seen from outside: what it holds, and what is under way around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from distro_model.events import Event
from distro_model.messages import Answer, CallResult, Request
from distro_model.node import NodeState


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that happens to the node at some time in a window; `until_ms` None: its end is not known yet."""

    key: str
    event: Event
    from_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A request that the node may have sent and nobody has observed."""

    target: str
    request: Request
    at_ms: int


@dataclass(frozen=True, slots=True)
class Possible:
    node: NodeState
    waiting: tuple[Waiting, ...] = ()
    answers: tuple[tuple[str, Answer], ...] = ()
    """Of what has happened and whose answer is not observed yet."""
    unseen: tuple[Unseen, ...] = ()

    def waiting_for(self, key: str) -> Waiting | None:
        return next((each for each in self.waiting if each.key == key), None)

    def answer_to(self, key: str) -> CallResult | None:
        return next((answer.result for name, answer in self.answers if name == key), None)

    def without_answer(self, key: str) -> Possible:
        return replace(self, answers=tuple(answer for answer in self.answers if answer[0] != key))
