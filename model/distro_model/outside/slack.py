"""How well the times are known at which things happen inside a node that is seen from outside."""

from __future__ import annotations

from collections import deque

LAG_COUNTS_MS = 30_000
LATE_FACTOR, SKEW_FACTOR = 10, 2
"""Of how long an answer took lately: a deadline is made of many turns of a busy machine, what is under way of few."""


class Slack:
    """How well times are known. `late_ms` is added to every deadline; `skew_ms`: what was sent before something
    happened may be observed so much later than it. Both 0 where time is virtual; elsewhere both grow with what an
    answer lately took that on a machine at leisure takes milliseconds, and with what it takes that is not there yet.
    """

    def __init__(self, late_ms: int = 0, skew_ms: int = 0) -> None:
        self._at_leisure = late_ms, skew_ms
        self.late_ms, self.skew_ms = self._at_leisure
        self._lags: deque[tuple[int, int]] = deque()
        self._awaited: dict[str, int] = {}

    def awaits(self, key: str, since_ms: int) -> None:
        """An answer that could be there at once."""
        self._awaited[key] = since_ms

    def answered(self, key: str, now_ms: int) -> None:
        """Or given up."""
        if (since_ms := self._awaited.pop(key, None)) is not None:
            self.took(now_ms - since_ms, now_ms)

    def took(self, lag_ms: int, now_ms: int) -> None:
        """An answer took so long."""
        if not any(self._at_leisure):
            return
        self._lags.append((now_ms, lag_ms))
        self.look(now_ms)

    def look(self, now_ms: int) -> None:
        """What keeps an answer may keep what else is under way, and that may be here first."""
        if not any(self._at_leisure):
            return
        while self._lags and self._lags[0][0] < now_ms - LAG_COUNTS_MS:
            self._lags.popleft()
        still = (now_ms - since_ms for since_ms in self._awaited.values())
        worst_ms, (late_ms, skew_ms) = max((0, *(lag for _, lag in self._lags), *still)), self._at_leisure
        self.late_ms, self.skew_ms = late_ms + LATE_FACTOR * worst_ms, skew_ms + SKEW_FACTOR * worst_ms
