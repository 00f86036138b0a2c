"""How nodes hand a client of the HTTP API over, and what that costs beside the way of `strict` in searches."""

from __future__ import annotations

from distro_model.explorer import explore
from distro_model.mutants import MUTANTS
from distro_model.profile import Profile
from distro_model.profiles import NACOS_2_2_4, STRICT, beside_nodes
from distro_model.rules import as_nodes, members

BOUNDS = MUTANTS["B22"].bounds
"""A member takes another for dead although it runs."""


def broken(profile: Profile) -> set[str]:
    found = explore(BOUNDS, profile)
    assert found.complete
    return {each.name for each in found.results if each.counterexample is not None}


def test_who_cannot_tell_peers_apart_may_lose_what_it_accepted() -> None:
    """To an older copy, that its owner has verified before it heard. What waits for others is dropped, not retried."""
    assert broken(STRICT) == set()
    assert broken(beside_nodes(STRICT)) == {"INV-CLIENTACK", "INV-RETRY"}


def test_beside_nodes_of_a_release_nobody_hands_over() -> None:
    assert beside_nodes(STRICT).has(as_nodes.told_to_each_owner)
    assert beside_nodes(NACOS_2_2_4).has(members.tells_nobody)
