"""Every release breaks, within the bounds of the gate, exactly what is listed for it; and `strict` nothing.

What is listed is all there is: with every listed cause repaired nothing breaks, so none hides behind another.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_conformance.exploration.explored import SearchOptions, against_the_list, explore_profile
from distro_conformance.findings import Judgement
from distro_conformance.gate.options import BUDGETS
from distro_model.bounded.bounds import Bounds
from distro_model.defects import DEFECTS, breaking, repaired
from distro_model.explorer import explore
from distro_model.mutants import with_mutant
from distro_model.profiles import PROFILES
from distro_model.properties import PROPERTIES

BOUNDS = BUDGETS["quick"].explore[0]

QUICK = ("strict", "nacos-2.2.4")
"""Releases whose one search serves several tests; the searches of the others are in `make test-all`."""


def each(profiles):
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in profiles]


@cache
def searched(profile):
    return explore_profile(profile, BOUNDS)


@pytest.mark.quality
@pytest.mark.parametrize("profile", each(PROFILES))
def test_a_release_breaks_exactly_what_is_listed(profile):
    explored = searched(profile).exploration
    assert explored.complete
    assert not [result.name for result in explored.results if result.applies and result.holds is None]
    broken = {result.name for result in explored.results if result.holds is False}
    assert broken == {name for name in PROPERTIES if breaking(name, profile, BOUNDS)}


@pytest.mark.quality
@pytest.mark.parametrize("profile", each(["nacos-2.0.4", "nacos-2.2.4", "nacos-3.0.3"]))
@pytest.mark.slow
def test_nothing_hides_behind_what_is_listed(profile):
    judged = against_the_list(searched(profile))
    known = {finding.about for finding in judged.findings if finding.judgement is Judgement.KNOWN}
    assert known == {name for name in PROPERTIES if breaking(name, profile, BOUNDS)}
    assert not [finding for finding in judged.findings if finding.violates]


LEFT = Bounds(nodes=3, changes=1, drops=0, swallows=0, leaves=1, in_flight=1)
OF_TASKS = ("INV-RETRY", "EVENTUALLY-QUIET")


@pytest.mark.quality
@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "broken"), [("nacos-2.0.0", OF_TASKS[:1]), ("nacos-2.0.4", OF_TASKS[:1]), ("nacos-3.0.3", OF_TASKS)]
)
def test_tasks_for_a_node_that_has_left_are_listed_where_nodes_leave(profile, broken):
    judged = against_the_list(explore_profile(profile, LEFT, search=SearchOptions(properties=OF_TASKS)))
    known = {finding.about: finding.known for finding in judged.findings if finding.judgement is Judgement.KNOWN}
    assert known == dict.fromkeys(broken, "B37")
    assert not [finding for finding in judged.findings if finding.violates]


def test_a_break_is_listed_only_where_the_bounds_allow_it():
    assert breaking("INV-RETRY", "nacos-3.0.3", LEFT)
    assert not breaking("INV-RETRY", "nacos-3.0.3", replace(LEFT, leaves=0))
    assert not breaking("INV-RETRY", "nacos-3.0.3", replace(LEFT, nodes=2))


@pytest.mark.quality
@pytest.mark.slow
def test_a_second_cause_is_news_however_much_longer_it_takes():
    """A verify that looks at nothing breaks on 2.2.4 what a kept revision breaks there already, and in more steps."""
    profile = "nacos-2.2.4"
    explored = searched(profile)
    second = replace(with_mutant(PROFILES[profile], "B02"), name=profile)
    judged = against_the_list(replace(explored, explored=second))
    news = {finding.about: finding.message for finding in judged.findings if finding.violates}
    assert news.keys() >= {"INV-CONV", "INV-VERIFY"}
    assert news["INV-CONV"].startswith("broken also where B10 is repaired")
    assert "INV-NATIVE" not in news


@pytest.mark.quality
@pytest.mark.slow  # that an entry is needed concerns the list; that it excuses no more is in the tests above
@pytest.mark.parametrize("bug", ["B24", "B27"])
def test_each_of_two_causes_is_needed(bug):
    """The repair of one of them alone does not end the violation: both entries are needed."""
    profile = PROFILES["nacos-2.3.2"]
    for defect in DEFECTS.values():
        if defect.id != bug and defect.breaks_in(profile.name):
            profile = profile.with_rules(*defect.repair)
    (found,) = explore(BOUNDS, profile, [PROPERTIES["INV-DELETE"]]).results
    assert found.holds is False


def test_every_entry_speaks_of_a_property_that_exists():
    assert {each.property for defect in DEFECTS.values() for each in defect.breaks} <= set(PROPERTIES)
    assert all(bool(defect.breaks) == bool(defect.repair) for defect in DEFECTS.values())
    assert repaired(PROFILES["strict"]) == PROFILES["strict"]
