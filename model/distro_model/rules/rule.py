"""A rule is a function with a name and a source; this is where they are listed.

The list is documentation that cannot go stale: every transition of the model is in it, with the place in the
documents that it was read from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    source: str
    function: str  # module and name


_rules: dict[str, Rule] = {}
RULES: Mapping[str, Rule] = MappingProxyType(_rules)


def rule(name: str, *, source: str) -> Callable[[Function], Function]:
    """Mark a function as the rule `name`, read from `source`."""

    def listed(function: Function) -> Function:
        if name in _rules:
            raise ValueError(f"there are two rules named {name!r}")
        _rules[name] = Rule(name, source, f"{function.__module__}.{function.__name__}")
        return function

    return listed
