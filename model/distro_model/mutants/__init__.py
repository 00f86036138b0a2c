"""Mutants: small named changes of a profile that the properties must notice. The suite is judged by those it kills.

A file here holds the mutants of the file of `rules/` that has its name, and is found by being here. A mutant replaces
rules or parameters, so that it works on every profile; a historical bug replaces them by what its releases have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from distro_model.mutants.mutant import Mutant
from distro_model.profile import Profile
from distro_model.properties import UnknownPropertyError, property_named

__all__ = ["MUTANTS", "Mutant", "UnknownMutantError", "mutant_named", "with_mutant"]


def _mutants() -> Iterator[Mutant]:
    """Raises UnknownPropertyError."""
    for module in iter_modules(__path__):
        if module.name not in ("common", "mutant"):
            yield from map(checked, import_module(f"{__name__}.{module.name}").MUTANTS)


def checked(mutant: Mutant) -> Mutant:
    """What it says that it breaks must be a property, or nothing would look for it. Raises UnknownPropertyError."""
    for name in mutant.breaks:
        try:
            property_named(name)
        except UnknownPropertyError as error:
            raise UnknownPropertyError(f"the mutant {mutant.id!r} says that it breaks an {error}") from None
    return mutant


MUTANTS: Mapping[str, Mutant] = MappingProxyType(dict(sorted((mutant.id, mutant) for mutant in _mutants())))


class UnknownMutantError(ValueError):
    """There is no mutant of that id; the message lists those there are."""

    def __init__(self, mutant_id: str) -> None:
        super().__init__(mutant_id)
        self.mutant_id = mutant_id

    def __str__(self) -> str:
        return f"the model has no mutant {self.mutant_id!r}; known: {', '.join(sorted(MUTANTS))}"


def mutant_named(mutant_id: str) -> Mutant:
    """Look a mutant up. Raises UnknownMutantError."""
    try:
        return MUTANTS[mutant_id]
    except KeyError:
        raise UnknownMutantError(mutant_id) from None


def with_mutant(profile: Profile, mutant_id: str | None) -> Profile:
    """The profile with one mutant switched on, named `profile+mutant`, or as it is. Raises UnknownMutantError."""
    if mutant_id is None:
        return profile
    mutant = mutant_named(mutant_id)
    return replace(profile.with_rules(*mutant.rules), name=f"{profile.name}+{mutant.id}", **mutant.parameters)
