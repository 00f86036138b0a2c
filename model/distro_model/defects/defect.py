"""A row of the table: one known defect of releases.

A row states the defect, the releases that have it, where it was reported or can be read, and for the search of the
model which properties it breaks and which rules repair it. Symptoms in other kinds of findings are attached by its id:
for the requirements in `distro_conformance.findings.symptoms`, for the traces in `distro_spark.symptoms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from distro_model.release import STRICT, Span, UnreadableReleaseError, parsed, release_of
from distro_model.rules.rule import Function

LAST_READ = "3.1.0"
"""The latest release that was read and run: its head of September 2025."""

EVERY_RELEASE = Span()


@dataclass(frozen=True, slots=True)
class Break:
    """The search finds `property` violated, and why. `releases`: narrower than the defect's. `least`: the bounds
    without which no search finds it."""

    property: str
    why: str
    releases: Span | None = None
    least: tuple[tuple[str, int], ...] = ()

    def shows_in(self, bounds: object) -> bool:
        return all(getattr(bounds, name) >= number for name, number in self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """`repair`: the rules of `strict`, and the parameters, that remove the defect from the model.

    `releases`: every release if none is named, without an end where no release repaired it, None where no release has
    it. `last_seen`: the latest release that is known to have it; in later ones it is expected, and a pass there only
    means that it may be repaired.
    """

    id: str
    sentence: str
    link: str
    releases: Span | None = EVERY_RELEASE
    last_seen: str = LAST_READ
    breaks: tuple[Break, ...] = ()
    repair: tuple[Function, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def is_of(self, profile: str) -> bool:
        """Whether that release has it, or is expected to. `strict` has no defects."""
        return self.releases is not None and is_in(self.releases, profile)

    def is_expected_only(self, profile: str) -> bool:
        """Whether the release is later than all in which the defect was seen."""
        release = release_of(profile)
        return release is not None and release > parsed(self.last_seen)

    def breaks_in(self, profile: str, bounds: object = None) -> Mapping[str, str]:
        """Property to the reason why the defect breaks it in that release, within the bounds or in some bounds."""
        if not self.is_of(profile):
            return {}
        found = (each for each in self.breaks if each.releases is None or is_in(each.releases, profile))
        return {each.property: each.why for each in found if bounds is None or each.shows_in(bounds)}


def is_in(releases: Span, profile: str) -> bool:
    """Whether the profile is that of a release in the span; `strict` is no release, and neither is an unknown name."""
    try:
        return profile != STRICT and profile in releases
    except UnreadableReleaseError:
        return False
