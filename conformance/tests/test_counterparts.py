"""`strict` of the model and `strict` of the node repair the same, or it is said why not."""

from __future__ import annotations

from dataclasses import fields

import pytest
from counterparts import NODE_ALONE, PARAMETERS, PARAMETERS_WITHOUT, SWITCHES, WITHOUT

from distro_impl import PROFILES as NODE_PROFILES
from distro_model.profiles import PROFILES, RELEASES, STRICT, beside_nodes

REPAIRED = sorted({name for release in RELEASES for name, _ in PROFILES[release.name].rules})
BOTH = [each.name for each in RELEASES if each.name in NODE_PROFILES]


def differing(strict, releases):
    """The fields in which some release is not like strict, but for names and rules."""
    names = {each.name for each in fields(strict)} - {"name", "rules", "replaced"}
    return {name for name in names if any(getattr(each, name) != getattr(strict, name) for each in releases)}


def test_every_parameter_of_the_model_has_a_counterpart_or_a_reason():
    assert differing(STRICT, PROFILES.values()) == {*PARAMETERS, *PARAMETERS_WITHOUT}
    assert not PARAMETERS.keys() & PARAMETERS_WITHOUT.keys()


@pytest.mark.parametrize("release", ["strict", *BOTH])
def test_parameters_have_the_same_values_on_both_sides(release):
    model, node = beside_nodes(PROFILES[release]), NODE_PROFILES[release]
    values = {each: getattr(node, field) for each, field in PARAMETERS.items()}
    assert values == {each: None if values[each] is None else getattr(model, each) for each in PARAMETERS}


def test_every_switch_of_the_node_has_a_counterpart_or_a_reason():
    mapped = {*SWITCHES.values(), *PARAMETERS.values()}
    assert differing(NODE_PROFILES["strict"], NODE_PROFILES.values()) == mapped | NODE_ALONE.keys()
    assert not mapped & NODE_ALONE.keys()


@pytest.mark.parametrize("rule", REPAIRED)
def test_what_strict_repairs_has_a_counterpart_in_the_node_or_a_reason(rule):
    assert (rule in SWITCHES) != (rule in WITHOUT)


def test_nothing_is_listed_that_no_release_replaces():
    assert sorted({*SWITCHES, *WITHOUT}) == REPAIRED


@pytest.mark.parametrize("switch", sorted(set(SWITCHES.values())))
def test_the_counterpart_tells_strict_from_a_release_in_the_node_too(switch):
    values = {getattr(profile, switch) for name, profile in NODE_PROFILES.items() if name != "strict"}
    assert values - {getattr(NODE_PROFILES["strict"], switch)}


@pytest.mark.parametrize("release", BOTH)
def test_where_the_model_differs_from_strict_the_node_does_too(release):
    strict, node = NODE_PROFILES["strict"], NODE_PROFILES[release]
    replaced = PROFILES[release].replaced.keys() & SWITCHES.keys()
    assert [rule for rule in sorted(replaced) if getattr(node, SWITCHES[rule]) == getattr(strict, SWITCHES[rule])] == []
