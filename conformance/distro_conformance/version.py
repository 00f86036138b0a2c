"""The version of distrocheck, its command line and the date: the origin data of every document."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

NAME = "distrocheck"
SECRET_OPTIONS = ("--identity", "--password")
HIDDEN = "***"


def tool_version() -> str:
    return version(NAME)


def command_line() -> str:
    """As typed, with the name of the program only, and without secrets."""
    program = Path(sys.argv[0]).name
    words = [NAME if program in ("", "-c", "__main__.py") else program, *sys.argv[1:]]
    return shlex.join(_without_secret(word, before) for before, word in zip(("", *words), words, strict=False))


def _without_secret(word: str, before: str) -> str:
    option, equals, _ = word.partition("=")
    if before in SECRET_OPTIONS:
        return HIDDEN
    return f"{option}={HIDDEN}" if equals and option in SECRET_OPTIONS else word


def now_utc() -> str:
    """To the second, as ISO 8601 with Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def origin() -> dict[str, str]:
    """version, command, date: part of each JSON document and of the report."""
    return {"version": tool_version(), "command": command_line(), "date": now_utc()}
