"""The content of a sequence diagram, independent of how it is drawn.

Lifelines are clients and nodes by name; items are in the order in which they happened. An item that is `bad` is the
first wrong event, which a reader looks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Delivery(StrEnum):
    """How a message ends, which decides how its arrow is drawn."""

    ARRIVED = "arrived"
    LOST = "lost"
    SWALLOWED = "swallowed"
    FAILED = "failed"
    """It arrived, and its sender gets a failure or no answer."""


@dataclass(frozen=True, slots=True)
class Message:
    """An arrow. `reply`: the answer that the sender gets, shown under the arrow; empty if it gets none at that time."""

    source: str
    target: str
    text: str
    delivery: Delivery = Delivery.ARRIVED
    reply: str = ""
    bad: bool = False
    at_client: bool = False
    """Its source is a client."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happens at one place."""

    at: str
    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the environment does, across all lifelines: a cut, a crash, time."""

    text: str
    bad: bool = False


Item = Message | Note | Fault


@dataclass(frozen=True, slots=True)
class Sequence:
    lifelines: tuple[str, ...]
    items: tuple[Item, ...]
    title: str = "The run as a sequence of messages"
    before: int = 0
    after: int = 0
    """The number of items of the run that are not in this window."""

    def window(self, first: int, count: int) -> Sequence:
        """Part of a long run: `count` items from `first` on."""
        first = max(0, first)
        shown = self.items[first : first + count]
        after = self.after + len(self.items) - first - len(shown)
        return Sequence(self.lifelines, shown, self.title, self.before + first, max(0, after))
