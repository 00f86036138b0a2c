"""The execute task engine: takes over what is due and starts it in the order in which it came.

Java has a FIFO queue for each of several workers, chosen by the hash of the key; all verifies to one member share a
key. A worker there only hands the request to the transport, which is asynchronous; two requests for one key may be
under way together and be answered in any order (docs/protocol #sync-workers, #sync-merge). Here a worker stands for a
kind of task and a member. It starts its tasks in order, with nothing waiting for anything, as long as not too many of
them are under way: a server refuses what it has no room for.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from functools import partial

from distro_impl.clocks.clock import Clock

IN_FLIGHT_MAX = 50
"""Of one worker. More would only wait in the queues of a busy machine, and run into their time-outs there; a server
that says nothing else takes a thousand requests at once, of all its clients."""

Task = Callable[[], Coroutine[None, None, None]]


class ExecuteTaskEngine:
    """A worker is known by any text."""

    def __init__(self, clock: Clock, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self._workers: defaultdict[str, _Worker] = defaultdict(partial(_Worker, clock, in_flight_max))

    def add_task(self, worker: str, name: str, task: Task) -> None:
        self._workers[worker].add(name, task)

    def is_busy(self, worker: str) -> bool:
        """Whether a task of this worker is under way, or waits."""
        return worker in self._workers and self._workers[worker].in_flight > 0

    @property
    def waiting(self) -> int:
        """Tasks that have not been started yet."""
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
        except asyncio.CancelledError:  # the end of the node
            self.waiting.clear()
            raise
        finally:
            self.in_flight -= 1
            if self.waiting:
                self._start(*self.waiting.popleft())
