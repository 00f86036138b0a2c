"""The registry of scripts: an id, a sentence, and a function that speaks to one node.

A script asks and never judges, does the same on every node, and names each step; what it must not do is decide by an
answer what to do next, since two nodes could then go different ways.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from distro_conformance.differential.stage import Stage
from distro_conformance.release import Span

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Script:
    """`id` is also the namespace that the script works in."""

    id: str
    text: str
    play: Play
    releases: Span


SCRIPTS: dict[str, Script] = {}


def script(id: str, text: str, releases: Span = Span()) -> Callable[[Play], Play]:  # noqa: A002
    """Registers the function that follows."""

    def register(play: Play) -> Play:
        if id in SCRIPTS:
            raise ValueError(f"two scripts are called {id}")
        SCRIPTS[id] = Script(id, text, play, releases)
        return play

    return register
