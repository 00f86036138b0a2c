"""What a mutant is: a small named change of a profile, and the smallest cluster in which a property notices it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from distro_model.bounded.bounds import Bounds
from distro_model.profiles import Profile


@dataclass(frozen=True, slots=True)
class Mutant:
    """A historical bug keeps the id of the catalogue (`known-bugs.md`), a hypothetical one its `m-…` name.

    Explored within `bounds` on top of `strict`, it breaks at least the properties `breaks`; without it, `strict`
    satisfies all of them there. What only the timed cluster can tell breaks nothing there.
    """

    id: str
    sentence: str
    changed: Callable[[Profile], Profile]
    breaks: tuple[str, ...]
    bounds: Bounds = field(default_factory=Bounds)
