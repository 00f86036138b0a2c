"""Every mutant is killed within its own bounds, and `strict` is clean in the same cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_model import MUTANTS, PROPERTIES, Kind, explore, with_mutant
from distro_model.mutants.common import CLUSTERS, NOTICED_IN
from distro_model.profiles import STRICT
from distro_model.rules.rule import is_own


def broken(profile, bounds):
    explored = explore(bounds, profile)
    assert explored.complete
    return {result.name for result in explored.results if result.holds is False}


@cache
def broken_by_strict(bounds):
    return broken(STRICT, bounds)


@pytest.mark.quality
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_breaks_what_it_says(mutant):
    assert set(mutant.breaks) <= broken(with_mutant(STRICT, mutant.id), mutant.bounds)


@pytest.mark.parametrize("bounds", dict.fromkeys(mutant.bounds for mutant in MUTANTS.values()), ids=str)
def test_strict_breaks_nothing_there(bounds):
    assert broken_by_strict(bounds) == set()


SAFETY = [each for each in PROPERTIES.values() if each.kind is Kind.ALWAYS]


def broken_soon(profile, bounds, properties):
    """What a search comes upon first: most of it within the first states."""
    for most in (2_000, 25_000, bounds.max_states):
        explored = explore(replace(bounds, max_states=most), profile, properties)
        found = [each.name for each in explored.results if each.holds is False]
        if found or explored.complete:
            return found
    raise AssertionError(f"not searched whole: {bounds}")


@pytest.mark.slow
@pytest.mark.quality
@pytest.mark.parametrize("mutant", NOTICED_IN)
def test_a_mutant_is_noticed_in_a_common_cluster(mutant):
    """Whoever searches these clusters does not look for this mutant."""
    profile, bounds = with_mutant(STRICT, mutant), NOTICED_IN[mutant].bounds
    assert broken_soon(profile, bounds, SAFETY) or broken_soon(profile, bounds, [PROPERTIES["EVENTUALLY-LOAD"]])


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
def test_strict_breaks_nothing_in_a_common_cluster(cluster):
    explored = explore(cluster.bounds, STRICT, SAFETY)
    assert explored.complete
    assert [each.name for each in explored.results if each.holds is False] == []


def test_most_mutants_are_noticed_by_who_does_not_look_for_them():
    assert NOTICED_IN.keys() <= MUTANTS.keys()
    assert len(NOTICED_IN) >= 50


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_replaces_rules_or_parameters_and_says_how(mutant):
    assert mutant.rules or mutant.parameters
    for function in mutant.rules:
        assert not is_own(function)
        assert function.__doc__
