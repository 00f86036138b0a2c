"""The one source of time of a node, and what counts as work.

Every delay, period and time-out of a node goes through a `Clock`, so that the same node runs against the system clock
in `serve` and against a virtual one under test, where five seconds of verify interval cost nothing. The second thing
that a clock knows is whether anything is still going on: what is spawned through it is *work* until it is done, and
a virtual clock moves on only when no work is left. A message is work as well, from when it is sent until its receiver
has consumed it (`Counted`); who waits for something that only the outside can give does not count until it is given
(`Waiting`). `VirtualClock` lives in `virtual_clock.py`.

All instants are absolute milliseconds since the epoch, all periods milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

from distro_impl.logs import logger

T = TypeVar("T")

TimerCallback = Callable[[], Coroutine[Any, Any, None] | None]
"""What a timer calls. A returned coroutine is run as a piece of work."""

log = logger(__name__)


class TimerHandle(Protocol):
    """A timer that was set. Cancelling one that has fired or was cancelled does nothing."""

    def cancel(self) -> None: ...


class Parking(AbstractContextManager["Parking", None], Protocol):
    """While it is entered the piece of work that entered it does not count."""

    def resume(self) -> None:
        """Count again, already before it is left: what the work waited for is there, and the work only has to wake."""
        ...


class Counted(Protocol):
    """Something that is work as long as it is set to be, without being a task: messages that are under way."""

    def set(self, is_work: bool) -> None: ...


class Clock(Protocol):
    """Time as a node sees it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def unique_ms(self) -> int:
        """Now, or the next millisecond that this clock has not given out yet.

        Connection ids and numbers of UDP packets must not repeat, even when virtual time stands still. Not for what
        clients compare between members, and not for each request: where more than one is taken in a millisecond,
        these run ahead of the time.
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

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run `coroutine` as a piece of work. What it raises is a defect of the node and never gets lost."""
        ...

    def parked(self) -> Parking:
        """Inside, the current piece of work waits for something outside the nodes and does not count as work."""
        ...

    def counted(self, name: str) -> Counted:
        """Something that counts as work while it is set to; `name` is shown when a test waits for it without end."""
        ...


class SystemClock:
    """Real time. Steps of the machine's clock do not move it: it reads the epoch once and counts on monotonically.

    Time in which the machine was suspended counts where the system can tell (Linux): afterwards tokens have expired
    and leases are judged by how long it really was, as a server does that reads the clock of the machine.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - elapsed_s()
        self._last_unique_ms = 0
        self._tasks: set[asyncio.Task[Any]] = set()  # the event loop itself holds tasks only weakly

    def now_ms(self) -> int:
        return int((elapsed_s() + self._offset_s) * 1000)

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

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def parked(self) -> Parking:
        return _NOTHING

    def counted(self, name: str) -> Counted:  # noqa: ARG002 - real time counts no work
        return _NOTHING

    def _fire(self, callback: TimerCallback, name: str) -> None:
        result = callback()
        if result is not None:
            self.spawn(result, name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


class _Nothing(nullcontext["Parking"]):
    """Real time counts no work."""

    def __enter__(self) -> Self:
        return self

    def resume(self) -> None: ...

    def set(self, is_work: bool) -> None: ...


_NOTHING = _Nothing()


class Waiting(Generic[T]):
    """A result that one piece of work waits for and another one gives: the answer of a client, the end of a hold.

    The wait does not count; from the moment at which the result is given it does, although its task wakes up later.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._parking: Parking | None = None

    def give(self, result: T) -> None:
        """A second result, or one for a waiter that has given up, is ignored."""
        if not self._result.done():
            self._resume()
            self._result.set_result(result)

    def fail(self, error: Exception) -> None:
        """Let the waiter raise this."""
        if not self._result.done():
            self._resume()
            self._result.set_exception(error)

    async def taken(self) -> T:
        """Wait. Once only."""
        if self._result.done():
            return self._result.result()
        with self._clock.parked() as self._parking:
            return await self._result

    def _resume(self) -> None:
        if self._parking is not None:
            self._parking.resume()


async def side_by_side(clock: Clock, coroutines: Iterable[Coroutine[Any, Any, T]], name: str) -> list[T]:
    """All results, in order. Each is a piece of work of its own, so that one that waits does not hide another that
    works. Raises the first error; the others then go on."""
    results: dict[int, T] = {}
    done: Waiting[None] = Waiting(clock)

    async def run(number: int, coroutine: Coroutine[Any, Any, T]) -> None:
        try:
            results[number] = await coroutine
        except Exception as error:  # noqa: BLE001 - raised where the results are waited for
            done.fail(error)
        if len(results) == len(strands):
            done.give(None)

    strands = list(coroutines)
    for number, coroutine in enumerate(strands):
        clock.spawn(run(number, coroutine), name)
    if strands:
        await done.taken()
    return [results[number] for number in range(len(strands))]


elapsed_s: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)
"""Since some instant in the past, the machine's suspensions included where the system counts them."""

MAX_MISSED = 100


class RepeatingTimer:
    """A timer that sets itself again, at a fixed rate counted from `first_ms`.

    After a pause of the node what fell due is done late, once for each period; of more than MAX_MISSED periods, which
    only a suspension of the machine is long enough for, once for all.
    """

    def __init__(self, clock: Clock, period_ms: int, callback: TimerCallback, first_ms: int, name: str) -> None:
        self._clock, self._period_ms, self._callback, self._name = clock, period_ms, callback, name
        self._due_ms = first_ms
        self._handle = clock.call_at(first_ms, self._fire, name)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fire(self) -> Coroutine[Any, Any, None] | None:
        missed = max(0, self._clock.now_ms() - self._due_ms) // self._period_ms
        self._due_ms += self._period_ms * (1 + (missed if missed > MAX_MISSED else 0))
        self._handle = self._clock.call_at(self._due_ms, self._fire, self._name)
        return self._callback()
