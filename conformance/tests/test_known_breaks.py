"""Every release breaks, within the bounds of the gate, exactly what is listed for it; and `strict` nothing."""

from __future__ import annotations

import pytest

from distro_conformance.gate.options import BUDGETS
from distro_conformance.known_failures import KNOWN_BREAKS, known_break
from distro_model import PROFILES, PROPERTIES, explore

BOUNDS = BUDGETS["quick"].explore[0]


@pytest.mark.quality
@pytest.mark.parametrize("profile", PROFILES)
def test_a_release_breaks_exactly_what_is_listed(profile):
    explored = explore(BOUNDS, PROFILES[profile])
    assert explored.complete
    assert not [result.name for result in explored.results if result.applies and result.holds is None]
    broken = {result.name for result in explored.results if result.holds is False}
    assert broken == {name for name in PROPERTIES if known_break(name, profile) is not None}


def test_every_entry_speaks_of_a_property_that_exists():
    assert {entry.property for entry in KNOWN_BREAKS} <= set(PROPERTIES)
