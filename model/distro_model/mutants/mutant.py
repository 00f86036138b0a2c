"""A mutant: a rule or a parameter replaced, and the smallest cluster in which a property detects it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from distro_model.bounded.bounds import Bounds
from distro_model.rules.rule import Function

CLOCK, SIMULATION = "clock", "simulation"
"""Modes besides the search, in which every mutant is explored."""


def without_choices(why: str) -> Mapping[str, str]:
    """The mutant needs a choice that only a search has."""
    return {CLOCK: why, SIMULATION: why}


IN_ONE_INSTANT = "the events of a node are handled in the instant in which they are published, and leave no trace of it"
NO_HALVES = without_choices(
    "a request and a set-up are handled whole: nothing outside the node can choose an event in between"
)
NO_STRAYS = without_choices("no action sends a request that no owner sent")
NOTHING_RAISES = without_choices("no action makes a node's own code raise")


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
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Mode -> the reason why the mutant changes nothing there."""
