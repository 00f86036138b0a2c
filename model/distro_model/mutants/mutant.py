"""A mutant: a rule or a parameter replaced, and the smallest cluster in which a property detects it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from distro_model.bounded.bounds import Bounds
from distro_model.rules.rule import Function


@dataclass(frozen=True, slots=True)
class Mutant:
    """A historical bug keeps the id of the catalogue (docs/reference/mutants.md), a hypothetical one its `m-…` name.

    Explored within `bounds` on top of `strict`, it breaks at least the properties `breaks`; without it, `strict`
    satisfies all of them there. A mutant that only the timed cluster can detect breaks none there.
    """

    id: str
    sentence: str
    _: KW_ONLY
    rules: tuple[Function, ...] = ()
    """The replacement of a rule: of a release where the mutant is its bug, else defined beside the mutant."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    breaks: tuple[str, ...]
    bounds: Bounds = field(default_factory=Bounds)
