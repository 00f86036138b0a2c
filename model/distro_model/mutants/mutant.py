"""What a mutant is: a rule or a parameter replaced, and the smallest cluster in which a property notices it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distro_model.bounded.bounds import Bounds
from distro_model.rules.rule import Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A historical bug keeps the id of the catalogue (docs/reference/mutants.md), a hypothetical one its `m-…` name.

    Explored within `bounds` on top of `strict`, it breaks at least the properties `breaks`; without it, `strict`
    satisfies all of them there. What only the timed cluster can tell breaks nothing there.
    """

    id: str
    sentence: str
    rules: tuple[Function, ...] = ()
    """What takes the place of a rule: of a release where it is a bug of one, else of the mutant's own file."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    breaks: tuple[str, ...]
    bounds: Bounds = field(default_factory=Bounds)
