"""What a requirement is, and the table of all of them.

A check is written once and registers itself with `@requirement`; no other registration is needed. The sentence
that it checks is the first paragraph of its docstring.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import getdoc
from typing import TYPE_CHECKING

from distro_conformance.findings.finding import MUST, SHOULD, Level
from distro_conformance.release import Span

if TYPE_CHECKING:
    from distro_conformance.node.kit import Kit

__all__ = ["MUST", "SHOULD", "Level", "Requirement", "all_requirements", "requirement"]

Check = Callable[["Kit"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Requirement:
    """`text` is one sentence, `source` names the origin of the rule, `check` tests a node against it."""

    id: str
    level: Level
    text: str
    source: str
    releases: Span
    check: Check
    own_node: bool = False
    """The check starts the node, `kit.start_node()`, or disturbs other checks on a shared node."""
    bug: str | None = None
    """A known bug of releases that fails it."""


_REGISTRY: dict[str, Requirement] = {}


def requirement(
    id: str,  # noqa: A002 - what it is
    level: Level,
    statements: str,
    *,
    bug: str | None = None,
    since: str | None = None,
    until: str | None = None,
    own_node: bool = False,
) -> Callable[[Check], Check]:
    """Registers the decorated check. `statements`: anchors of docs/protocol; `bug`: the bug that fails it, in the list
    of mutants. Raises ValueError when the id is taken, and when the check has no sentence."""

    def register(check: Check) -> Check:
        if id in _REGISTRY:
            raise ValueError(f"two requirements are called {id}")
        text = " ".join((getdoc(check) or "").partition("\n\n")[0].split())
        if not text:
            raise ValueError(f"the check of {id} has no docstring; its first paragraph is the sentence that it checks")
        source = f"docs/protocol {statements}" + (f", docs/reference/mutants.md {bug}" if bug else "")
        _REGISTRY[id] = Requirement(id, level, text, source, Span(since, until), check, own_node, bug)
        return check

    return register


def all_requirements() -> tuple[Requirement, ...]:
    """All, by id."""
    return tuple(_REGISTRY[name] for name in sorted(_REGISTRY))
