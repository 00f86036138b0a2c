"""Small named changes of the node's behaviour, made on purpose: a conformance suite is judged by those it kills.

`mutant` says what one is and switches it on; every other file holds those of one part of the node, made by hand from
the protocol reference and the catalogue of bugs. The id is that of the catalogue where the bug is historical, and
`m-…` where it is made up.
"""

from distro_impl.mutants import (
    connecting,
    holding,
    leasing,
    loading,
    members,
    naming,
    pushing,
    releases,
    sending,
    verifying,
)
from distro_impl.mutants.mutant import Mutant, UnknownMutantError, switched_off, switched_on, with_mutant_of
from distro_impl.profiles import Profile

_PARTS = (releases, connecting, naming, pushing, sending, verifying, holding, leasing, loading, members)

MUTANTS: dict[str, Mutant] = {mutant.id: mutant for part in _PARTS for mutant in part.MUTANTS}


def with_mutant(profile: Profile, mutant_id: str) -> Profile:
    """The profile with that mutant switched on. Raises UnknownMutantError."""
    return with_mutant_of(MUTANTS, profile, mutant_id)


__all__ = ["MUTANTS", "Mutant", "UnknownMutantError", "switched_off", "switched_on", "with_mutant"]
