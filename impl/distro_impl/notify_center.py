"""Events between the rooms of one node: who makes something happen does not know who listens.

An event is a value of a class of its own, which lives in the room where it happens. Delivered at once and in order, on
the spot: queues of their own for each kind of event are what B08 is about. Source: docs/protocol #notify-events and
#notify-queues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E")


class NotifyCenter:
    def __init__(self) -> None:
        self._subscribers: defaultdict[type, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, kind: type[E], subscriber: Callable[[E], None]) -> None:
        self._subscribers[kind].append(subscriber)

    def publish(self, event: object) -> None:
        for subscriber in self._subscribers[type(event)]:
            subscriber(event)
