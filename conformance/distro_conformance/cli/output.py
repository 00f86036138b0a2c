"""What a verb prints: one JSON document, or a text for people; progress only on a terminal.

The contract of cli.md in one place: with `--json` stdout holds exactly one document, everything else is stderr.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

Progress = Callable[[str], None]

errors = Console(stderr=True, highlight=False, soft_wrap=True)
output = Console(highlight=False, soft_wrap=True)

_COLOURS = {
    **dict.fromkeys(("conforms", "holds", "killed"), "green"),
    **dict.fromkeys(("violates", "broken", "lives"), "red"),
    "inconclusive": "yellow",
}


def print_json(verb: str, document: Mapping[str, Any]) -> None:
    """The one document of a verb, with the schema that scripts rely on."""
    sys.stdout.write(json.dumps({"schema": schema(verb), **document}, indent=2, ensure_ascii=False) + "\n")


def schema(verb: str) -> str:
    return f"distrocheck/{verb.replace(' ', '-')}/1"


def say(text: str = "") -> None:
    """A line for a person; `text` is plain."""
    output.print(escape(text))


def row(verdict: str, text: str, *, width: int = 12) -> None:
    """A line that starts with a coloured verdict."""
    colour = _COLOURS.get(verdict, "default")
    output.print(f"[{colour}]{verdict:<{width}}[/{colour}] {escape(text)}")


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A line that is rewritten while a run goes on; silent when stderr is no terminal."""
    if not errors.is_terminal:
        yield lambda _: None
        return
    with errors.status("") as status:
        yield lambda text: status.update(escape(text))
