"""The registry of the reference node's mutants: each changes something, and its changes end with the last node."""

from __future__ import annotations

from dataclasses import fields

import pytest

from distro_conformance.node_mutants import MUTANTS, UnknownMutantError, with_mutant
from distro_impl import PROFILES, Profile


def test_every_switch_differs_between_two_profiles_or_two_mutants() -> None:
    """Else it would be a constant, if no configuration key sets it."""
    profiles = [*PROFILES.values(), *(with_mutant(PROFILES["strict"], mutant) for mutant in MUTANTS)]
    switches = {field.name for field in fields(Profile) if not field.name.endswith(("_ms", "_count"))}
    switches -= {"expire_instance", "data_warmup"}
    assert [switch for switch in switches if len({getattr(profile, switch) for profile in profiles}) == 1] == []


def test_an_unknown_mutant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMutantError) as raised:
        with_mutant(PROFILES["strict"], "B99")
    assert str(raised.value).startswith("the node has no mutant 'B99'; known: B01, ")
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("mutant_id", MUTANTS)
def test_a_mutant_changes_something_and_leaves_its_name_on_the_profile(mutant_id: str) -> None:
    profile, mutant = PROFILES["strict"], MUTANTS[mutant_id]
    mutated = with_mutant(profile, mutant_id)
    assert (mutated.name, mutated.mutant) == ("strict", mutant)
    assert mutant.apply(profile) != profile or mutant.changes  # more than the label


@pytest.mark.parametrize("mutant_id", [mutant.id for mutant in MUTANTS.values() if mutant.changes])
def test_changed_methods_are_put_back_when_the_last_node_has_ended(mutant_id: str) -> None:
    mutant = MUTANTS[mutant_id]
    before = [vars(change.owner)[change.name] for change in mutant.changes]
    mutant.switch_on()
    mutant.switch_on()
    assert all(vars(each.owner)[each.name] is not old for each, old in zip(mutant.changes, before, strict=True))
    mutant.switch_off()
    assert [vars(change.owner)[change.name] for change in mutant.changes] != before
    mutant.switch_off()
    assert [vars(change.owner)[change.name] for change in mutant.changes] == before


def test_two_mutants_do_not_live_in_one_process() -> None:
    MUTANTS["B07"].switch_on()
    with pytest.raises(ValueError, match="B26 cannot be switched on in a process where B07 is"):
        MUTANTS["B26"].switch_on()
    MUTANTS["B07"].switch_off()
