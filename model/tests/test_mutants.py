"""Every mutant is killed within its own bounds, and `strict` is clean in the same cluster."""

from __future__ import annotations

from functools import cache

import pytest

from distro_model import MUTANTS, explore, with_mutant
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


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_replaces_rules_or_parameters_and_says_how(mutant):
    assert mutant.rules or mutant.parameters
    for function in mutant.rules:
        assert not is_own(function)
        assert function.__doc__
