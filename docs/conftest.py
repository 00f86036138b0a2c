"""Runs the commands of the documentation and compares what they print.

A block fenced as `console` is executed: a line that begins with `$ ` is a command, the lines below it are what it
prints (standard output and error together). `...` stands for anything, and runs of white space are equal. All blocks of
one page run in order in one directory of its own, in which `scenarios` is the folder of the repository and `logs` the
excerpt of three servers' logs from the tests. A command may find a violation (exit code 1), which pages are about; any
other failure fails the page.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

collect_ignore = ["examples"]
"""Projects of their own; tests of the kit run them as their users would."""

ROOT = Path(__file__).resolve().parent.parent
COMPARISON = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SECONDS_MAX = 600
"""For what hangs; a busy machine may take its time."""


def commands(block: str) -> Iterator[tuple[str, str]]:
    """(command, what it is expected to print) of one block."""
    command, expected = None, list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(expected)
            command, expected = line.removeprefix("$ "), []
        else:
            expected.append(line)
    if command is None:
        raise ValueError("a console block needs a line that begins with '$ '")
    yield command, "\n".join(expected)


def run(example: Example) -> str | None:
    for command, expected in commands(example.parsed):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=example.namespace["directory"],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "160"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        printed = done.stdout.rstrip()
        if done.returncode not in (0, 1):
            return f"$ {command}\nended with exit code {done.returncode}:\n{printed}"
        if expected and not doctest.OutputChecker().check_output(expected + "\n", printed + "\n", COMPARISON):
            return f"$ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    return None


def begin(namespace: dict[str, object]) -> None:
    directory = tempfile.TemporaryDirectory(prefix="distrocheck-docs-")
    (Path(directory.name) / "scenarios").symlink_to(ROOT / "scenarios")
    (Path(directory.name) / "logs").symlink_to(ROOT / "traces" / "tests" / "data" / "nacos-2.2.4")
    namespace.update(kept=directory, directory=directory.name)


def end(namespace: dict[str, object]) -> None:
    kept = namespace["kept"]
    assert isinstance(kept, tempfile.TemporaryDirectory)
    kept.cleanup()


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser(language="console", evaluator=run)],
    patterns=["*.md"],
    setup=begin,
    teardown=end,
).pytest()
