"""What a requirement is, the table of all of them, and their selection by name.

A check is written once and registers itself with `@requirement`; no other registration is needed. The sentence
that it checks is the first paragraph of its docstring.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc
from typing import TYPE_CHECKING

from distro_conformance.findings.finding import MUST, SHOULD, Level
from distro_conformance.release import Span
from distro_conformance.verdict import UsageError, named

if TYPE_CHECKING:
    from distro_conformance.node.kit import Kit

__all__ = ["MUST", "SHOULD", "Level", "Requirement", "all_requirements", "requirement", "requirements_named"]

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


def requirements_named(names: Sequence[str] | None, skip: Sequence[str] | None = None) -> Sequence[Requirement]:
    """The named requirements, or all, without those that `skip` names.

    A name is an id, the beginning of ids up to a hyphen (DISTRO-SYNC), or a level, MUST or SHOULD. Ids and beginnings
    add up, and a level narrows them: DISTRO-SYNC and MUST are the MUSTs of that area. Raises UsageError.
    """
    chosen = _named(names, "--requirement") if names else all_requirements()
    skipped = _named(skip, "--skip") if skip else ()
    left = tuple(each for each in chosen if each not in skipped)
    if not left:
        raise UsageError("no requirement is left to be judged; see 'distrocheck list requirements'")
    return left


def _named(names: Sequence[str], option: str) -> tuple[Requirement, ...]:
    """The requirements of these names, in the order of the names."""
    levels = {name.upper() for name in names} & {MUST, SHOULD}
    every = all_requirements()
    found: dict[str, Requirement] = {}
    others = [name for name in names if name.upper() not in levels]
    for name in others:
        alike = {each.id: each for each in every if each.id == name or each.id.startswith(f"{name.rstrip('-')}-")}
        if not alike:
            named("requirement", {each.id: each for each in every}, name)  # raises with the similar names
            raise UsageError(f"{option} {name}: no requirement begins so")
        found |= alike
    return tuple(each for each in (found.values() if others else every) if not levels or each.level in levels)
