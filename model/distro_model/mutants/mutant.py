"""A mutant: a rule or a parameter replaced, and the smallest cluster in which a property detects it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from distro_model.bounded.bounds import Bounds
from distro_model.defects import DEFECTS
from distro_model.rules.rule import Function


@dataclass(frozen=True, slots=True)
class Mutant:
    """A known defect keeps its id and its sentence (`defects/table.py`), any other has a sentence of its own.

    Explored within `bounds` on top of `strict`, it breaks at least the properties `breaks`; without it, `strict`
    satisfies all of them there. A mutant that only the timed cluster can detect breaks none there.
    """

    id: str
    sentence: str = ""
    _: KW_ONLY
    rules: tuple[Function, ...] = ()
    """The replacement of a rule: of a release where the mutant is its bug, else defined beside the mutant."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    breaks: tuple[str, ...]
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        if not self.sentence:
            object.__setattr__(self, "sentence", f"{DEFECTS[self.id].sentence}.")
