"""What members say about one thing, look by look: since when they differ, and which of them does not move.

A change needs a second or two to every other member, and a verify five. So members have diverged about something when
they differ in two looks and one of them still says in the second what it said in the first, although another one said
something else even then: it had the whole time to hear of that. A member that moves is catching up, or the thing is
busy. The same rule holds for clients, for lists, and for what members say of each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Views = Mapping[str, str]
"""Member -> what it says, as a text that is equal where it agrees."""


@dataclass(frozen=True, slots=True)
class Difference(Generic[Key]):
    """`stuck`: the members that say what they said, while another one said something else already."""

    key: Key
    seen_for_ms: int
    views: Views
    stuck: frozenset[str]


@dataclass(slots=True)
class Differing(Generic[Key]):
    """Things of one kind. `look` is given all that were looked at. `is_whole`: one that is missing is there no more;
    otherwise it was not looked at."""

    is_whole: bool = True
    _before: dict[Key, Views] = field(default_factory=dict)
    _since_ms: dict[Key, int] = field(default_factory=dict)

    @property
    def open(self) -> tuple[Key, ...]:
        """Those about which members differed when they were looked at last."""
        return tuple(self._since_ms)

    def look(self, now: Mapping[Key, Views], now_ms: int) -> list[Difference[Key]]:
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
