"""Virtual time: it stands still until a test advances it, and never moves while work is left.

One virtual clock is shared by all the nodes of a cluster under test. A request between two nodes takes no virtual time,
because its sender counts as work until the reply is there; a message on a stream counts until its receiver asks for the
next one, and so does the end of a stream. `settle` therefore needs no sleeps and no guesses; it returns when the last
piece of work ends. Code that waits for something that only the test can give (a reply that a link fault holds back, the
acknowledgement of a mute client) marks the wait with `parked`, or waits on a `Waiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Self

from distro_impl.clocks.clock import Counted, Parking, RepeatingTimer, T, TimerCallback, TimerHandle

MAX_NAMES_IN_ERROR = 8


class NotSettledError(TimeoutError):
    """Work was left when the real time-out of `settle` ended. The message names it."""


class WorkFailedError(RuntimeError):
    """A piece of work raised. Its cause is what it raised: a defect of the node, not of the run."""


@dataclass(eq=False, slots=True)
class _Work:
    name: str
    parked: int = 0
    done: bool = False


@dataclass(eq=False, slots=True)
class _Timer:
    callback: TimerCallback | None
    name: str

    def cancel(self) -> None:
        self.callback = None


_current: ContextVar[_Work | None] = ContextVar("piece of work", default=None)


class VirtualClock:
    """See the module. Not thread-safe; belongs to one event loop, but may be made before that loop runs."""

    def __init__(
        self,
        start_ms: int = 1_700_000_000_000,
        *,
        settle_timeout_s: float = 30.0,
    ) -> None:
        """`settle_timeout_s`: after so much real time with work left something hangs, and `settle` says what."""
        self._settle_timeout_s = settle_timeout_s
        self._now_ms = start_ms
        self._last_unique_ms = 0
        self._timers: list[tuple[int, int, _Timer]] = []  # when it is due, and the how-manieth that was set
        self._timers_set = 0
        self._busy: set[_Work] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._failure: tuple[str, BaseException] | None = None

    def now_ms(self) -> int:
        return self._now_ms

    def unique_ms(self) -> int:
        self._last_unique_ms = max(self._now_ms, self._last_unique_ms + 1)
        return self._last_unique_ms

    def call_at(self, when_ms: int, callback: TimerCallback, name: str) -> TimerHandle:
        self._timers_set += 1
        timer = _Timer(callback, name)
        heappush(self._timers, (when_ms, self._timers_set, timer))
        return timer

    def every(self, period_ms: int, callback: TimerCallback, *, first_ms: int, name: str) -> TimerHandle:
        return RepeatingTimer(self, period_ms, callback, first_ms, name)

    async def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> T:
        waiter = asyncio.current_task()
        assert waiter is not None
        cancellations = waiter.cancelling()
        expiry: _Work | None = None

        def expire() -> None:
            nonlocal expiry
            expiry = _Work(f"time-out after {timeout_ms} ms")
            self._busy.add(expiry)  # until the waiter is awake; it may be parked
            waiter.cancel()

        timer = self.call_at(self._now_ms + timeout_ms, expire, "time-out")
        try:
            return await awaitable
        except asyncio.CancelledError:
            if expiry is not None and waiter.uncancel() <= cancellations:
                raise TimeoutError(f"no result within {timeout_ms} ms") from None
            raise  # this task was cancelled from outside
        finally:
            timer.cancel()
            if expiry is not None:
                self._end(expiry)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        work = _Work(name)
        self._busy.add(work)
        context = copy_context()
        context.run(_current.set, work)
        task = asyncio.get_running_loop().create_task(coroutine, name=name, context=context)

        def ended(done: asyncio.Task[T]) -> None:
            if not done.cancelled() and (error := done.exception()) is not None and self._failure is None:
                self._failure = (name, error)
            self._end(work)

        task.add_done_callback(ended)
        return task

    def parked(self) -> Parking:
        return _Parked(self, _current.get())

    def counted(self, name: str) -> Counted:
        return _CountedWork(self, _Work(name))

    async def settle(self, real_timeout_s: float | None = None) -> None:
        """Return when no piece of work is left that is not parked.

        Raises NotSettledError after so much real time (default: the clock's), WorkFailedError when a piece of work
        raised.
        """
        if self._busy:
            await self._until_idle(self._settle_timeout_s if real_timeout_s is None else real_timeout_s)
        if self._failure is not None:
            (name, error), self._failure = self._failure, None
            raise WorkFailedError(f"{name} failed: {error!r}") from error

    async def advance(self, ms: int) -> None:
        """Let `ms` pass: fire what falls due one timer at a time, in the order (due, set), and settle after each."""
        end_ms = self._now_ms + ms
        await self.settle()
        while self._timers and self._timers[0][0] <= end_ms:
            due_ms, _, timer = heappop(self._timers)
            if timer.callback is None:
                continue
            self._now_ms = max(self._now_ms, due_ms)
            result = timer.callback()
            if result is not None:
                self.spawn(result, timer.name)
            if self._busy or self._failure is not None:
                await self.settle()
        self._now_ms = end_ms

    def jump(self, ms: int) -> None:
        """Let `ms` pass with all nodes suspended: what falls due meanwhile fires late, at the next `advance`."""
        self._now_ms += ms

    def _end(self, work: _Work) -> None:
        work.done = True
        self._set_aside(work)

    def _set_aside(self, work: _Work) -> None:
        self._busy.discard(work)
        if not self._busy:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def _until_idle(self, real_timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(real_timeout_s, self._give_up, real_timeout_s)
        try:
            while self._busy:
                waiter: asyncio.Future[None] = loop.create_future()
                self._waiters.append(waiter)
                await waiter
        finally:
            alarm.cancel()

    def _give_up(self, real_timeout_s: float) -> None:
        names = sorted(work.name for work in self._busy)
        shown = ", ".join(names[:MAX_NAMES_IN_ERROR]) + (", …" if len(names) > MAX_NAMES_IN_ERROR else "")
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(NotSettledError(f"still busy after {real_timeout_s} s of real time: {shown}"))


class _Parked:
    """Takes a piece of work out of the count while it is entered; nests."""

    def __init__(self, clock: VirtualClock, work: _Work | None) -> None:
        self._clock, self._work = clock, work
        self._is_parked = False

    def __enter__(self) -> Self:
        if self._work is not None:
            self._is_parked = True
            self._work.parked += 1
            self._clock._set_aside(self._work)
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()

    def resume(self) -> None:
        if self._is_parked and self._work is not None:
            self._is_parked = False
            self._work.parked -= 1
            if not self._work.parked and not self._work.done:
                self._clock._busy.add(self._work)


class _CountedWork:
    def __init__(self, clock: VirtualClock, work: _Work) -> None:
        self._clock, self._work = clock, work

    def set(self, is_work: bool) -> None:
        if is_work:
            self._clock._busy.add(self._work)
        else:
            self._clock._set_aside(self._work)
