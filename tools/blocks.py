"""The fenced blocks of the pages, for the tests that execute them.

A block is one of three: fenced as `console` it is executed and its output compared; with `title="NAME"` it is a file,
which the blocks below it find under that name (both: docs/conftest.py); any other is read from its page by a test, with
`block`, and executed or compared there. No page shows a command, an output or a file that is not checked
(conformance/tests/test_page_commands.py). A picture, fenced as `mermaid`, is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r'^```(\w*)(?:[^\n]*?title="([^"\n]+)")?[^\n]*\n(.*?)^```', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """`start`, `end`: where it stands in the text of its page."""

    language: str
    title: str
    text: str
    start: int
    end: int

    @property
    def is_executed(self) -> bool:
        return self.language == "console"

    @property
    def is_picture(self) -> bool:
        return self.language == "mermaid"

    @property
    def is_included(self) -> bool:
        """A file of the repository, which is tested where it lies."""
        return self.text.startswith("--8<--")


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2] or "", found[3], found.start(), found.end())


def block(page: str, begins: str) -> str:
    """The text of the block of that page (a path from the root) that begins so; LookupError where there is none."""
    for each in blocks((ROOT / page).read_text("utf-8")):
        if each.text.startswith(begins):
            return each.text
    raise LookupError(f"{page} has no block that begins with '{begins}'")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what it is expected to print) of a `console` block. Raises ValueError where it begins with none."""
    command, expected = None, list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(expected)
            command, expected = line.removeprefix("$ "), []
        else:
            expected.append(line)
    if command is None:
        raise ValueError("a console block needs a line that begins with '$ '")
    yield command, "\n".join(expected)
