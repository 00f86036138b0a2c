"""Slack: the time that the machine took from the kit and from the servers that it starts, measured outside of them.

The answers of a node under test, and the time that it takes to answer, have no part in it. Two figures are measured:

* the *lag* of the kit: how much later than planned its own event loop runs again. An event that the kit observes late
  may have happened in time;
* the *run delay* of the servers that the kit has started on this machine: the time that the thread with the longest
  wait waited for a processor (`/proc/PID/task/*/schedstat`). If the kernel does not count that: the time that some task
  of the machine waited (`/proc/pressure/cpu`). For a node that the kit did not start (`attach:`) nothing is read: there
  only the lag of the kit counts.

A node cannot create slack for itself. Its threads may wait for each other, and the kit may wait for them; so both
figures are limited, in each reading, by the processor time that the servers under test did *not* use: run delay by the
time that other programs (and the kit) used, lag by that and the idle time. A node that keeps all processors busy thus
has no slack, however many threads it has. A server that hides its work outside of its process tree counts as another
program; the only possible effect is a question that stays open (`waiting.py`), never a pass.

Up to `ORDINARY_MS` in each reading also occurs on an idle machine, and does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from distro_conformance.verdict import KitError

TURN_S = 0.1
"""The interval at which the event loop of the kit is expected to run."""
READING_S = 1.0
ORDINARY_MS = 20
KEPT_S = 600.0
PATIENCE_S = 3.0
"""How long a member waits for an answer. After that it gives up the request, and an effect is missing, not late."""

PROGRAMS_PER_CORE = 4
"""The limit of runnable programs, in each of `SAMPLES` samples, `SAMPLE_S` apart: above it real time is not judged."""
SAMPLES, SAMPLE_S = 20, 0.25

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_IDLE_FIELDS = (3, 4)  # idle, iowait
_COUNTED_FIELDS = 8  # the fields after these, time of guests, are included in the first two


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time in ms since the machine was started: of all processors, and the idle part of it."""

    total_ms: float
    idle_ms: float


class Kernel:
    """The counters of Linux. None, or empty: it does not count that, as on other systems."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def usage(self) -> Usage | None:
        if (text := self._read("stat")) is None:
            return None
        ticks = [float(each) for each in text.splitlines()[0].split()[1 : 1 + _COUNTED_FIELDS]]
        return Usage(sum(ticks) * _TICK_MS, sum(ticks[each] for each in _IDLE_FIELDS) * _TICK_MS)

    def used_ms(self, pid: int) -> float | None:
        """The processor time of that process, with its children; None: it has ended."""
        texts = [self._read(f"{each}/stat") for each in self._tree(pid)]
        found = [text.rpartition(")")[2].split() for text in texts if text is not None]
        return sum(float(each[11]) + float(each[12]) for each in found) * _TICK_MS if found else None

    def run_delays_ms(self, pid: int) -> Mapping[int, float] | None:
        """The run delay of each thread, in the same processes; None: it is not counted."""
        delays: dict[int, float] = {}
        for process in self._tree(pid):
            for thread in self._threads(process):
                if (text := self._read(f"{process}/task/{thread}/schedstat")) is not None:
                    delays[thread] = float(text.split()[1]) / 1e6
        return delays or None

    def pressure_ms(self) -> float | None:
        """The time that some task of the machine waited for a processor."""
        if (text := self._read("pressure/cpu")) is None:
            return None
        return float(text.splitlines()[0].rpartition("total=")[2]) / 1000

    def _tree(self, pid: int) -> Iterator[int]:
        """The process and its children, such as the server that a script starts."""
        yield pid
        for child in (self._read(f"{pid}/task/{pid}/children") or "").split():
            yield from self._tree(int(child))

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(self._root / str(pid) / "task")]
        except OSError:
            return []

    def _read(self, name: str) -> str | None:
        try:
            return (self._root / name).read_text()
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class _Reading:
    to_s: float
    slack_ms: float


@dataclass
class Slack:
    """Measured while `measured` is entered. Times are seconds of `now_s`."""

    kernel: Kernel = field(default_factory=Kernel)
    now_s: Callable[[], float] = field(default=lambda: time.monotonic())  # noqa: PLW0108 - looked up when it is called

    def __post_init__(self) -> None:
        self._servers: set[int] = set()
        self._readings: deque[_Reading] = deque()
        self._due_s: float | None = None
        self._lag_ms = 0.0
        self._measuring: asyncio.Task[None] | None = None
        self._entered = 0
        self._begin()

    def watch(self, pid: int | None) -> None:
        """Measure a server of the kit on this machine, from when it serves until it has ended. While it starts it
        counts as another program: the kit decides when it starts."""
        if pid is not None:
            self.read()
            self._servers.add(pid)
            self._begin()

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[None]:
        """Measure while this is entered; nested use has no further effect."""
        self._entered += 1
        if self._entered == 1:
            self._begin()
            self._measuring = asyncio.create_task(self._measure(), name="slack")
        try:
            yield
        finally:
            self._entered -= 1
            if not self._entered and self._measuring is not None:
                self._measuring.cancel()
                await asyncio.gather(self._measuring, return_exceptions=True)
                self._measuring = self._due_s = None

    async def _measure(self) -> None:
        while True:
            self._due_s = self.now_s() + TURN_S
            await asyncio.sleep(TURN_S)
            self._count_lag()
            if self.now_s() - self._at_s >= READING_S:
                self.read()

    # Results

    def since(self, at_s: float) -> int:
        """The slack in ms, from then until now; at most the time that has passed. A reading that had begun before
        counts whole."""
        self._read_if_due()
        taken = (each.slack_ms for each in self._readings if each.to_s > at_s)
        return round(min(sum(taken), 1000 * max(0.0, self.now_s() - at_s)))

    def peak_since(self, at_s: float) -> int:
        """The largest slack of one reading in ms: an event of that time may have been observed that much later."""
        self._read_if_due()
        return round(max((each.slack_ms for each in self._readings if each.to_s > at_s), default=0.0))

    def is_starved_since(self, at_s: float) -> bool:
        """Whether since then the machine took more than half of the time that a member waits for an answer."""
        self._read_if_due()
        window: deque[_Reading] = deque()
        for each in (each for each in self._readings if each.to_s > at_s):
            window.append(each)
            while window and window[0].to_s <= each.to_s - PATIENCE_S:
                window.popleft()
            if 2 * sum(one.slack_ms for one in window) > 1000 * PATIENCE_S:
                return True
        return False

    # Readings

    def read(self) -> None:
        """Add the slack since the last reading."""
        self._count_lag()
        from_s, lag_ms, usage = self._at_s, self._lag_ms, self._usage
        used_ms, delays, pressure_ms = self._used_ms, self._delays, self._pressure_ms
        self._begin()
        lasted_ms = 1000 * (self._at_s - from_s)
        servers_ms = sum(now - used_ms[pid] for pid, now in self._used_ms.items() if pid in used_ms)
        delay_ms = 0.0
        if self._delays is not None and delays is not None:
            delay_ms = max((now - delays.get(thread, now) for thread, now in self._delays.items()), default=0.0)
        elif self._servers and self._pressure_ms is not None and pressure_ms is not None:
            delay_ms = self._pressure_ms - pressure_ms
        if usage is not None and self._usage is not None:
            total_ms, idle_ms = self._usage.total_ms - usage.total_ms, self._usage.idle_ms - usage.idle_ms
            lag_ms = min(lag_ms, max(0.0, total_ms - servers_ms))
            delay_ms = min(delay_ms, max(0.0, total_ms - idle_ms - servers_ms))
        slack_ms = min(lasted_ms, sum(each for each in (lag_ms, delay_ms) if each > ORDINARY_MS))
        if lasted_ms > 0:
            self._readings.append(_Reading(self._at_s, slack_ms))
        while self._readings and self._readings[0].to_s < self._at_s - KEPT_S:
            self._readings.popleft()

    def _begin(self) -> None:
        self._at_s, self._lag_ms = self.now_s(), 0.0
        self._usage, self._pressure_ms = self.kernel.usage(), self.kernel.pressure_ms()
        used = {pid: self.kernel.used_ms(pid) for pid in self._servers}
        self._servers = {pid for pid, ms in used.items() if ms is not None}
        self._used_ms = {pid: ms for pid, ms in used.items() if ms is not None}
        counted = [self.kernel.run_delays_ms(pid) for pid in self._servers]
        found = [each for each in counted if each is not None]
        self._delays = {thread: ms for each in found for thread, ms in each.items()} if found else None

    def _read_if_due(self) -> None:
        if self.now_s() - self._at_s >= TURN_S:
            self.read()

    def _count_lag(self) -> None:
        """Add the lag, also while the event loop still waits to run."""
        now_s = self.now_s()
        if self._due_s is not None and now_s > self._due_s:
            self._lag_ms += 1000 * (now_s - self._due_s)
            self._due_s = now_s


class BusyMachineError(KitError):
    """The machine is too busy to judge anything in real time."""

    exit_code = 3


def running_programs() -> int | None:
    """Tasks that run or wait for a processor, without this program."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1
    return None


def require_free_machine(
    running: Callable[[], int | None] = running_programs, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Call this before anything is started in real time. Raises BusyMachineError if, for some seconds in a row, too
    many programs want to run for verdicts in real time; on a less busy machine the first sample is enough."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    least: int | None = None
    for _ in range(SAMPLES):
        now = running()
        if now is None or now <= PROGRAMS_PER_CORE * cores:
            return
        least = now if least is None else min(least, now)
        sleep(SAMPLE_S)
    raise BusyMachineError(
        f"{least} programs want to run on {cores} processors of this machine: more than {PROGRAMS_PER_CORE} for each, "
        "so a server cannot be judged in real time; try again when it is less busy"
    )
