"""Mutants: small named changes of a profile that the properties must notice.

A historical bug keeps the id of the catalogue (`known-bugs.md`), a hypothetical one its `m-…` name. One entry is one
mutant; what it changes is a change of switches, so that a mutant works on every profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from distro_model.profiles import Profile, RetryAction


@dataclass(frozen=True, slots=True)
class Mutant:
    id: str
    sentence: str
    changed: Callable[[Profile], Profile]


class UnknownMutantError(ValueError):
    """There is no mutant of that id; the message lists those there are."""


MUTANTS: Mapping[str, Mutant] = MappingProxyType(
    {
        mutant.id: mutant
        for mutant in (
            Mutant(
                "B02",
                "Verify tests only that the client exists, not its revision.",
                lambda profile: replace(profile, verify_tests_revision=False),
            ),
            Mutant(
                "B07",
                "A synced copy is created as native: it is sent on, verified, and never expires.",
                lambda profile: replace(profile, replicas_are_native=True),
            ),
            Mutant(
                "m-delete-retried-as-change",
                "A failed DELETE is retried as CHANGE; finding no client to send, that task ends silently.",
                # `strict` has a second line of defence (such a CHANGE becomes a DELETE again) that hides the first.
                lambda profile: replace(
                    profile, retry_action=RetryAction.ALWAYS_CHANGE, change_of_gone_client_deletes=False
                ),
            ),
        )
    }
)


def with_mutant(profile: Profile, mutant_id: str) -> Profile:
    """The profile with one mutant switched on, named `profile+mutant`. Raises UnknownMutantError."""
    try:
        mutant = MUTANTS[mutant_id]
    except KeyError:
        raise UnknownMutantError(f"unknown mutant {mutant_id!r}; known: {', '.join(sorted(MUTANTS))}") from None
    return replace(mutant.changed(profile), name=f"{profile.name}+{mutant.id}")
