"""Types the commands of the documentation and compares what they print.

A block fenced as `console` is executed: a line that begins with `$ ` is a command, the lines below it are what it
prints (standard output and error together). `...` stands for anything, and runs of white space are equal. What goes on
in the background (`&`) prints its lines sooner or later, and perhaps more after them; they are waited for. A block with
a `title` is written as a file of that name.

A page is one session of a shell, in a directory of its own in which `clone` is the repository, `scenarios` its folder
and `logs` the excerpt of three servers' logs from the tests. The ports 8848, 8858 and 8868 stand for free ones, so that
pages can be read side by side. A command may find a violation (exit code 1), which pages are about; any other failure
fails the page.
"""

from __future__ import annotations

import doctest
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import pytest
from blocks import ROOT, blocks, commands
from spark_classes import SUBMIT_OPTIONS
from sybil import Document, Example, Region, Sybil

from distro_conformance.targets.ports import first_taken, free_base_ports

collect_ignore = ["examples"]
"""Projects of their own; pages and tests of the kit run them as their users would."""

COMPARISON = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SECONDS_MAX = 600
"""For what hangs; a busy machine may take its time."""

PORTS_SHOWN = (8848, 8858, 8868)
HERE = {"COLUMNS": "160", "SPARK_SUBMIT_OPTS": SUBMIT_OPTIONS}
"""In the environment."""

PROGRAMS = ("go",)
"""Of other languages: a block that needs one is skipped where it is missing."""


class Session:
    """A shell that goes on from command to command: `cd`, `export` and `kill %1` mean what they mean to who types."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="distrocheck-docs-"))
        self._outputs = Path(tempfile.mkdtemp(prefix="distrocheck-docs-"))
        for name, target in (("clone", ""), ("scenarios", "scenarios"), ("logs", "traces/tests/data/nacos-2.2.4")):
            (self.directory / name).symlink_to(ROOT / target)
        self._commands = 0
        self._shell = subprocess.Popen(
            ["bash", "--norc"],
            cwd=self.directory,
            env={**os.environ, **HERE, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def type(self, command: str) -> tuple[int, Path]:
        """The exit code, and the file in which its output stands or, of what goes on, will. Raises TimeoutError."""
        self._commands += 1
        typed, output = (self._outputs / f"{self._commands}.{kind}" for kind in ("sh", "txt"))
        typed.write_text(self.with_ports(command) + "\n", "utf-8")
        stdin, stdout = self._shell.stdin, self._shell.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"source {typed} > {output} 2>&1 < /dev/null; echo $?\n")
        stdin.flush()
        if not select.select([stdout], [], [], SECONDS_MAX)[0]:
            self._end()
            raise TimeoutError(f"$ {command}\nhas not ended after {SECONDS_MAX} s: {output.read_text('utf-8')}")
        if not (code := stdout.readline()):
            raise EOFError(f"$ {command}\nended the shell")
        return int(code), output

    def has_jobs(self) -> bool:
        """Whether anything goes on in the background."""
        return bool(self.type("jobs -r")[1].read_text("utf-8"))

    @cached_property
    def _ports(self) -> dict[str, str]:
        """Three free ones with the same distances."""
        first = PORTS_SHOWN[0]
        while True:
            (base,) = free_base_ports()
            chosen = {port: base + port - first for port in PORTS_SHOWN}
            if not any(map(first_taken, chosen.values())):
                return {str(port): str(free) for port, free in chosen.items()}

    def with_ports(self, text: str) -> str:
        """As it is typed."""
        return re.sub(r"\b88[456]8\b", lambda found: self._ports[found[0]], text)

    def as_shown(self, text: str) -> str:
        shown = {free: port for port, free in self.__dict__.get("_ports", {}).items()}
        return re.sub(r"\b\d{5}\b", lambda found: shown.get(found[0], found[0]), text)

    def close(self) -> None:
        self._end()
        shutil.rmtree(self.directory)
        shutil.rmtree(self._outputs)

    def _end(self) -> None:
        """With all that goes on in the background."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()


def run(example: Example) -> str | None:
    session: Session = example.namespace["session"]
    for command, shown in commands(example.parsed):
        if (program := command.split()[0]) in PROGRAMS and shutil.which(program) is None:
            pytest.skip(f"there is no {program} here")
        code, output = session.type(command)
        goes_on = command.endswith("&")
        expected = f"{shown}\n..." if goes_on and shown else shown
        printed = in_time(session, output, expected) if goes_on else read(session, output)
        if code not in (0, 1):
            return f"$ {command}\nended with exit code {code}:\n{printed}"
        if expected and not matches(expected, printed):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    return None


def read(session: Session, output: Path) -> str:
    return session.as_shown(output.read_text("utf-8")).rstrip()


def in_time(session: Session, output: Path, expected: str) -> str:
    """What is printed in the background, as soon as it is what is expected, or has ended without."""
    deadline = time.monotonic() + SECONDS_MAX
    while session.has_jobs() and time.monotonic() < deadline and not matches(expected, read(session, output)):
        time.sleep(0.1)
    return read(session, output)


def matches(expected: str, printed: str) -> bool:
    """A line that is `...` alone stands for any lines, or none."""
    expected = re.sub(r"^\.\.\.\n|\n\.\.\.\Z", "...", expected, flags=re.MULTILINE)
    return doctest.OutputChecker().check_output(expected + "\n", printed + "\n", COMPARISON)


def write(example: Example) -> None:
    title, text = example.parsed
    session: Session = example.namespace["session"]
    (session.directory / title).write_text(session.with_ports(text), "utf-8")


def parse(document: Document) -> Iterator[Region]:
    for block in blocks(document.text):
        if block.is_executed:
            yield Region(block.start, block.end, block.text, run)
        elif block.title:
            yield Region(block.start, block.end, (block.title, block.text), write)


def begin(namespace: dict[str, object]) -> None:
    namespace["session"] = Session()


def end(namespace: dict[str, object]) -> None:
    session = namespace["session"]
    assert isinstance(session, Session)
    session.close()


TRANSLATED = "*.zh-CN.md"
"""Has the blocks of its original, as `conformance/tests/test_page_commands.py` checks, which are executed there."""

pytest_collect_file = Sybil(
    parsers=[parse], patterns=["*.md"], excludes=[TRANSLATED], setup=begin, teardown=end
).pytest()
