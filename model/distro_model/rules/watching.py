"""Why a node did not do something: the guards that a step asks, and what they answered.

A watched profile is the profile with every rule and every guard replaced by one that notes its call and then does what
it did before. Nothing is paid for it where nobody watches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules.rule import RULES, Function, Rule


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard that was false. `about`: the clients and members among what it was asked about."""

    node: str
    rule: str
    guard: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.node} may not {self.rule.replace('-', ' ')}: {self.guard} was false{values}"


def watched(profile: Profile, into: list[Refusal]) -> Profile:
    """The same profile, whose guards that answer no are listed in `into`, in the order in which they were asked."""
    within: list[tuple[str, str]] = []
    rules = tuple((each.name, _watching(each, profile.replaced, within, into)) for each in RULES.values())
    return replace(profile, rules=rules)


def _watching(
    watched_rule: Rule, replaced: Mapping[str, Function], within: list[tuple[str, str]], into: list[Refusal]
) -> Function:
    function = replaced.get(watched_rule.name, watched_rule.own)

    def in_rule(*args: Any) -> Any:
        node = next((each.name for each in args if isinstance(each, NodeState)), "" if not within else within[-1][0])
        within.append((node, watched_rule.name))
        try:
            return function(*args)
        finally:
            within.pop()

    def in_guard(*args: Any) -> Any:
        holds = function(*args)
        if not holds and within:
            into.append(Refusal(*within[-1], watched_rule.name, tuple(_shown(args[:-1]))))
        return holds

    return in_guard if watched_rule.is_guard else in_rule


def _shown(values: tuple[object, ...]) -> Iterator[str]:
    """What a guard was asked about, without the node that it is asked of."""
    for value in values:
        if not isinstance(value, NodeState):
            yield str(getattr(value, "name", value))
