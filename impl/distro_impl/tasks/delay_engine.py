"""The delay task engine: one pending task for each key, run at the first tick at which it is due.

Distro's syncs and the pushes to subscribers go through one of these each. The tick is 100 ms, counted from the start
of the node; while nothing is pending no timer runs. Source: docs/protocol #sync-execute, #sync-retry, #sync-merge.
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
    """What is to be done (`action`), due `interval_ms` after `last_process_ms`."""

    action: A
    interval_ms: int
    last_process_ms: int
    number: int
    """Of the first task of this key that waited; tasks that are due together run in this order."""

    @property
    def due_ms(self) -> int:
        return self.last_process_ms + self.interval_ms


class DelayTaskEngine(Generic[K, A]):
    """`merge(new action, old action)` says what is left to do when a task meets a pending one of its key."""

    def __init__(self, clock: Clock, run: Callable[[K, A], None], merge: Callable[[A, A], A], name: str) -> None:
        self._clock, self._run, self._merge, self._name = clock, run, merge, name
        self._start_ms = clock.now_ms()
        self._tasks: dict[K, DelayTask[A]] = {}
        self._due: list[tuple[int, int, K]] = []
        """(due, number, key) of each task, a heap. A merge leaves the entry of the task that it replaces behind."""
        self._numbers = count()
        self._timer: TimerHandle | None = None
        self._timer_ms = 0
        self._ticked_ms = self._start_ms - 1

    def add(self, key: K, action: A, delay_ms: int) -> None:
        """Queue, or merge: a new task keeps its own delay, but counts it from when the pending one was queued.

        So later changes never postpone the first one. Of two actions the later created one wins; a task that is
        added is created now, hence the new one.
        """
        pending = self._tasks.get(key)
        if pending is None:
            task = DelayTask(action, delay_ms, self._clock.now_ms(), next(self._numbers))
        else:
            merged = self._merge(action, pending.action)
            if (merged, delay_ms) == (pending.action, pending.interval_ms):  # one change of many, most times
                return
            task = DelayTask(merged, delay_ms, pending.last_process_ms, pending.number)
        self._tasks[key] = task
        if pending is None or pending.interval_ms != delay_ms:
            heappush(self._due, (task.due_ms, task.number, key))
            self._set_timer(task.due_ms)

    def __contains__(self, key: K) -> bool:
        """Whether something waits under this key."""
        return key in self._tasks

    def pending(self, key: K) -> A | None:
        """The action that waits under this key."""
        task = self._tasks.get(key)
        return None if task is None else task.action

    def take_all(self) -> Mapping[K, A]:
        """Every pending action; none is left."""
        taken = {key: task.action for key, task in self._tasks.items()}
        self._tasks.clear()
        self._due.clear()
        return taken

    def _set_timer(self, due_ms: int) -> None:
        """Make sure that a timer runs at the first tick from `due_ms` on. One that is too early does no harm.

        What falls due in the instant of a tick, after it, waits for the next: there is one tick in 100 ms.
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
