"""The one source of time of a node, and what counts as work.

Every delay, period and time-out of a node goes through a `Clock`, so that the same node runs against the system clock
in `serve` and against a virtual one under test, where five seconds of verify interval cost nothing. The second thing
that a clock knows is whether anything is still going on: what is spawned through it is *work* until it is done, and
a virtual clock moves on only when no work is left. `VirtualClock` lives in `virtual_clock.py`.

All instants are absolute milliseconds since the epoch, all periods milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

from distro_impl.logs import logger

T = TypeVar("T")

TimerCallback = Callable[[], Awaitable[None] | None]
"""What a timer calls. A returned awaitable is run as a piece of work."""

log = logger(__name__)


class TimerHandle(Protocol):
    """A timer that was set. Cancelling one that has fired or was cancelled does nothing."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as a node sees it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def unique_ms(self) -> int:
        """Now, or the next millisecond that this clock has not given out yet.

        Connection ids and `lastRefTime` are stamps that must not repeat, even when virtual time stands still.
        """
        ...

    def call_at(self, when_ms: int, callback: TimerCallback, name: str) -> TimerHandle:
        """Call once at `when_ms`, or as soon as possible when that has passed."""
        ...

    def every(self, period_ms: int, callback: TimerCallback, *, first_ms: int, name: str) -> TimerHandle:
        """Call at the instant `first_ms` and then every `period_ms`, whether or not an earlier call has ended."""
        ...

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        """The result of `awaitable`. When `timeout_ms` passes first: cancels it, waits for its end, TimeoutError."""
        ...

    async def wait_for_client(self, answer: Awaitable[T], timeout_ms: int) -> T:
        """Like `wait_for`, for the answer of a client, which lives in real time whatever clock the node has.

        Where time is virtual it stands still until the client has had real time enough to answer.
        """
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run `coroutine` as a piece of work. What it raises is a defect of the node and never gets lost."""
        ...

    def parked(self) -> AbstractContextManager[None]:
        """Inside, the current piece of work waits for something outside the nodes and does not count as work."""
        ...


class SystemClock:
    """Real time. Steps of the machine's clock do not move it: it reads the epoch once and counts on monotonically."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()
        self._last_unique_ms = 0
        self._tasks: set[asyncio.Task[Any]] = set()  # the event loop itself holds tasks only weakly

    def now_ms(self) -> int:
        return int((time.monotonic() + self._offset_s) * 1000)

    def unique_ms(self) -> int:
        self._last_unique_ms = max(self.now_ms(), self._last_unique_ms + 1)
        return self._last_unique_ms

    def call_at(self, when_ms: int, callback: TimerCallback, name: str) -> TimerHandle:
        delay_s = max(0, when_ms - self.now_ms()) / 1000
        return asyncio.get_running_loop().call_later(delay_s, self._fire, callback, name)

    def every(self, period_ms: int, callback: TimerCallback, *, first_ms: int, name: str) -> TimerHandle:
        return RepeatingTimer(self, period_ms, callback, first_ms, name)

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        return await asyncio.wait_for(awaitable, timeout_ms / 1000)

    async def wait_for_client(self, answer: Awaitable[T], timeout_ms: int) -> T:
        return await self.wait_for(answer, timeout_ms)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def parked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _fire(self, callback: TimerCallback, name: str) -> None:
        result = callback()
        if result is not None:
            self.spawn(as_coroutine(result), name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


class RepeatingTimer:
    """A timer that sets itself again, at a fixed rate counted from `first_ms`."""

    def __init__(self, clock: Clock, period_ms: int, callback: TimerCallback, first_ms: int, name: str) -> None:
        self._clock, self._period_ms, self._callback, self._name = clock, period_ms, callback, name
        self._due_ms = first_ms
        self._handle = clock.call_at(first_ms, self._fire, name)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fire(self) -> Awaitable[None] | None:
        self._due_ms += self._period_ms
        self._handle = self._clock.call_at(self._due_ms, self._fire, self._name)
        return self._callback()


async def as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable
