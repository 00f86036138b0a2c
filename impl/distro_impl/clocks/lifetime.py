"""The clock of one node: the same time as the clock behind it, but timers and work end together with the node.

A crash must leave nothing behind that could still speak, so the parts of a node never see the shared clock, only this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from distro_impl.clocks.clock import (
    Clock,
    Counted,
    Parking,
    RepeatingTimer,
    T,
    TimerCallback,
    TimerHandle,
)


class Lifetime:
    """A `Clock` that begins and ends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: set[_OwnTimer] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_running = self.over = False
        self.now_ms: Callable[[], int] = clock.now_ms
        """Asked several times in each request."""

    def begin(self) -> None:
        """Before, the node has a clock, but no life yet: it is starting."""
        self.is_running = not self.over

    def unique_ms(self) -> int:
        return self._clock.unique_ms()

    def call_at(self, when_ms: int, callback: TimerCallback, name: str) -> TimerHandle:
        timer = _OwnTimer(self, callback, name)
        if self.over:
            return timer
        timer.handle = self._clock.call_at(when_ms, timer.fire, name)
        self._timers.add(timer)
        return timer

    def every(self, period_ms: int, callback: TimerCallback, *, first_ms: int, name: str) -> TimerHandle:
        return RepeatingTimer(self, period_ms, callback, first_ms, name)

    def wait_for(self, awaitable: Awaitable[T], timeout_ms: int) -> Coroutine[Any, Any, T]:
        return self._clock.wait_for(awaitable, timeout_ms)

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = self._clock.spawn(coroutine, name)
        if self.over:
            task.cancel()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def parked(self) -> Parking:
        return self._clock.parked()

    def counted(self, name: str) -> Counted:
        return self._clock.counted(name)

    async def end(self) -> None:
        """No timer fires after this call and none is set, and no work is left when it returns."""
        self.is_running, self.over = False, True
        for timer in tuple(self._timers):
            timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _OwnTimer:
    __slots__ = ("_callback", "_lifetime", "_name", "handle")

    def __init__(self, lifetime: Lifetime, callback: TimerCallback, name: str) -> None:
        self._lifetime, self._callback, self._name = lifetime, callback, name
        self.handle: TimerHandle | None = None

    def fire(self) -> None:
        """What the callback begins is work of this lifetime as well, and ends with it."""
        self._lifetime._timers.discard(self)
        begun = None if self._lifetime.over else self._callback()
        if begun is not None:
            self._lifetime.spawn(begun, self._name)

    def cancel(self) -> None:
        self._lifetime._timers.discard(self)
        if self.handle is not None:
            self.handle.cancel()
