"""Small named changes of the node's behaviour, made on purpose.

A conformance suite is judged by the mutants it kills. Each is one entry: the id (that of the model where the bug is
historical, `m-…` where it is made up), one sentence, and the switch of the profile that it turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from distro_impl.profiles import Profile


class UnknownMutantError(ValueError):
    """No mutant of that id; the message lists the known ones."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `apply` gives the profile with the change switched on."""

    id: str
    text: str
    apply: Callable[[Profile], Profile]


MUTANTS: dict[str, Mutant] = {
    mutant.id: mutant
    for mutant in (
        Mutant(
            "B02",
            "A verify only tests whether the client exists; a copy with other content is confirmed and kept.",
            lambda profile: replace(profile, verify_tests_revision=False),
        ),
        Mutant(
            "B03",
            "Nobody looks for silent connections: a client whose machine lost power stays, and is verified, for ever.",
            lambda profile: replace(profile, detection_timeout_ms=None),
        ),
        Mutant(
            "B07",
            "A client learnt from a peer is created as native: it is re-broadcast and verified, and never expires.",
            lambda profile: replace(profile, synced_created_as_native=True),
        ),
        Mutant(
            "B18",
            "A batch leaves the revision of its client as it is, so that a copy without it passes every verify.",
            lambda profile: replace(profile, batch_bumps_revision=False),
        ),
        Mutant(
            "B19",
            "A batch that comes where a single instance was cannot be applied.",
            lambda profile: replace(profile, batch_replaces_single=False),
        ),
        Mutant(
            "m-delete-retried-as-change",
            "A DELETE that failed is retried as CHANGE; the client is gone, so nobody is told to delete it.",
            lambda profile: replace(profile, delete_retried_as_change=True, missing_client_is_deleted=False),
        ),
    )
}


def with_mutant(profile: Profile, mutant_id: str) -> Profile:
    """The profile with that mutant switched on. Raises UnknownMutantError."""
    try:
        mutant = MUTANTS[mutant_id]
    except KeyError:
        known = ", ".join(sorted(MUTANTS))
        raise UnknownMutantError(f"the node knows no mutant {mutant_id!r}; known are: {known}") from None
    return replace(mutant.apply(profile), mutant=mutant_id)
