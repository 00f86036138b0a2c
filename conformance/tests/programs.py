"""Programs that tests start, among them the command, which they may also call (conftest.py)."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from distro_conformance.cli import LazyGroup, whole
from distro_conformance.cli.serve import PORT_STEP
from distro_impl import free_main_ports

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from distro_conformance.cli import main; main()")
Ran = subprocess.CompletedProcess[str]
Call = Callable[..., Ran]
Document = Callable[..., tuple[int, dict[str, Any]]]


def executed(*command: str | Path, **options: Any) -> Ran:
    """The output and the exit code of the program. A program that hangs is ended; a busy machine may take long."""
    usual = {"capture_output": True, "text": True, "timeout": 900}
    return subprocess.run(command, check=options.pop("check", False), **{**usual, **options})


def two_ports() -> int:
    """The first of two main ports that `serve` gives to two nodes, both free."""
    while True:
        first, second = free_main_ports(2)
        if second == first + PORT_STEP:
            return first


def understood(words: list[str]) -> Mapping[str, Any]:
    """A command as the command line reads it, without doing it: what its verb is called with. Raises its exceptions for
    mistakes, and LookupError."""
    command, rest = whole(), words[1:]
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        found = command.get_command(typer.Context(command), rest[0])
        if found is None:
            raise LookupError(f"no verb {rest[0]}")
        command, rest = found, rest[1:]
    if not isinstance(command, LazyGroup):
        with contextlib.suppress(typer.Exit):  # of `--help`
            return command.make_context(command.name, rest).params
    return {}
