"""The delay task engine: one pending task for each key, run at the first tick at which it is due.

The syncs of Distro have one engine, and the pushes to subscribers have another. There is a tick every 100 ms, counted
from the start of the node. While no task is pending no timer runs. Source: docs/protocol #sync-execute, #sync-retry,
#sync-merge.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from distro_impl.clocks.clock import Clock, TimerHandle

TICK_MS = 100

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class DelayTask(Generic[A]):
    """An `action` that is due `interval_ms` after `last_process_ms`."""

    action: A
    interval_ms: int
    last_process_ms: int
    number: int
    """The order of tasks that are due at the same time. A task that replaces a pending one has the number of that
    one."""

    @property
    def due_ms(self) -> int:
        return self.last_process_ms + self.interval_ms


class DelayTaskEngine(Generic[K, A]):
    """`merge(new action, old action)` returns the action that replaces both, if a task of the same key is pending."""

    def __init__(self, clock: Clock, run: Callable[[K, A], None], merge: Callable[[A, A], A], name: str) -> None:
        self._clock, self._run, self._merge, self._name = clock, run, merge, name
        self._start_ms = clock.now_ms()
        self._tasks: dict[K, DelayTask[A]] = {}
        self._due: list[tuple[int, int, K]] = []
        """A heap of (due, number, key). After a merge it still has the entry of the replaced task."""
        self._numbers = count()
        self._timer: TimerHandle | None = None
        self._timer_ms = 0
        self._ticked_ms = self._start_ms - 1

    def add(self, key: K, action: A, delay_ms: int) -> None:
        """Queue the action, or merge it with the pending one: the merged task has the delay of the new task, counted
        from the time at which the pending one was queued.

        So later changes never postpone the first one. Of two actions the one that was created later is kept, which is
        the new one: a task is created when it is added.
        """
        pending = self._tasks.get(key)
        if pending is None:
            task = DelayTask(action, delay_ms, self._clock.now_ms(), next(self._numbers))
        else:
            merged = self._merge(action, pending.action)
            if (merged, delay_ms) == (pending.action, pending.interval_ms):  # usual: one of many changes
                return
            task = DelayTask(merged, delay_ms, pending.last_process_ms, pending.number)
        self._tasks[key] = task
        if pending is None or pending.interval_ms != delay_ms:
            heappush(self._due, (task.due_ms, task.number, key))
            self._set_timer(task.due_ms)

    def __contains__(self, key: K) -> bool:
        """Whether a task of this key is pending."""
        return key in self._tasks

    def pending(self, key: K) -> A | None:
        """The pending action of this key."""
        task = self._tasks.get(key)
        return None if task is None else task.action

    def take_all(self) -> Mapping[K, A]:
        """Remove and return all pending actions."""
        taken = {key: task.action for key, task in self._tasks.items()}
        self._tasks.clear()
        self._due.clear()
        return taken

    def _set_timer(self, due_ms: int) -> None:
        """Make sure that a timer runs at the first tick at or after `due_ms`. A timer that is too early does no harm.

        A task that becomes due in the instant of a tick, but after the tick, waits for the next one.
        """
        due_ms = max(due_ms, self._clock.now_ms(), self._ticked_ms + 1)
        tick_ms = self._start_ms + -(-(due_ms - self._start_ms) // TICK_MS) * TICK_MS
        if self._timer is not None:
            if self._timer_ms <= tick_ms:
                return
            self._timer.cancel()
        self._timer = self._clock.call_at(tick_ms, self._tick, self._name)
        self._timer_ms = tick_ms

    def _tick(self) -> None:
        self._timer = None
        now_ms = self._ticked_ms = self._clock.now_ms()
        due: dict[int, K] = {}
        while self._due and (self._due[0][0] <= now_ms or not self._is_current(*self._due[0])):
            entry = heappop(self._due)
            if self._is_current(*entry):
                due[entry[1]] = entry[2]
        for number in sorted(due):
            self._run(due[number], self._tasks.pop(due[number]).action)
        if self._due:
            self._set_timer(self._due[0][0])

    def _is_current(self, due_ms: int, number: int, key: K) -> bool:
        task = self._tasks.get(key)
        return task is not None and (task.due_ms, task.number) == (due_ms, number)
