"""The output of a verb: one JSON document, or a text for people that ends in a summary; stages when they end; progress.

The contract of docs/reference/commands.md in one place: with `--json` stdout holds exactly one document, everything
else is stderr.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from distro_conformance.plain import fields_of
from distro_conformance.version import origin

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from distro_conformance.findings import Judged


_COLOURS = {
    **dict.fromkeys(("conforms", "holds", "killed", "good"), "green"),
    **dict.fromkeys(("violates", "broken", "lives"), "red"),
    **dict.fromkeys(("inconclusive", "known", "not-judged", "lacking"), "yellow"),
}
_FAILING = ("violates", "lives", "inconclusive", "not-judged", "missing")
"""The verdicts that a summary lists first, the worst first."""
KEPT_FREE = 5
"""Lines kept free on the last screen: a blank one, the number of lines left out, the path of the page, the prompt."""
WIDTH = 14


def print_json(verb: str, document: Mapping[str, Any]) -> None:
    """Prints the one document of a verb, with the schema that scripts rely on and its origin."""
    whole = {"schema": schema(verb), **document, "tool": origin()}
    sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def print_judged(verb: str, judged: Judged, **more: Any) -> None:
    """Prints the document of a verb that judges: the fields common to such verbs, its figures, and `more`."""
    head = {"verdict": judged.verdict, "headline": judged.headline}
    print_json(verb, {**head, **fields_of(judged, "figures"), **judged.figures, **more})


def schema(verb: str) -> str:
    return f"distrocheck/{verb.replace(' ', '-')}/1"


def echo(text: str = "") -> None:
    """Prints a line for a person; `text` is not markup."""
    _console().print(text, markup=False)


def row(verdict: str, text: str, *, to_stderr: bool = False) -> None:
    """Prints a line that starts with a coloured verdict; on stderr for a finished part of a long run."""
    from rich.text import Text

    line = Text.assemble((f"{verdict:<{WIDTH}}", _COLOURS.get(verdict, "default")), " ", text)
    _console(to_stderr).print(line)


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One result of many, with the lines that explain it."""

    verdict: str
    text: str
    below: Sequence[str] = ()


def summary(results: Iterable[ResultLine], verdict: str, closing: str) -> None:
    """Prints the end of a verb. Conforming results come first and may scroll away: the last screen begins with the
    failing results, the worst first, and ends with the verdict. Failing results that do not fit are printed above that
    screen and repeated there in short."""
    every = list(results)
    failing = sorted((each for each in every if each.verdict in _FAILING), key=lambda e: _FAILING.index(e.verdict))
    room = _console().size.height - _height(closing) - KEPT_FREE
    fits = sum(_height(each.text) + sum(map(_height, each.below)) for each in failing) <= room
    for each in (*(each for each in every if each.verdict not in _FAILING), *(() if fits else failing)):
        _print(each)
    if len(every) > 1 or not fits:
        echo()
    for number, each in enumerate(failing):
        room -= 0 if fits else _height(each.text)
        if room < 0 and number:
            echo(f"{'':<{WIDTH}} … {len(failing) - number} more, above")
            break
        _print(each if fits else ResultLine(each.verdict, each.text))
    row(verdict, closing)


def _height(text: str) -> int:
    """The number of lines on the screen that `text` takes beside a verdict."""
    wide = max(1, _console().size.width - WIDTH - 1)
    return sum(max(1, -(-len(line) // wide)) for line in text.split("\n"))


def _print(result: ResultLine) -> None:
    row(result.verdict, result.text)
    for line in result.below:
        echo(f"    {line}")


def echo_page(html: Path | None) -> None:
    """Prints where the page is, if one was written."""
    if html is not None:
        echo(f"Page: {html}")


def echo_stderr(text: str) -> None:
    """Prints a line for a person on stderr."""
    _console(True).print(text, markup=False)


class Progress:
    """One line with the current activity and the expected time left, if known. Silent without a line."""

    def __init__(self, line: RichProgress | None = None) -> None:
        self.is_shown = line is not None
        self._update: Callable[..., None] = lambda **_: None
        if line is not None:
            self._update = partial(line.update, line.add_task("", total=None, ends_at=None))
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        self._update(description=text)

    def expect(self, seconds: float) -> None:
        """Sets the expected time from now on."""
        self._update(ends_at=time.monotonic() + seconds)

    def done(self, parts: int, of: int) -> None:
        """Estimates the time left from the finished parts; the others are assumed to take as long."""
        if parts:
            self.expect((time.monotonic() - self._began) / parts * (of - parts))


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A line that is rewritten during a run; silent when stderr is not a terminal."""
    errors = _console(True)
    if not errors.is_terminal:
        yield Progress()
        return
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """Counts down to the last expected end."""

        def render(self, task: Task) -> Text:
            return Text(time_left(task.fields["ends_at"]))

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), Left())
    with RichProgress(*columns, console=errors, transient=True) as line:
        yield Progress(line)


def time_left(ends_at: float | None) -> str:
    """`ends_at`: monotonic seconds; None: unknown."""
    if ends_at is None:
        return ""
    seconds = ends_at - time.monotonic()
    if seconds < 0:
        return "longer than expected"
    return f"about {seconds / 60:.0f} min left" if seconds >= 100 else f"about {seconds:.0f} s left"


def _console(to_stderr: bool = False) -> Console:
    """Loaded when something is printed: that takes as long as all else that `--help` needs."""
    from distro_conformance.cli import console

    return console.errors if to_stderr else console.output
