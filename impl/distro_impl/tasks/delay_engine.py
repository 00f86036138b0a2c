"""The delay task engine: one pending task for each key, run at the first tick at which it is due.

Distro's syncs and the pushes to subscribers go through one of these each. The tick is 100 ms, counted from the start
of the node; while nothing is pending no timer runs. Source: wire-protocol.md section 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from distro_impl.clocks.clock import Clock, TimerHandle

TICK_MS = 100

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class DelayTask(Generic[A]):
    """What is to be done (`action`), due `interval_ms` after `last_process_ms`."""

    action: A
    interval_ms: int
    created_ms: int
    last_process_ms: int

    @property
    def due_ms(self) -> int:
        return self.last_process_ms + self.interval_ms


class DelayTaskEngine(Generic[K, A]):
    """`merge(new action, old action)` says what is left to do when a task meets a pending one of its key."""

    def __init__(self, clock: Clock, run: Callable[[K, A], None], merge: Callable[[A, A], A], name: str) -> None:
        self._clock, self._run, self._merge, self._name = clock, run, merge, name
        self._start_ms = clock.now_ms()
        self._tasks: dict[K, DelayTask[A]] = {}
        self._timer: TimerHandle | None = None
        self._timer_ms = 0

    def add(self, key: K, action: A, delay_ms: int) -> None:
        """Queue, or merge: a new task keeps its own delay, but counts it from when the pending one was queued.

        So later changes never postpone the first one. Of two actions the later created one wins; a task that is
        added is created now, hence the new one.
        """
        now_ms = self._clock.now_ms()
        task = DelayTask(action, delay_ms, now_ms, now_ms)
        pending = self._tasks.get(key)
        if pending is not None:
            task = replace(task, action=self._merge(action, pending.action), last_process_ms=pending.last_process_ms)
        self._tasks[key] = task
        self._set_timer(task.due_ms)

    def pending(self, key: K) -> A | None:
        """The action that waits under this key."""
        task = self._tasks.get(key)
        return None if task is None else task.action

    def take_all(self) -> Mapping[K, A]:
        """Every pending action; none is left."""
        taken = {key: task.action for key, task in self._tasks.items()}
        self._tasks.clear()
        return taken

    def _set_timer(self, due_ms: int) -> None:
        """Make sure that a timer runs at the first tick from `due_ms` on. One that is too early does no harm."""
        due_ms = max(due_ms, self._clock.now_ms())
        tick_ms = self._start_ms + -(-(due_ms - self._start_ms) // TICK_MS) * TICK_MS
        if self._timer is not None:
            if self._timer_ms <= tick_ms:
                return
            self._timer.cancel()
        self._timer = self._clock.call_at(tick_ms, self._tick, self._name)
        self._timer_ms = tick_ms

    def _tick(self) -> None:
        self._timer = None
        now_ms = self._clock.now_ms()
        for key in [key for key, task in self._tasks.items() if task.due_ms <= now_ms]:
            self._run(key, self._tasks.pop(key).action)
        if self._tasks:
            self._set_timer(min(task.due_ms for task in self._tasks.values()))
