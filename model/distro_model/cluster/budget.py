"""The columns of a search alone: what the environment may still do, and which periods have passed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Budget:
    """What the environment may still do; the fields are those of `Bounds`."""

    crashes: int = 0
    drops: int = 0
    lost_replies: int = 0
    swallows: int = 0
    late_replies: int = 0
    reorders: int = 0
    delays: int = 0
    garbles: int = 0
    raises: int = 0
    strays: int = 0
    pauses: int = 0
    batches: int = 0
    silences: int = 0
    idle_spells: int = 0
    half_open: int = 0
    operator_changes: int = 0
    lost_events: int = 0
    slow_requests: int = 0
    slow_setups: int = 0
    flips: int = 0
    leaves: int = 0
    joins: int = 0
    refreshes: int = 0
    lapses: int = 0
    races: int = 0
    v2_requests: int = 0
    cluster_changes: int = 0

    def less(self, name: str) -> Budget | None:
        """One less of `name`; None when there is none left."""
        left: int = getattr(self, name)
        return replace(self, **{name: left - 1}) if left else None


@dataclass(frozen=True, slots=True)
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
