"""One possible state of a node that is observed from outside: what it holds, and the calls and events in progress."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from distro_model.events import Event
from distro_model.messages import Answer, CallResult, Request
from distro_model.node import NodeState


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event of the node at some time in a window; `until_ms` None: its end is not known yet."""

    key: str
    event: Event
    from_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Unseen:
    """A request that the node may have sent and that was not observed."""

    target: str
    request: Request
    at_ms: int = field(compare=False)
    """The latest time. Of states that differ in nothing else one is enough, with the latest times."""

    @property
    def place(self) -> tuple[str, str]:
        return self.target, str(self.request)


@dataclass(frozen=True, slots=True)
class Possible:
    node: NodeState
    waiting: tuple[Waiting, ...] = ()
    answers: tuple[tuple[str, Answer], ...] = ()
    """For events that have happened and whose answer is not observed yet."""
    unseen: tuple[Unseen, ...] = ()
    """In the order of their targets."""

    def waiting_for(self, key: str) -> Waiting | None:
        return next((each for each in self.waiting if each.key == key), None)

    def happening_by(self, key: str, until_ms: int, instead: Event | None = None) -> Possible:
        """It happens by then, or the other event in its place."""
        waiting = (
            replace(each, until_ms=until_ms, event=instead or each.event) if each.key == key else each
            for each in self.waiting
        )
        return replace(self, waiting=tuple(waiting))

    def answer_to(self, key: str) -> CallResult | None:
        return next((answer.result for name, answer in self.answers if name == key), None)

    def having_sent(self, unseen: Iterable[Unseen]) -> Possible:
        return replace(self, unseen=tuple(sorted((*self.unseen, *unseen), key=attrgetter("place"))))

    def is_later(self, other: Possible) -> bool:
        """Equal to the other, except for messages that may have been sent later."""
        return any(mine.at_ms > its.at_ms for mine, its in zip(self.unseen, other.unseen, strict=True))

    def or_later(self, other: Possible) -> Possible:
        """The merged state of both, which are equal."""
        pairs = zip(self.unseen, other.unseen, strict=True)
        return replace(self, unseen=tuple(max(pair, key=attrgetter("at_ms")) for pair in pairs))

    def without_answer(self, key: str) -> Possible:
        return replace(self, answers=tuple(answer for answer in self.answers if answer[0] != key))


def merged(states: Iterable[Possible]) -> frozenset[Possible]:
    """Each once, with the latest times."""
    found: dict[Possible, Possible] = {}
    for each in states:
        known = found.get(each)
        found[each] = each if known is None else known.or_later(each)
    return frozenset(found.values())
