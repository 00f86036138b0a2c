"""The parts of a generated page: blocks with a blank line between them, of which some are tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "*Generated from the code by `make docs`; do not edit this page.*"

Block = str | Iterable[str]
"""A text, or its lines."""


def page(title: str, *blocks: Block) -> str:
    """A whole file, with the note on its generation below the title."""
    return (
        "\n\n".join(each if isinstance(each, str) else "\n".join(each) for each in (f"# {title}", NOTE, *blocks)) + "\n"
    )


def table(columns: str, rows: Iterable[Sequence[str]], *, rule: str = "") -> str:
    """`columns`: the head, with bars between the names; `rule`: the line below it, where it is not the default."""
    plain = "|".join("---" for _ in columns.split("|"))
    return "\n".join([f"| {columns} |", f"|{rule or plain}|", *(f"| {' | '.join(row)} |" for row in rows)])
