"""The views of the members about one subject, round by round: since when they differ, and which view does not change.

A change takes a second or two to every other member, and a verify round five. So members have diverged about a subject
when they differ in two rounds and one of them has the same view in both, although another member already had another
view in the first: the change had the whole time to arrive. A member whose view changes is catching up, or the subject
itself changes often. The same rule holds for clients, for lists, and for member lists.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Views = Mapping[str, str]
"""Member -> its view, as a text that is equal where members agree."""


@dataclass(frozen=True, slots=True)
class Difference(Generic[Key]):
    """`stuck`: the members with an unchanged view, although another member already had a different one."""

    key: Key
    seen_for_ms: int
    views: Views
    stuck: frozenset[str]


@dataclass(slots=True)
class DifferenceTracker(Generic[Key]):
    """Subjects of one kind. `update` takes all subjects that were read. `is_whole`: a missing subject no longer exists;
    otherwise it was not read."""

    is_whole: bool = True
    _before: dict[Key, Views] = field(default_factory=dict)
    _since_ms: dict[Key, int] = field(default_factory=dict)

    @property
    def open(self) -> tuple[Key, ...]:
        """The subjects about which members differed in the last round."""
        return tuple(self._since_ms)

    def update(self, now: Mapping[Key, Views], now_ms: int) -> list[Difference[Key]]:
        found = []
        if self.is_whole:
            self._since_ms = {key: since_ms for key, since_ms in self._since_ms.items() if key in now}
        for key, views in now.items():
            if not differ(views):
                self._since_ms.pop(key, None)
                continue
            since_ms = self._since_ms.setdefault(key, now_ms)
            stuck = _stuck(self._before.get(key, {}), views)
            if stuck:
                found.append(Difference(key, now_ms - since_ms, views, stuck))
        self._before = dict(now)
        return found


def differ(views: Views) -> bool:
    return len(set(views.values())) > 1


def _stuck(before: Views, now: Views) -> frozenset[str]:
    both = [member for member in now if member in before]
    if not differ({member: before[member] for member in both}) or not differ({member: now[member] for member in both}):
        return frozenset()
    return frozenset(member for member in both if before[member] == now[member])
