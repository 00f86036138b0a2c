"""The execute task engine: it gets the tasks that are due, and starts them in the order in which they came.

Nacos has several workers, each with a FIFO queue; the hash of the key chooses the worker, and all VERIFYs to one member
have the same key. Its workers only pass the request to the asynchronous transport, so two requests for one key may be
under way at the same time and be answered in any order (docs/protocol #sync-workers, #sync-merge). Here a worker stands
for a kind of task and a member. It starts its tasks in order and does not wait for their ends, unless too many are
under way: a server refuses requests beyond its limit.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from functools import partial

from distro_impl.clocks.clock import Clock

IN_FLIGHT_MAX = 50
"""The limit of one worker. On a busy machine further requests would only wait in queues until they time out. By default
a server accepts a thousand requests at once from all its clients."""

Task = Callable[[], Coroutine[None, None, None]]


class ExecuteTaskEngine:
    """The workers, identified by any text."""

    def __init__(self, clock: Clock, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self._workers: defaultdict[str, _Worker] = defaultdict(partial(_Worker, clock, in_flight_max))

    def add_task(self, worker: str, name: str, task: Task) -> None:
        self._workers[worker].add(name, task)

    def is_busy(self, worker: str) -> bool:
        """Whether a task of this worker is under way or waiting."""
        return worker in self._workers and self._workers[worker].in_flight > 0

    @property
    def waiting(self) -> int:
        """The number of tasks that have not been started yet."""
        return sum(len(worker.waiting) for worker in self._workers.values())


class _Worker:
    def __init__(self, clock: Clock, in_flight_max: int) -> None:
        self._clock, self._in_flight_max = clock, in_flight_max
        self.in_flight = 0
        self.waiting: deque[tuple[str, Task]] = deque()

    def add(self, name: str, task: Task) -> None:
        if self.in_flight < self._in_flight_max:
            self._start(name, task)
        else:
            self.waiting.append((name, task))

    def _start(self, name: str, task: Task) -> None:
        self.in_flight += 1
        self._clock.spawn(self._run(task), name)

    async def _run(self, task: Task) -> None:
        try:
            await task()
        except asyncio.CancelledError:  # the node ends
            self.waiting.clear()
            raise
        finally:
            self.in_flight -= 1
            if self.waiting:
                self._start(*self.waiting.popleft())
