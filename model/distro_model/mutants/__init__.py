"""Mutants: small named changes of a profile that the properties must notice. The suite is judged by those it kills.

One entry of one of these files is one mutant; what it changes is a change of switches, so that it works on every
profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from distro_model.mutants.batches import BATCHES
from distro_model.mutants.connections import CONNECTIONS
from distro_model.mutants.inside import INSIDE
from distro_model.mutants.load import LOAD
from distro_model.mutants.members import MEMBERS
from distro_model.mutants.mutant import Mutant
from distro_model.mutants.receive import RECEIVE
from distro_model.mutants.sync import SYNC
from distro_model.mutants.verify import VERIFY
from distro_model.profiles import Profile

__all__ = ["MUTANTS", "Mutant", "UnknownMutantError", "mutant_named", "with_mutant"]

MUTANTS: Mapping[str, Mutant] = MappingProxyType(
    {mutant.id: mutant for mutant in (*SYNC, *RECEIVE, *VERIFY, *LOAD, *BATCHES, *CONNECTIONS, *INSIDE, *MEMBERS)}
)


class UnknownMutantError(ValueError):
    """There is no mutant of that id; the message lists those there are."""


def mutant_named(mutant_id: str) -> Mutant:
    """Look a mutant up. Raises UnknownMutantError."""
    try:
        return MUTANTS[mutant_id]
    except KeyError:
        raise UnknownMutantError(f"unknown mutant {mutant_id!r}; known: {', '.join(sorted(MUTANTS))}") from None


def with_mutant(profile: Profile, mutant_id: str) -> Profile:
    """The profile with one mutant switched on, named `profile+mutant`. Raises UnknownMutantError."""
    mutant = mutant_named(mutant_id)
    return replace(mutant.changed(profile), name=f"{profile.name}+{mutant.id}")
