"""What a deviation is: a named reason for differences, and where they may show."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from distro_conformance.differential.compare import Difference
from distro_conformance.release import Span

COMPARED = Span(until="2.3.2")
"""The last release that was compared; later ones are not known to differ."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a deviation shows; patterns as of the shell, where `real` is what the real server has there.

    `path` is empty where the whole answers differ, in their type or their status.
    """

    script: str
    step: str = "*"
    path: str = "*"
    real: str = "*"

    def holds(self, difference: Difference) -> bool:
        pairs = (
            (difference.script, self.script),
            (difference.step, self.step),
            (difference.path, self.path),
            (str(difference.real), self.real),
        )
        return all(fnmatchcase(text, pattern) for text, pattern in pairs)


@dataclass(frozen=True, slots=True)
class Deviation:
    """`why` is a paragraph: what differs, who could notice, and why the node does not follow."""

    id: str
    places: tuple[Place, ...]
    why: str
    releases: Span = COMPARED

    def explains(self, difference: Difference) -> bool:
        return any(place.holds(difference) for place in self.places)


def at(script: str, *steps: str, path: str = "*", real: str = "*") -> tuple[Place, ...]:
    """The same for several steps of a script."""
    return tuple(Place(script, step, path, real) for step in steps or ("*",))
