"""Waiting: whose time counts, how long a busy machine may take, and the one loop that looks until something is there.

Whoever waits for a node (a check, a scenario, the start of a server) waits here. What the end of a wait means is the
caller's: a violation, a question that stays open, a server that did not start.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Look = Callable[[], Awaitable[T | None]]
"""Finds what is waited for, else None or False; asking the node is part of looking, hence async."""

SLACK_MS = 2000
"""What a busy machine may add to any bound in real time; events at regular server load come 50 to 150 ms late."""

LAG_FACTOR, LAG_COUNTS_MS, MAX_SLACK_MS = 50, 30_000, 120_000
"""A node that is slow to answer is as slow in everything else, and does more than one thing for what is waited for.
Where forty processes want two cores, answers took 0.8 s, and what was due after a second came after 18 s."""

STEP_MS = 50


class Clock(Protocol):
    """Protocol time. On a real server it passes by itself, on an embedded node when somebody lets it pass."""

    @property
    def slack_ms(self) -> int:
        """Added to every bound: what a busy machine may cost. 0 where time is virtual."""
        ...

    def now_ms(self) -> int: ...

    async def pass_ms(self, ms: int) -> None:
        """Returns when that much time has passed and, where the target can tell, the node has done what was due."""
        ...


class SharedClock(Clock, Protocol):
    """A clock that many checks wait on at once."""

    def taking_part(self) -> AbstractContextManager[None]:
        """While it is entered virtual time passes only when this one waits too. Real time asks nobody."""
        ...


class RealClock:
    """Milliseconds since it was made. The slack grows with what somebody who asks the node all the time has to wait."""

    def __init__(self, slack_ms: int = SLACK_MS) -> None:
        self._slack_ms = slack_ms
        self._start_s = time.monotonic()
        self._lags: deque[tuple[int, int]] = deque(maxlen=100)  # when, and how long an answer took
        self._asked_ms: int | None = None

    @property
    def slack_ms(self) -> int:
        now_ms = self.now_ms()
        worst_ms = max((lag_ms for at_ms, lag_ms in self._lags if at_ms >= now_ms - LAG_COUNTS_MS), default=0)
        if self._asked_ms is not None:
            worst_ms = max(worst_ms, now_ms - self._asked_ms)
        return self._slack_ms and max(self._slack_ms, min(LAG_FACTOR * worst_ms, MAX_SLACK_MS))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While it is entered somebody waits for an answer that takes a millisecond on a machine at leisure.

        A node that hangs is slow already before it answers.
        """
        began_ms = self._asked_ms = self.now_ms()
        try:
            yield
        finally:
            self._lags.append((self.now_ms(), self.now_ms() - began_ms))
            self._asked_ms = None

    def now_ms(self) -> int:
        return round((time.monotonic() - self._start_s) * 1000)

    async def pass_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    def taking_part(self) -> AbstractContextManager[None]:
        return nullcontext()


def known(find: Callable[[], T | None]) -> Look[T]:
    """A look at what is known here already: nobody has to be asked."""

    async def look() -> T | None:
        return find()

    return look


async def eventually(look: Look[T], clock: Clock, within_ms: int, *, step_ms: int = STEP_MS) -> T | None:
    """What `look` finds within the time and the clock's slack, or None; it looks at least once."""
    return await _found(look, clock, lambda: within_ms + clock.slack_ms, step_ms)


async def never(look: Look[T], clock: Clock, for_ms: int, *, step_ms: int = STEP_MS) -> T | None:
    """Watch for the whole time: what `look` found, None when it never found anything.

    What a look brings after that time may have begun after it, too, and counts for nothing.
    """
    if for_ms <= 0:
        return None
    began_ms = clock.now_ms()
    found = await _found(look, clock, lambda: for_ms, step_ms)
    return found if clock.now_ms() <= began_ms + for_ms else None


async def together(awaited: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them come to, in order. The first that fails ends the others, and is raised."""
    tasks = [asyncio.create_task(each) for each in awaited]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_order(awaited: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them come to, in order. All are awaited; of those that fail the first in order is raised.

    So the same run names the same node, whichever was faster.
    """
    come_to = await asyncio.gather(*awaited, return_exceptions=True)
    if failed := next((each for each in come_to if isinstance(each, BaseException)), None):
        raise failed
    return [each for each in come_to if not isinstance(each, BaseException)]


async def _found(look: Look[T], clock: Clock, time_ms: Callable[[], int], step_ms: int) -> T | None:
    """`time_ms` is asked again each time: how busy the machine is shows on the way."""
    began_ms = clock.now_ms()
    while (found := await look()) is None or found is False:
        if (left_ms := began_ms + time_ms() - clock.now_ms()) <= 0:
            return None
        await clock.pass_ms(min(step_ms, left_ms))
    return found
