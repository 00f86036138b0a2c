"""The registry of scripts: an id, a sentence, and a function that speaks to one node.

A script asks and never judges, does the same on every node, and names each step. It must not choose its next step by
an answer, since two nodes could then take different steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from distro_conformance.release import Span
from distro_interop.differential.script_run import ScriptRun


class Setting(StrEnum):
    """The way in which a node is started."""

    MEMBER = "beside a played member"
    SECURED = "alone, with authentication on"


Play = Callable[[ScriptRun], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Script:
    """`id` is also the namespace that the script works in. `alone`: it turns what all clients of a node share."""

    id: str
    text: str
    play: Play
    releases: Span
    alone: bool = False
    setting: Setting = Setting.MEMBER


SCRIPTS: dict[str, Script] = {}


def script(
    id: str,  # noqa: A002
    text: str,
    releases: Span = Span(),
    *,
    alone: bool = False,
    setting: Setting = Setting.MEMBER,
) -> Callable[[Play], Play]:
    """Registers the function that follows."""

    def register(play: Play) -> Play:
        if id in SCRIPTS:
            raise ValueError(f"two scripts are called {id}")
        SCRIPTS[id] = Script(id, text, play, releases, alone, setting)
        return play

    return register
