"""What a verb prints: one JSON document, or a text for people that ends in a summary; stages as they end; progress.

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
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from distro_conformance.findings import Judged


_COLOURS = {
    **dict.fromkeys(("conforms", "holds", "killed", "good"), "green"),
    **dict.fromkeys(("violates", "broken", "lives"), "red"),
    **dict.fromkeys(("inconclusive", "known", "not-judged", "lacking"), "yellow"),
}
_FAILING = ("violates", "lives", "inconclusive", "not-judged", "missing")
"""What a summary begins with, the worst first."""
KEPT_FREE = 5
"""Lines of the last screen: a blank one, how many are left out, where the page is, the prompt."""
WIDTH = 14


def print_json(verb: str, document: Mapping[str, Any]) -> None:
    """The one document of a verb, with the schema that scripts rely on and where it comes from."""
    whole = {"schema": schema(verb), **document, "tool": origin()}
    sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def print_judged(verb: str, judged: Judged, **more: Any) -> None:
    """The document of a verb that judges: what all of these say, its figures, and what it has besides."""
    head = {"verdict": judged.verdict, "headline": judged.headline}
    print_json(verb, {**head, **fields_of(judged, "figures"), **judged.figures, **more})


def schema(verb: str) -> str:
    return f"distrocheck/{verb.replace(' ', '-')}/1"


def say(text: str = "") -> None:
    """A line for a person; `text` is plain."""
    _console().print(text, markup=False)


def row(verdict: str, text: str, *, to_stderr: bool = False) -> None:
    """A line that starts with a coloured verdict; on stderr of a part of a long run that is over."""
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
    """The end of a verb. What conforms comes first and may scroll away: the last screen begins with what fails, the
    worst above, and ends with the verdict. What does not fit there is told above it, and once more in short."""
    every = list(results)
    failing = sorted((each for each in every if each.verdict in _FAILING), key=lambda e: _FAILING.index(e.verdict))
    room = _console().size.height - _height(closing) - KEPT_FREE
    fits = sum(_height(each.text) + sum(map(_height, each.below)) for each in failing) <= room
    for each in (*(each for each in every if each.verdict not in _FAILING), *(() if fits else failing)):
        _print(each)
    if len(every) > 1 or not fits:
        say()
    for number, each in enumerate(failing):
        room -= 0 if fits else _height(each.text)
        if room < 0 and number:
            say(f"{'':<{WIDTH}} … {len(failing) - number} more, above")
            break
        _print(each if fits else ResultLine(each.verdict, each.text))
    row(verdict, closing)


def _height(text: str) -> int:
    """So many lines of the screen, beside a verdict."""
    wide = max(1, _console().size.width - WIDTH - 1)
    return sum(max(1, -(-len(line) // wide)) for line in text.split("\n"))


def _print(result: ResultLine) -> None:
    row(result.verdict, result.text)
    for line in result.below:
        say(f"    {line}")


def say_aside(text: str) -> None:
    """A line for a person, on stderr."""
    _console(True).print(text, markup=False)


class Progress:
    """What is being done, in one line, and how long the rest will take where that is known. Silent without a line."""

    def __init__(self, line: RichProgress | None = None) -> None:
        self.is_shown = line is not None
        self._update: Callable[..., None] = lambda **_: None
        if line is not None:
            self._update = partial(line.update, line.add_task("", total=None, ends_at=None))
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        self._update(description=text)

    def expect(self, seconds: float) -> None:
        """From now on it takes about so long."""
        self._update(ends_at=time.monotonic() + seconds)

    def done(self, parts: int, of: int) -> None:
        """So many parts of all are over; the others are taken to last as long."""
        if parts:
            self.expect((time.monotonic() - self._began) / parts * (of - parts))


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A line that is rewritten while a run goes on; silent when stderr is no terminal."""
    errors = _console(True)
    if not errors.is_terminal:
        yield Progress()
        return
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """Counts down to what was expected last."""

        def render(self, task: Task) -> Text:
            return Text(time_left(task.fields["ends_at"]))

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), Left())
    with RichProgress(*columns, console=errors, transient=True) as line:
        yield Progress(line)


def time_left(ends_at: float | None) -> str:
    """`ends_at`: monotonic seconds; None: nobody knows."""
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
