"""`strict` of the model and `strict` of the node repair the same, or it is said why not."""

from __future__ import annotations

import pytest

from distro_conformance.counterparts import SWITCHES, WITHOUT
from distro_impl import PROFILES as NODE_PROFILES
from distro_model.profiles import PROFILES, RELEASES

REPAIRED = sorted({name for release in RELEASES for name, _ in PROFILES[release.name].rules})


@pytest.mark.parametrize("rule", REPAIRED)
def test_what_strict_repairs_has_a_counterpart_in_the_node_or_a_reason(rule):
    assert (rule in SWITCHES) != (rule in WITHOUT)


def test_nothing_is_listed_that_no_release_replaces():
    assert sorted({*SWITCHES, *WITHOUT}) == REPAIRED


@pytest.mark.parametrize("switch", sorted(set(SWITCHES.values())))
def test_the_counterpart_tells_strict_from_a_release_in_the_node_too(switch):
    values = {getattr(profile, switch) for name, profile in NODE_PROFILES.items() if name != "strict"}
    assert values - {getattr(NODE_PROFILES["strict"], switch)}


@pytest.mark.parametrize("release", [each.name for each in RELEASES if each.name in NODE_PROFILES])
def test_where_the_model_differs_from_strict_the_node_does_too(release):
    strict, node = NODE_PROFILES["strict"], NODE_PROFILES[release]
    replaced = PROFILES[release].replaced.keys() & SWITCHES.keys()
    assert [rule for rule in sorted(replaced) if getattr(node, SWITCHES[rule]) == getattr(strict, SWITCHES[rule])] == []
