"""Mutants of the reference node: small named changes of its behaviour. The suite is judged by those that it finds.

`mutant` says what one is and switches it on; every other file holds those of one part of the node, made by hand from
the protocol reference and the catalogue of bugs, and is found by being here. The id is that of the catalogue where the
bug is historical, and `m-…` where it is made up.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from distro_conformance.node_mutants.mutant import Mutant, UnknownMutantError, added
from distro_impl.profiles import Profile

for _part in iter_modules(__path__):
    import_module(f"{__name__}.{_part.name}")

MUTANTS = added()


def with_mutant(profile: Profile, mutant_id: str | None) -> Profile:
    """The profile with that mutant switched on, if one is named. Raises UnknownMutantError."""
    if mutant_id is None:
        return profile
    if mutant_id not in MUTANTS:
        raise UnknownMutantError(mutant_id)
    mutant = MUTANTS[mutant_id]
    return replace(mutant.apply(profile), mutant=mutant)


__all__ = ["MUTANTS", "Mutant", "UnknownMutantError", "with_mutant"]
