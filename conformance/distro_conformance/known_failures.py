"""Requirements that a release is known to fail, with the bug to blame.

A listed failure does not fail a run, and one that starts to pass does: then the entry is wrong, or the check no longer
sees the bug. Bugs are those of known-bugs.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from distro_conformance.release import Span


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """`targets`: the kinds of target on which it was seen."""

    requirement: str
    releases: Span
    bug: str
    reason: str
    targets: tuple[str, ...] = ("embedded", "nacos")


KNOWN_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "DISTRO-REVISION-001",
        Span("2.1.2", "2.2.4"),
        "B10",
        "a plain CHANGE sets the revision of a replica only when it creates the replica",
    ),
)


def known_failure(requirement: str, profile: str, target_kind: str) -> KnownFailure | None:
    """The entry for that requirement, if any."""
    return next(
        (
            entry
            for entry in KNOWN_FAILURES
            if entry.requirement == requirement and target_kind in entry.targets and profile in entry.releases
        ),
        None,
    )
