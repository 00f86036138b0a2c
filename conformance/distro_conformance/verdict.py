"""The three verdicts and the exit codes that go with them (docs/reference/commands.md), and the errors that end a
run early.

They are one small file because every verb needs them and scripts of others rely on the numbers.
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
    """A violation outweighs a missing answer, a missing answer outweighs a pass; nothing at all is no answer."""
    found = set(verdicts)
    for verdict in (Verdict.VIOLATES, Verdict.INCONCLUSIVE, Verdict.CONFORMS):
        if verdict in found:
            return verdict
    return Verdict.INCONCLUSIVE


class KitError(Exception):
    """Ends a run with one line on stderr. The message says what was wrong, where, and what to do."""

    exit_code = 2


class UsageError(KitError):
    """The call or its input cannot be used: unknown name, contradictory option, unreadable file."""

    exit_code = 2


class TargetError(KitError):
    """The target could not be reached or started."""

    exit_code = 4


LISTED = ("requirement", "mutant")
"""So many that a verb lists them; an error names what is like the one that was asked for."""
GROUP_MAX = 24
"""Names that one line can hold."""


class UnreadableError(TargetError):
    """It answers, and not what has to be known of it: nothing can be judged."""

    exit_code = 3


def without_twins(texts: Sequence[str], where: str) -> Sequence[str]:
    """Raises UsageError when one of them stands there twice."""
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise UsageError(f"{where} names {twice} twice; name each once")
    return texts


def named(what: str, known: Mapping[str, T], name: str) -> T:
    """The entry of that name. Raises UsageError, which lists what there is, or of very many what is like it."""
    if name not in known:
        raise UsageError(f"no {what} '{name}'; {alike(what, known, name)}")
    return known[name]


def alike(what: str, known: Collection[str], name: str) -> str:
    """What may have been meant: all where no verb lists them, else those that begin so, or are nearly the same."""
    if what not in LISTED:
        return f"known: {', '.join(known)}"
    begin_so = [each for each in known if each.startswith(name)]
    is_group = 0 < len(begin_so) <= GROUP_MAX
    near = begin_so if is_group else get_close_matches(name, known)
    told = f"{'those that begin so' if is_group else 'most like it'}: {', '.join(near)}; " if near else ""
    return f"{told}'distrocheck list {what}s' says all"


def pair(text: str, option: str) -> tuple[str, str]:
    """Of KEY=VALUE. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} takes KEY=VALUE, not '{text}'")
    return key, value


def all_named(what: str, known: Mapping[str, T], names: Sequence[str] | None) -> tuple[T, ...]:
    """The same for several; every entry where none is named."""
    return tuple(named(what, known, name) for name in names or known)
