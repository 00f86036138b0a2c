"""The three verdicts and the exit codes that go with them (docs/reference/commands.md), and the errors that end a
run early.

They are in one small file because every verb needs them and users' scripts rely on the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Verdict(StrEnum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> int:
        return {Verdict.CONFORMS: 0, Verdict.VIOLATES: 1, Verdict.INCONCLUSIVE: 3}[self]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """A violation outweighs an inconclusive verdict, which outweighs a pass; no verdicts at all are inconclusive."""
    found = set(verdicts)
    for verdict in (Verdict.VIOLATES, Verdict.INCONCLUSIVE, Verdict.CONFORMS):
        if verdict in found:
            return verdict
    return Verdict.INCONCLUSIVE


class KitError(Exception):
    """Ends a run with one line on stderr. The message has the error, its place, and the advice."""

    exit_code = 2


class UsageError(KitError):
    """The call or its input cannot be used: unknown name, contradictory option, unreadable file."""

    exit_code = 2


class TargetError(KitError):
    """The target could not be reached or started."""

    exit_code = 4


LISTED = ("requirement", "mutant")
"""Kinds with so many names that a verb lists them; an error only shows similar names."""
GROUP_MAX = 24
"""The largest number of names in one line."""


class UnreadableError(TargetError):
    """The target answers, but without a necessary piece of information: nothing can be judged."""

    exit_code = 3


def without_twins(texts: Sequence[str], where: str) -> Sequence[str]:
    """Raises UsageError for a duplicate."""
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise UsageError(f"{where} names {twice} twice; name each once")
    return texts


def named(what: str, known: Mapping[str, T], name: str) -> T:
    """The entry of that name. Raises UsageError, which lists the known names, or of very many the similar ones."""
    if name not in known:
        raise UsageError(f"no {what} '{name}'; {alike(what, known, name)}")
    return known[name]


def alike(what: str, known: Collection[str], name: str) -> str:
    """The possible names: all if no verb lists them, else those with this beginning, or similar ones."""
    if what not in LISTED:
        return f"known: {', '.join(known)}"
    begin_so = [each for each in known if each.startswith(name)]
    is_group = 0 < len(begin_so) <= GROUP_MAX
    near = begin_so if is_group else get_close_matches(name, known)
    similar = f"{'those that begin so' if is_group else 'most like it'}: {', '.join(near)}; " if near else ""
    return f"{similar}'distrocheck list {what}s' shows all"


def why_unreadable(error: OSError | ValueError) -> str:
    """Why a text file could not be read, without its path, which the message has already."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 ({error.reason} at byte {error.start}); is it a text file?"
    return str(error)


def pair(text: str, option: str) -> tuple[str, str]:
    """Key and value of KEY=VALUE. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} takes KEY=VALUE, not '{text}'")
    return key, value


def all_named(what: str, known: Mapping[str, T], names: Sequence[str] | None) -> tuple[T, ...]:
    """The same for several names; every entry if none is named."""
    return tuple(named(what, known, name) for name in names or known)
