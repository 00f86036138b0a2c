"""The registry of the reference node's mutants: each changes something, and its changes end with the last node."""

from __future__ import annotations

from dataclasses import fields

import pytest

from distro_conformance.node_mutants import MUTANTS, Mutant, UnknownMutantError, with_mutant
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


def test_a_mutant_changes_a_switch_or_a_method_and_is_named_in_the_profile() -> None:
    strict = PROFILES["strict"]
    assert {name: with_mutant(strict, name).mutant for name in MUTANTS} == MUTANTS
    assert [name for name, each in MUTANTS.items() if each.apply(strict) == strict and not each.changes] == []


def methods(mutant: Mutant) -> list[object]:
    return [vars(change.owner)[change.name] for change in mutant.changes]


def test_changed_methods_are_restored_when_the_last_node_has_ended() -> None:
    unchanged, restored_early, left = [], [], []
    for mutant in (each for each in MUTANTS.values() if each.changes):
        before = methods(mutant)
        mutant.switch_on()
        mutant.switch_on()
        if any(now is old for now, old in zip(methods(mutant), before, strict=True)):
            unchanged.append(mutant.id)
        mutant.switch_off()
        if methods(mutant) == before:
            restored_early.append(mutant.id)
        mutant.switch_off()
        if methods(mutant) != before:
            left.append(mutant.id)
    assert (unchanged, restored_early, left) == ([], [], [])


def test_two_mutants_do_not_live_in_one_process() -> None:
    MUTANTS["B07"].switch_on()
    with pytest.raises(ValueError, match="B26 cannot be switched on in a process where B07 is"):
        MUTANTS["B26"].switch_on()
    MUTANTS["B07"].switch_off()
