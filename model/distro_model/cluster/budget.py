"""The columns of a search alone: what the environment may still do, and which periods have passed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from distro_model.value import value


@value(frozen=True, slots=True)
class Budget:
    """What the environment may still do: pairs (field of `Bounds`, how often), ascending."""

    left: tuple[tuple[str, int], ...]

    def of(self, name: str) -> int:
        return dict(self.left).get(name, 0)

    def less(self, name: str) -> Budget | None:
        """One less of `name`; None when there is none left."""
        left = dict(self.left)
        return Budget(tuple({**left, name: left[name] - 1}.items())) if left.get(name) else None


@value(frozen=True, slots=True)
class Clock:
    """Periods passed, and who has fired which timer in this one (positions of nodes). Constant without periods."""

    period: int = 0
    verified: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    done: tuple[str, ...] = ()  # by clients
    loaded: tuple[str, ...] = ()
    slept: tuple[str, ...] = ()
    """Who has slept since its last lease check."""

    def fired(self, timer: str, who: str, last: int) -> Clock | None:
        """After `who` has fired this timer, the name of a field above; None when it had before in this period, unless
        that is the last one."""
        already: tuple[str, ...] = getattr(self, timer)
        if who in already:
            return self if self.period == last else None
        after: dict[str, Any] = {timer: tuple(sorted((*already, who)))}
        return replace(self, **after)

    def woken(self, node: str) -> Clock:
        return replace(self, slept=tuple(each for each in self.slept if each != node))
