"""Mutants: small named changes of a profile that the properties must detect. The suite is judged by the mutants it
kills.

A file here holds the mutants of the file of `rules/` that has its name, and is found by being here. A mutant replaces
rules or parameters, so that it works on every profile; a historical bug replaces them by those of its releases.
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
    """The properties that it claims to break must exist, or no check would look for them. Raises
    UnknownPropertyError."""
    for name in mutant.breaks:
        try:
            property_named(name)
        except UnknownPropertyError as error:
            raise UnknownPropertyError(f"the mutant {mutant.id!r} claims to break an {error}") from None
    return mutant


MUTANTS: Mapping[str, Mutant] = MappingProxyType(dict(sorted((mutant.id, mutant) for mutant in _mutants())))


class UnknownMutantError(ValueError):
    """There is no mutant of that id; the message lists the known ids."""

    def __init__(self, mutant_id: str) -> None:
        super().__init__(mutant_id)
        self.mutant_id = mutant_id

    def __str__(self) -> str:
        return f"the model has no mutant {self.mutant_id!r}; known: {', '.join(sorted(MUTANTS))}"


def mutant_named(mutant_id: str) -> Mutant:
    """The mutant of this id. Raises UnknownMutantError."""
    try:
        return MUTANTS[mutant_id]
    except KeyError:
        raise UnknownMutantError(mutant_id) from None


def with_mutant(profile: Profile, mutant_id: str | None) -> Profile:
    """The profile with one mutant, named `profile+mutant`, or the unchanged profile. Raises UnknownMutantError."""
    if mutant_id is None:
        return profile
    mutant = mutant_named(mutant_id)
    return replace(profile.with_rules(*mutant.rules), name=f"{profile.name}+{mutant.id}", **mutant.parameters)
