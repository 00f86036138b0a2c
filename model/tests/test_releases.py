"""The history of releases: a bug shows where a release brought it, and goes where one repaired it."""

from __future__ import annotations

from functools import cache

import pytest

from distro_model.explorer import explore
from distro_model.mutants import MUTANTS
from distro_model.profiles import PROFILES, RELEASES
from distro_model.properties import PROPERTIES

NOT_SHOWN = {
    "B37": "the form of 2.0.0 is an exception in the sender, the entry's other form is in every release",
}
"""Facts about releases that no switch of their profiles carries, and why."""

HIDDEN_BY_OTHERS = frozenset({"B08", "B16", "B32"})
"""Repairs that no property sees, since other bugs of the same release break all that the entry broke. (B16: a sync of a
type that no node knows is not applied either, and D6 is in every release.)"""

BEFORE = dict(zip((release.name for release in RELEASES[1:]), RELEASES, strict=False))


def of(bug):
    """The mutants of a catalogue entry: itself and its variants."""
    return [mutant for mutant in MUTANTS.values() if mutant.id == bug or mutant.id.startswith(f"{bug}-")]


@cache
def broken(profile, mutant_id):
    """Those properties of the mutant that the profile, without the mutant, breaks within the mutant's bounds."""
    mutant = MUTANTS[mutant_id]
    found = explore(mutant.bounds, PROFILES[profile], [PROPERTIES[name] for name in mutant.breaks])
    assert found.complete
    return frozenset(result.name for result in found.results if result.holds is False)


@pytest.mark.quality
@pytest.mark.parametrize(
    ("release", "bug"),
    [(release.name, bug) for release in RELEASES for bug in release.broke if bug not in NOT_SHOWN],
)
@pytest.mark.slow
def test_a_bug_of_a_release_shows_in_it(release, bug):
    assert any(broken(release, mutant.id) for mutant in of(bug))


@pytest.mark.quality
@pytest.mark.parametrize(
    ("release", "bug"),
    [
        (release.name, bug)
        for release in RELEASES
        for bug in release.fixed
        if bug not in NOT_SHOWN and bug not in HIDDEN_BY_OTHERS
    ],
)
@pytest.mark.slow
def test_a_bug_that_a_release_repaired_shows_no_longer(release, bug):
    assert any(broken(release, mutant.id) < broken(BEFORE[release].name, mutant.id) for mutant in of(bug))
