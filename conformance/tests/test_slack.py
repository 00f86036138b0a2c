"""Slack is measured outside of the node: time that other programs take counts, time that the node takes does not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import pytest
from programs import ROOT, Document

from distro_conformance.slack import (
    PROGRAMS_PER_CORE,
    SAMPLES,
    BusyMachineError,
    Kernel,
    Slack,
    Usage,
    require_free_machine,
)
from distro_conformance.verdict import Verdict

CORES = 2
SERVER = 77


@dataclass
class Counted(Kernel):
    """The counters of a kernel so far, for two processors and one server."""

    now_s: float = 0.0
    busy_ms: float = 0.0
    server_ms: float = 0.0
    delays_ms: dict[int, float] = field(default_factory=lambda: {1: 0.0, 2: 0.0})
    waiting_ms: float = 0.0
    counts_delays: bool = True
    is_alive: bool = True

    def usage(self) -> Usage:
        return Usage(CORES * 1000 * self.now_s, CORES * 1000 * self.now_s - self.busy_ms)

    def used_ms(self, pid: int) -> float | None:
        return self.server_ms if pid == SERVER and self.is_alive else None

    def run_delays_ms(self, pid: int) -> Mapping[int, float] | None:
        return dict(self.delays_ms) if pid == SERVER and self.counts_delays else None

    def pressure_ms(self) -> float | None:
        return self.waiting_ms

    def second(self, *, others: float = 0, server: float = 0, delays: Mapping[int, float] | None = None) -> None:
        """One more: ms of processor time used by others and by the server, and ms for which its threads waited."""
        self.now_s += 1.0
        self.busy_ms += others + server
        self.server_ms += server
        for thread, ms in (delays or {}).items():
            self.delays_ms[thread] = self.delays_ms.get(thread, 0.0) + ms
        self.waiting_ms += max((delays or {}).values(), default=0.0)


def watched(**how: bool) -> tuple[Slack, Counted]:
    kernel = Counted(**how)  # type: ignore[arg-type]
    slack = Slack(kernel, lambda: kernel.now_s)
    slack.watch(SERVER)
    return slack, kernel


@pytest.mark.parametrize(
    ("others", "server", "delays", "ms"),
    [
        (1_500, 500, {1: 400, 2: 300}, 400),  # others take the processors: as long as the worst thread waited
        (0, 2_000, {1: 900, 2: 900}, 0),  # the server keeps both busy by itself, and waits for itself
        (200, 1_800, {1: 900, 2: 900}, 200),  # others did too: no more than they used
        (0, 100, dict(zip(range(100), repeat(300), strict=False)), 0),  # many threads, and no other program
        (2_000, 0, {1: 15}, 0),  # an idle machine takes this too
    ],
)
def test_a_server_waits_for_others_and_not_for_itself(
    others: float, server: float, delays: Mapping[int, float], ms: int
) -> None:
    slack, kernel = watched()
    kernel.second(others=others, server=server, delays=delays)
    assert slack.since(0.0) == ms
    assert slack.since(0.5) == min(ms, 500), "and no more than has passed"


def test_pressure_counts_where_the_kernel_does_not_count_run_delays() -> None:
    slack, kernel = watched(counts_delays=False)
    kernel.second(others=1_500, server=500, delays={1: 400})
    assert slack.since(0.0) == 400
    kernel.second(server=2_000, delays={1: 900})
    assert slack.since(1.0) == 0


def test_nothing_is_read_of_a_node_that_the_kit_did_not_start() -> None:
    kernel = Counted()
    slack = Slack(kernel, lambda: kernel.now_s)
    kernel.second(others=2_000, delays={1: 900})
    assert slack.since(0.0) == 0


def test_a_server_that_has_ended_is_not_watched_any_more() -> None:
    slack, kernel = watched()
    kernel.second(others=1_500, delays={1: 400})
    slack.read()
    kernel.is_alive = False
    kernel.second(others=2_000)
    assert slack.since(0.0) == 400


def test_slack_is_never_more_than_the_time_that_has_passed_and_is_forgotten() -> None:
    slack, kernel = watched()
    for _ in range(3):
        kernel.second(others=2_000, delays={1: 1_500})
    assert slack.since(2.0) == 1_000
    assert slack.since(0.0) == 3_000 == slack.since(-10.0)
    assert slack.since(3.0) == 0


def test_a_process_with_less_than_half_of_its_time_while_a_member_waits_is_starved() -> None:
    slack, kernel = watched()
    for _ in range(10):
        kernel.second(others=1_500, delays={1: 400})
        slack.read()
    assert not slack.is_starved_since(0.0), "four seconds of ten, and never more than half"
    assert slack.peak_since(0.0) == 400
    for _ in range(2):
        kernel.second(others=2_000, delays={1: 900})
        slack.read()
    assert slack.is_starved_since(0.0)
    assert not slack.is_starved_since(11.0), "a second is not enough"


def test_a_kit_that_gets_no_turn_is_known_to_be_late_before_the_next_wait() -> None:
    slack = Slack()

    async def stalls() -> int:
        async with slack.measured():
            await asyncio.sleep(0.3)
            began_s = time.monotonic()
            time.sleep(1.2)  # noqa: ASYNC251 - as a process does that the machine does not let run
            return slack.since(began_s)

    assert asyncio.run(stalls()) >= 1_000


def test_measuring_ends_with_the_last_user() -> None:
    async def both() -> int:
        slack = Slack()
        async with slack.measured():
            async with slack.measured():
                pass
            await asyncio.sleep(0.15)
            count = len(asyncio.all_tasks())
        return count - len(asyncio.all_tasks())

    assert asyncio.run(both()) == 1


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel counts no run delays")
def test_threads_of_a_server_and_of_what_it_has_started_are_counted() -> None:
    program = (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "while time.process_time() < 0.2: pass\n"  # the kernel counts in ticks of 10 ms
        "print(flush=True)"
    )
    started = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])"
    with subprocess.Popen([sys.executable, "-c", started], stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            delays, used_ms = Kernel().run_delays_ms(server.pid), Kernel().used_ms(server.pid)
        finally:
            os.killpg(server.pid, 9)
    assert delays is not None
    assert len(delays) == 3
    assert used_ms is not None
    assert used_ms > 0


def test_a_machine_is_busy_when_too_many_programs_want_to_run_all_the_time() -> None:
    cores = len(os.sched_getaffinity(0))
    many, few = PROGRAMS_PER_CORE * cores + 1, PROGRAMS_PER_CORE * cores
    waits: list[float] = []
    require_free_machine(lambda: few, waits.append)
    assert waits == [], "at once, where it is not"
    spike = iter([*repeat(many, SAMPLES - 1), few])
    require_free_machine(lambda: next(spike), waits.append)
    require_free_machine(lambda: None, waits.append)
    with pytest.raises(BusyMachineError, match=f"^{many} programs want to run on {cores} processors") as busy:
        require_free_machine(lambda: many, lambda _: None)
    assert busy.value.exit_code == Verdict.INCONCLUSIVE.exit_code


@pytest.mark.parametrize(
    "words",
    [
        ("test", "node", "--target", "process:server {port}", "--profile", "strict"),
        (
            "replay",
            str(ROOT / "scenarios" / "healthy-life.scenario"),
            "--target",
            "process:x {port}",
            "--profile",
            "strict",
        ),
        ("test", "sdks"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_on_a_busy_machine_nothing_is_started_in_real_time(
    words: tuple[str, ...], document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy() -> None:
        raise BusyMachineError("99 programs want to run on 2 processors")

    monkeypatch.setattr("distro_conformance.cli.options.require_free_machine", busy)
    monkeypatch.setattr("distro_interop.sdks.verb.require_free_machine", busy)
    code, found = document(*words)
    assert (code, found["exit_code"]) == (3, 3)
    assert found["error"] == "99 programs want to run on 2 processors", "one line, and no open questions"


def test_virtual_time_does_not_mind_a_busy_machine(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise BusyMachineError("99 programs want to run on 2 processors")

    monkeypatch.setattr("distro_conformance.cli.options.require_free_machine", busy)
    code, found = document("test", "node", "--requirement", "DISTRO-HOLDER-002")
    assert (code, found["verdict"]) == (0, "conforms")
