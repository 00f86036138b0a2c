"""Every mutant is killed within its own bounds, and `strict` is clean in the same cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from common_clusters import CLUSTERS

from distro_model.explorer import explore
from distro_model.mutants import MUTANTS, checked, with_mutant
from distro_model.profiles import STRICT
from distro_model.properties import PROPERTIES, UnknownPropertyError
from distro_model.rules.rule import is_own
from distro_model.search.system import Kind

SAFETY = [each for each in PROPERTIES.values() if each.kind is Kind.ALWAYS]


def broken_soon(profile, bounds, properties, enough=1):
    """The first violations of a search, which stops at so many."""
    names = {each.id for each in properties}
    explored = explore(bounds, profile, properties, lambda progress: len(names & progress.found) >= enough)
    found = [each.name for each in explored.results if each.holds is False]
    assert len(found) >= enough or explored.complete, f"not searched whole: {bounds}"
    return found


LONG = {"m-load-waits-for-down", "m-verify-only-if-all-up"}
"""Searches of seconds; lockstep and a requirement find these two in a node in less."""


@pytest.mark.quality
@pytest.mark.parametrize(
    "mutant", [pytest.param(each, id=name, marks=[pytest.mark.slow] * (name in LONG)) for name, each in MUTANTS.items()]
)
def test_a_mutant_breaks_what_it_says(mutant):
    properties = [PROPERTIES[name] for name in mutant.breaks]
    found = broken_soon(with_mutant(STRICT, mutant.id), mutant.bounds, properties, enough=len(properties))
    assert set(found) == set(mutant.breaks)


@pytest.mark.slow  # test_exploration checks strict in the common clusters
@pytest.mark.parametrize("bounds", dict.fromkeys(mutant.bounds for mutant in MUTANTS.values()), ids=str)
def test_strict_breaks_nothing_there(bounds):
    explored = explore(bounds, STRICT)
    assert explored.complete
    assert {result.name for result in explored.results if result.holds is False} == set()


@pytest.mark.slow
@pytest.mark.parametrize("bounds", CLUSTERS.values(), ids=CLUSTERS)
def test_strict_breaks_nothing_in_a_common_cluster(bounds):
    explored = explore(bounds, STRICT, SAFETY)
    assert explored.complete
    assert [each.name for each in explored.results if each.holds is False] == []


def test_each_property_that_must_hold_is_broken_by_a_mutant():
    """Otherwise no test shows that it can be broken."""
    broken = {name for mutant in MUTANTS.values() for name in mutant.breaks}
    assert {each.id for each in PROPERTIES.values() if each.kind is not Kind.SOMETIMES} - broken == set()


ALONE = {
    "m-check-asks-one": {"EVENTUALLY-SILENT"},
    "m-check-renews": {"INV-RESURRECT"},
    "m-held-change-fails": {"EVENTUALLY-CONV", "EVENTUALLY-QUIET"},
    "m-held-delete-fails": {"EVENTUALLY-DELETE", "EVENTUALLY-QUIET"},
    "m-no-lease-ends": {"INV-EXPIRE"},
    "m-refusal-renews": {"INV-RENEW"},
    "m-resends-after-success": {"EVENTUALLY-QUIET"},
    "m-verifies-copies": {"INV-SOURCE"},
}
"""Mutant -> the properties without which a whole search would not notice it."""


@pytest.mark.quality
@pytest.mark.parametrize("mutant", ALONE)
def test_a_mutant_is_noticed_by_these_properties_alone(mutant):
    explored = explore(MUTANTS[mutant].bounds, with_mutant(STRICT, mutant))
    assert explored.complete
    assert {each.name for each in explored.results if each.holds is False} == ALONE[mutant]


def test_a_mutant_that_breaks_what_is_no_property_is_refused():
    typo = replace(MUTANTS["B02"], id="my-own", breaks=("INV-CNOV",))
    with pytest.raises(UnknownPropertyError, match="the mutant 'my-own' claims to break an unknown property 'INV-"):
        checked(typo)
    assert all(checked(mutant) is mutant for mutant in MUTANTS.values())


def test_a_mutant_replaces_rules_or_parameters_and_says_how():
    assert [mutant.id for mutant in MUTANTS.values() if not (mutant.rules or mutant.parameters)] == []
    replaced = [(mutant.id, function) for mutant in MUTANTS.values() for function in mutant.rules]
    assert [(name, each.__name__) for name, each in replaced if is_own(each) or not each.__doc__] == []
