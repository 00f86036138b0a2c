"""The columns that only a search has: the remaining events of the environment, and the periods that have passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distro_model.value import value


@value(frozen=True, slots=True)
class Budget:
    """The remaining events of the environment: pairs (field of `Bounds`, count), ascending."""

    left: tuple[tuple[str, int], ...]

    def of(self, name: str) -> int:
        return dict(self.left).get(name, 0)

    def less(self, name: str) -> Budget | None:
        """Decrement `name`; None when it is 0 already."""
        left = dict(self.left)
        return Budget(tuple({**left, name: left[name] - 1}.items())) if left.get(name) else None


@value(frozen=True, slots=True)
class Clock:
    """Periods passed, and the nodes (by position) that have fired each timer in this period. Constant without
    periods."""

    period: int = 0
    verified: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    done: tuple[str, ...] = ()  # by clients
    loaded: tuple[str, ...] = ()
    slept: tuple[str, ...] = ()
    """The nodes that have slept since their last lease check."""

    def fired(self, timer: str, who: str, last: int) -> Clock | None:
        """The columns after `who` has fired this timer (the name of a field above); None when it had fired before in
        this period, unless this is the last period."""
        already: tuple[str, ...] = getattr(self, timer)
        if who in already:
            return self if self.period == last else None
        after: dict[str, Any] = {timer: tuple(sorted((*already, who)))}
        return replace(self, **after)

    def woken(self, node: str) -> Clock:
        return replace(self, slept=tuple(each for each in self.slept if each != node))
