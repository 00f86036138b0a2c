"""Waiting: the clocks, the meaning of being late, and the one loop that polls until an event is observed.

All waits for a node (of a check, a scenario, a walk, the start of a server) are here. Where a verdict depends on the
wait, this policy applies:

* An event within the bound is in time. In real time `TOLERANCE_MS` is part of each bound: events of a server are that
  late on an idle machine, and the kit polls every 100 ms.
* An event that is later than that, by no more than the slack measured meanwhile (`slack.py`), leaves the question open:
  the node or the machine may have been late. It is never a pass.
* An event that is still later, or does not come by then, is missed: a violation. But if the machine took more than half
  of the time, for as long as a member waits for an answer, the question stays open: a node that is not answered in time
  gives up the request, so the effect is missing, not late. The question also stays open if the machine took more than
  a third of the wait: slack counts one thread, the one that waited longest, and a message passes three in turn.
* An event that must not come within a time, and is found after it, may have come within it if the kit stalled at the
  end of that time, or waited for an answer then: this leaves the question open too.

Slack is measured outside of the node: no answer of the node affects it. In virtual time there is no slack.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar

from distro_conformance.slack import Slack

T = TypeVar("T")
Pass = Callable[[int], Awaitable[None]]
"""Lets so many ms pass."""
Poll = Callable[[], Awaitable[T | None]]
"""Returns the awaited value, else None or False; it may send a request to the node, hence async."""

TOLERANCE_MS = 500
"""Part of each bound in real time: events of an idle server come 50 to 150 ms late, and the kit polls every
100 ms."""
MAX_SLACK_MS = 60_000
"""The longest additional wait for a late event."""

THREADS_IN_TURN = 3
"""In a server one thread receives a message, one handles it and one sends what follows. Each may have waited for a
processor as long as the one that is counted."""

STEP_MS = 50
STALL_MS = 100
"""If the event loop of the kit runs so much later than planned, it may contain events that came long before."""
COUNTING_MS = 300
"""The kernel counts the run delay of a thread when the thread runs again. Before an event counts as missed, slack is
therefore read once more after this time."""


class Clock(Protocol):
    """Protocol time. On a real server it passes by itself, on an embedded node only when a caller advances it. The
    defaults are those of virtual time, in which nothing depends on the machine."""

    is_real: bool = False
    tolerance_ms: int = 0
    """Part of each bound."""

    def now_ms(self) -> int: ...

    async def pass_ms(self, ms: int) -> None:
        """Returns when that much time has passed and, if the target can report it, the node has done all due work."""
        ...

    def slack_since(self, at_ms: int) -> int:  # noqa: ARG002 - virtual time has none
        """The time that the machine took since then, in ms. 0 where time is virtual."""
        return 0

    def peak_since(self, at_ms: int) -> int:  # noqa: ARG002
        """The most that it took in one reading."""
        return 0

    def is_starved_since(self, at_ms: int) -> bool:  # noqa: ARG002
        """Whether it took so much time that a node may have given up a request without an answer."""
        return False

    def measured(self) -> AbstractAsyncContextManager[None]:
        """Measure slack while this is entered, if time is real."""
        return nullcontext()

    def watch(self, pid: int | None) -> None:  # noqa: ARG002
        """Measure this server of the kit too, if time is real."""
        return

    def participating(self) -> AbstractContextManager[None]:
        """While this is entered, virtual time passes only when this check waits too. Real time passes in any case."""
        return nullcontext()


class RealClock(Clock):
    """Milliseconds since its creation."""

    is_real = True
    tolerance_ms = TOLERANCE_MS

    def __init__(self, slack: Slack | None = None) -> None:
        self.slack = slack or Slack()
        self._start_s = time.monotonic()

    def now_ms(self) -> int:
        return round((time.monotonic() - self._start_s) * 1000)

    async def pass_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    def slack_since(self, at_ms: int) -> int:
        return self.slack.since(self._start_s + at_ms / 1000)

    def peak_since(self, at_ms: int) -> int:
        return self.slack.peak_since(self._start_s + at_ms / 1000)

    def is_starved_since(self, at_ms: int) -> bool:
        return self.slack.is_starved_since(self._start_s + at_ms / 1000)

    def measured(self) -> AbstractAsyncContextManager[None]:
        return self.slack.measured()

    def watch(self, pid: int | None) -> None:
        self.slack.watch(pid)


class Timeliness(Enum):
    IN_TIME = auto()
    OPEN = auto()
    """Late, or missing, and the machine may be the reason."""
    MISSED = auto()


@dataclass(frozen=True, slots=True)
class WaitResult(Generic[T]):
    """The end of a wait: `found` may be present although it came too late."""

    found: T | None
    timeliness: Timeliness
    took_ms: int
    slack_ms: int

    @property
    def why_open(self) -> str:
        seen = "nothing came" if self.found is None else "it came"
        return f"{seen} within {self.took_ms} ms, of which this machine took {self.slack_ms} ms"


def timeliness(took_ms: int, within_ms: int, clock: Clock, since_ms: int) -> Timeliness:
    """Classify an event that took `took_ms` since `since_ms`."""
    late_ms = took_ms - within_ms - clock.tolerance_ms
    if late_ms <= 0:
        return Timeliness.IN_TIME
    is_open = late_ms <= clock.slack_since(since_ms) or _is_starved(took_ms, clock, since_ms)
    return Timeliness.OPEN if is_open else Timeliness.MISSED


def _is_starved(took_ms: int, clock: Clock, since_ms: int) -> bool:
    return THREADS_IN_TURN * clock.slack_since(since_ms) > took_ms or clock.is_starved_since(since_ms)


def poll_local(find: Callable[[], T | None]) -> Poll[T]:
    """A poll of data that the kit already has, without a request."""

    async def poll() -> T | None:
        return find()

    return poll


def first_of(polls: Iterable[Poll[T]]) -> Poll[T]:
    """Polls until one of these finds something."""
    every = tuple(polls)

    async def poll() -> T | None:
        for each in every:
            if found := await each():
                return found
        return None

    return poll


async def wait_until_found(
    poll: Poll[T], clock: Clock, within_ms: int, *, step_ms: int = STEP_MS, pass_ms: Pass | None = None
) -> WaitResult[T]:
    """Poll until the value is found, or missed; at least once. `pass_ms`: in place of the clock's own."""
    began_ms, is_counted = clock.now_ms(), not clock.is_real
    while True:
        found = await poll()
        took_ms = clock.now_ms() - began_ms
        if _is_something(found):
            return WaitResult(
                found, timeliness(took_ms, within_ms, clock, began_ms), took_ms, clock.slack_since(began_ms)
            )
        left_ms = within_ms + clock.tolerance_ms - took_ms
        if left_ms <= 0:
            slack_ms = clock.slack_since(began_ms)
            left_ms += min(slack_ms, MAX_SLACK_MS)
            if left_ms <= 0:
                is_open = slack_ms > MAX_SLACK_MS or _is_starved(took_ms, clock, began_ms)
                if is_open or is_counted:
                    return WaitResult(None, Timeliness.OPEN if is_open else Timeliness.MISSED, took_ms, slack_ms)
                is_counted, left_ms, step_ms = True, COUNTING_MS, COUNTING_MS
        await (pass_ms or clock.pass_ms)(min(step_ms, left_ms))


async def eventually(poll: Poll[T], clock: Clock, within_ms: int, *, step_ms: int = STEP_MS) -> T | None:
    """The value that `poll` finds by then, in time or late, or None. For waits without a verdict: the start of a
    server, a message under way."""
    return (await wait_until_found(poll, clock, within_ms, step_ms=step_ms)).found


async def never(
    poll: Poll[T], clock: Clock, for_ms: int, *, step_ms: int = STEP_MS, pass_ms: Pass | None = None
) -> WaitResult[T]:
    """Watch for the whole time. `found`: the value that `poll` found in it (IN_TIME), or that it found later and that
    may have begun in it (OPEN). None: it found nothing, or a value that began later."""
    wait = pass_ms or clock.pass_ms
    began_ms = polled_ms = clock.now_ms()
    until_ms, found = began_ms + for_ms, None
    while for_ms > 0:
        polled_ms, found = clock.now_ms(), await poll()
        left_ms = until_ms - clock.now_ms()
        if _is_something(found) or left_ms <= 0:
            break
        await wait(min(step_ms, left_ms))
    is_stalled = clock.is_real and polled_ms > until_ms + STALL_MS
    if is_stalled and not _is_something(found):
        await wait(STEP_MS)  # the event loop processes what came meanwhile
        found = await poll()
    is_open = is_stalled or (clock.is_real and polled_ms < until_ms < clock.now_ms())
    is_later = clock.now_ms() > until_ms and not is_open
    timeliness = Timeliness.OPEN if is_open else Timeliness.IN_TIME
    return WaitResult(
        found if _is_something(found) and not is_later else None,
        timeliness,
        clock.now_ms() - began_ms,
        clock.slack_since(began_ms),
    )


def _is_something(found: object) -> bool:
    return found is not None and found is not False


async def settled(clock: Clock, ms: int) -> None:
    """Wait this long, and additionally the time that the machine took meanwhile: the node could do all due work."""
    began_ms = clock.now_ms()
    await clock.pass_ms(ms + clock.tolerance_ms)
    while (left_ms := began_ms + ms + clock.tolerance_ms + _most(clock, began_ms) - clock.now_ms()) > 0:
        await clock.pass_ms(left_ms)


def _most(clock: Clock, since_ms: int) -> int:
    return min(clock.slack_since(since_ms), MAX_SLACK_MS)


async def gather_all(awaited: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all, in order. The first failure cancels the others, and is raised."""
    tasks = [asyncio.create_task(each) for each in awaited]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def gather_in_order(awaited: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all, in order. All are awaited; the first failure in order is raised.

    So the same run names the same node, whichever is faster.
    """
    come_to = await asyncio.gather(*awaited, return_exceptions=True)
    if failed := next((each for each in come_to if isinstance(each, BaseException)), None):
        raise failed
    return [each for each in come_to if not isinstance(each, BaseException)]
