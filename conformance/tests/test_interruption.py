"""Ctrl-C, as a terminal sends it to all processes: one line, exit code 130, no traceback, and no process is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from programs import COMMAND

BEGUN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A process that a shell starts in the background ignores interrupts, these tests too."""
MODULE = "from distro_conformance.__main__ import main; main()"
WORD = "distrocheck: interrupted\n"


def interrupted(
    program: str, *arguments: str, when: Callable[[psutil.Process], bool], times: int = 1
) -> tuple[int, str, str, float]:
    """Exit code, stdout, stderr and the seconds that it took to end; none of its children is left."""
    command = [sys.executable, "-c", BEGUN + program, *arguments]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    watched = psutil.Process(running.pid)
    children: list[psutil.Process] = []
    try:
        end = time.monotonic() + 120
        while not when(watched):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
        children = watched.children(recursive=True)
        began = time.monotonic()
        for _ in range(times):
            os.killpg(running.pid, signal.SIGINT)
            time.sleep(0.3)
        out, err = running.communicate(timeout=60)
        seconds = time.monotonic() - began
        assert psutil.wait_procs(children, timeout=10)[1] == []
    finally:
        for process in (watched, *children):
            with contextlib.suppress(psutil.Error):
                process.kill()
    return running.returncode, out, err, seconds


def has_walkers(process: psutil.Process) -> bool:
    return sum("spawn_main" in "".join(each.cmdline()) for each in process.children()) == 2


def test_while_the_command_is_loaded() -> None:
    slow = "import builtins, time; load = builtins.__import__; "
    slow += "builtins.__import__ = lambda name, *rest: time.sleep(60 * (name == 'typer')) or load(name, *rest); "
    begun = time.monotonic()
    code, out, err, _ = interrupted(slow + MODULE, "--help", when=lambda _: time.monotonic() > begun + 2)
    assert (code, out, err) == (130, "", WORD)


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 2.0])
def test_processes_that_walk_say_nothing(tmp_path: Path, after_s: float) -> None:
    """Neither while they load what they need, nor while they walk."""
    seen: list[float] = []

    def walks(process: psutil.Process) -> bool:
        if has_walkers(process):
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() - seen[0] > after_s

    options = ("test", "cluster", "--jobs", "2", "--seconds", "60", "--seed", "1", "--out", str(tmp_path), "--json")
    code, out, err, _ = interrupted(COMMAND[-1], *options, when=walks)
    assert (code, err) == (130, f"seed 1\n{WORD}")
    assert json.loads(out)["error"] == "interrupted"


UNDISTURBED = "import distro_conformance.cli.options as each; each.require_free_machine = lambda: None; "
"""However busy the machine is: the result of the run does not matter."""


@pytest.mark.parametrize(
    ("options", "servers"),
    [
        (("test", "node"), 1),
        pytest.param(("test", "cluster", "--seconds", "60"), 3, marks=pytest.mark.slow),
        pytest.param(("gate", "--stages", "cluster"), 3, marks=pytest.mark.slow),
    ],
)
def test_servers_that_are_starting_are_ended_and_leave_no_home(
    options: tuple[str, ...], servers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars, homes, java = tmp_path / "jars", tmp_path / "homes", tmp_path / "bin" / "java"
    for directory in (jars, homes, java.parent):
        directory.mkdir()
    (jars / "nacos-naming-3.1.0-SNAPSHOT.jar").touch()
    java.write_text("#!/bin/sh\nsleep 61 &\nwait\n")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{java.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(homes))

    def all_start(process: psutil.Process) -> bool:
        return sum(each.name() == "sleep" for each in process.children(recursive=True)) >= servers

    words = (*options, "--target", f"nacos:{jars}", "--out", str(tmp_path / "out"))
    code, _, err, seconds = interrupted(UNDISTURBED + COMMAND[-1], *words, when=all_start)
    assert (code, err.splitlines()[-1]) == (130, WORD.strip())
    assert list(homes.glob("distrocheck-*")) == []
    assert seconds < 30


WAITS = """
import distro_conformance.cli as cli
from distro_conformance.cli import listing
import subprocess, sys, time

def waits(*_):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        time.sleep(60)
    finally:
        {afterwards}

listing.show = waits
cli.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "afterwards",
    [
        "child.kill(); raise ConnectionError('cannot connect')",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("time.sleep(60)", "child.kill(); return", "return")),
    ],
)
def test_errors_after_an_interrupt_are_not_printed(afterwards: str) -> None:
    """An error on the way out is no defect. Tasks that wait for ever are ended, and so are children that are still
    running: an interrupt may come before their starter knows them.
    """
    program = WAITS.format(afterwards=afterwards)
    code, _, err, seconds = interrupted(program, "list", "targets", when=lambda process: bool(process.children()))
    assert (code, err) == (130, WORD)
    assert seconds < 30


def test_a_process_that_is_interrupted_twice_ends_at_once() -> None:
    program = WAITS.format(afterwards="time.sleep(60)").replace(
        "import distro", "import distro_conformance.interruption as each; each.GRACE_S = 60\nimport distro", 1
    )
    code, _, err, seconds = interrupted(
        program, "list", "targets", when=lambda process: bool(process.children()), times=2
    )
    assert (code, err) == (130, WORD)
    assert seconds < 30


def test_a_second_interrupt_while_python_exits_changes_no_exit_code() -> None:
    """Python resets its handlers before it finalizes modules: a second interrupt would then end it by the signal."""
    slow = """
import sys, time

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1)

sys.slow = Slow()
"""
    program = slow + WAITS.format(afterwards="child.kill()")
    code, _, err, _ = interrupted(program, "list", "targets", when=lambda process: bool(process.children()), times=3)
    assert (code, err) == (130, WORD)
