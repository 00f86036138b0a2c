"""What a verb prints: one JSON document, or a text for people; stages as they end, and progress on a terminal.

The contract of docs/reference/commands.md in one place: with `--json` stdout holds exactly one document, everything
else is stderr.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from distro_conformance.version import origin

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from distro_conformance.findings import Judged


_COLOURS = {
    **dict.fromkeys(("conforms", "holds", "killed", "good"), "green"),
    **dict.fromkeys(("violates", "broken", "lives"), "red"),
    **dict.fromkeys(("inconclusive", "known", "not-judged", "lacking"), "yellow"),
}


def print_json(verb: str, document: Mapping[str, Any]) -> None:
    """The one document of a verb, with the schema that scripts rely on and where it comes from."""
    whole = {"schema": schema(verb), **document, "tool": origin()}
    sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def print_judged(verb: str, judged: Judged, **more: Any) -> None:
    """The document of a verb that judges: what all of these say, its figures, and what it has besides."""
    common = {
        "verdict": judged.verdict,
        "headline": judged.headline,
        "target": judged.target,
        "profile": judged.profile,
        "seconds": round(judged.seconds, 3),
        "findings": [finding.to_json() for finding in judged.findings],
    }
    print_json(verb, {**common, **judged.figures, **more})


def schema(verb: str) -> str:
    return f"distrocheck/{verb.replace(' ', '-')}/1"


def say(text: str = "") -> None:
    """A line for a person; `text` is plain."""
    _console().print(text, markup=False)


def row(verdict: str, text: str, *, width: int = 12, to_stderr: bool = False) -> None:
    """A line that starts with a coloured verdict."""
    from rich.text import Text

    line = Text.assemble((f"{verdict:<{width}}", _COLOURS.get(verdict, "default")), " ", text)
    _console(to_stderr).print(line)


def say_aside(text: str) -> None:
    """A line for a person, on stderr."""
    _console(True).print(text, markup=False)


def stage_ended(verdict: str, text: str) -> None:
    """A part of a long run is over: told at once, whoever reads."""
    row(verdict, text, to_stderr=True)


class Progress:
    """What is being done, in one line. `expect` says how many parts there will be, `part_ended` that one is over: from
    then on the line says how long the rest will take. Silent without a line."""

    def __init__(self, line: RichProgress | None = None) -> None:
        self._line = line
        self._task = None if line is None else line.add_task("", total=None)

    def __call__(self, text: str) -> None:
        if self._line is not None and self._task is not None:
            self._line.update(self._task, description=text)

    def expect(self, parts: int) -> None:
        if self._line is not None and self._task is not None:
            self._line.update(self._task, total=parts)

    def part_ended(self) -> None:
        if self._line is not None and self._task is not None:
            self._line.advance(self._task)


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A line that is rewritten while a run goes on; silent when stderr is no terminal."""
    errors = _console(True)
    if not errors.is_terminal:
        yield Progress()
        return
    from rich.progress import Progress as RichProgress
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=errors, transient=True) as line:
        yield Progress(line)


def _console(to_stderr: bool = False) -> Console:
    """Loaded when something is printed: that takes as long as all else that `--help` needs."""
    from distro_conformance.cli import console

    return console.errors if to_stderr else console.output
