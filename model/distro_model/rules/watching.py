"""Refusals and counts of a node: the rules that are applied, the guards and their answers.

A watched profile is the profile with every rule and every guard replaced by one that notes its call and then does what
it did before. An unwatched profile has no overhead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules.rule import RULES, Function, Rule


@dataclass(frozen=True, slots=True)
class Refusal:
    """A guard that was false: where, for which rule, and its arguments (without the node itself)."""

    node: str
    rule: str
    client: str | None
    guard: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        about = "" if self.client is None or self.client in self.values else f" for {self.client}"
        return f"{self.node} may not {self.rule.replace('-', ' ')}: {self.guard} was false{values}{about}"


@dataclass(frozen=True, slots=True)
class _Frame:
    """A rule that is being applied."""

    node: str
    rule: str
    client: str | None


def watched(profile: Profile, into: list[Refusal]) -> Profile:
    """The same profile, whose guards that answer no are listed in `into`, in the order of their calls."""
    within: list[_Frame] = []
    rules = tuple((each.name, _watching(each, profile.replaced, within, into)) for each in RULES.values())
    return replace(profile, rules=rules, of=profile)


@dataclass(slots=True)
class Taken:
    """How often each rule was applied, and each guard answered yes or no, over all profiles that count into this."""

    rules: Counter[str] = field(default_factory=Counter)
    yes: Counter[str] = field(default_factory=Counter)
    no: Counter[str] = field(default_factory=Counter)

    @property
    def of_rules(self) -> dict[str, int]:
        """All rules; a rule that was never applied has 0."""
        return {name: self.rules[name] for name, each in RULES.items() if not each.is_guard}

    @property
    def of_guards(self) -> dict[str, int]:
        """Both answers of all guards, `NAME: no` and `NAME: yes`."""
        names = [name for name, each in RULES.items() if each.is_guard]
        return {
            f"{name}: {answer}": counts[name]
            for name in names
            for answer, counts in (("no", self.no), ("yes", self.yes))
        }


def counting(profile: Profile, into: Taken) -> Profile:
    """The same profile, whose rules and guards are counted."""
    rules = tuple((each.name, _counting(each, profile.replaced, into)) for each in RULES.values())
    return replace(profile, rules=rules, of=profile)


def _counting(asked: Rule, replaced: Mapping[str, Function], into: Taken) -> Function:
    function, name = replaced.get(asked.name, asked.own), asked.name
    rules, yes, no = into.rules, into.yes, into.no

    def in_rule(*args: Any) -> Any:
        rules[name] += 1
        return function(*args)

    def in_guard(*args: Any) -> Any:
        holds = function(*args)
        (yes if holds else no)[name] += 1
        return holds

    return in_guard if asked.is_guard else in_rule


def _watching(asked: Rule, replaced: Mapping[str, Function], within: list[_Frame], into: list[Refusal]) -> Function:
    function = replaced.get(asked.name, asked.own)

    def in_rule(*args: Any) -> Any:
        outer = within[-1] if within else _Frame("", asked.name, None)
        within.append(_Frame(_node_in(args) or outer.node, asked.name, _client_in(args) or outer.client))
        try:
            return function(*args)
        finally:
            within.pop()

    def in_guard(*args: Any) -> Any:
        holds = function(*args)
        if not holds and within:
            rule = within[-1]
            values = tuple(_text_of(each) for each in args[:-1] if not isinstance(each, NodeState))
            into.append(Refusal(rule.node, rule.rule, _client_in(args) or rule.client, asked.name, values))
        return holds

    return in_guard if asked.is_guard else in_rule


def _node_in(args: tuple[object, ...]) -> str | None:
    return next((each.name for each in args if isinstance(each, NodeState)), None)


def _client_in(args: tuple[object, ...]) -> str | None:
    """The client that a rule is about: of a request, an event or a task, or itself."""
    for each in args:
        client = getattr(getattr(each, "request", each), "client", None)
        if isinstance(client, str):
            return client
    return None


def _text_of(value: object) -> str:
    name = getattr(value, "name", value)
    return name if isinstance(name, str) else str(value)
