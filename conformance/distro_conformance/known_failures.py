"""Requirements and properties that a release is known to fail, with the bug to blame.

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


EVERY_RELEASE = Span(until="3.0.3")
"""The last release that was looked at; `strict` counts as later."""

KNOWN_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "DISTRO-REVISION-001",
        Span("2.1.2", "2.2.4"),
        "B10",
        "a plain CHANGE sets the revision of a replica only when it creates the replica",
    ),
    KnownFailure(
        "DISTRO-BATCH-002", Span("2.1.2", "2.2.4"), "B18", "a batch registration leaves the revision as it is"
    ),
    KnownFailure("DISTRO-BATCH-003", Span("2.1.1", "2.3.0"), "B19", "the stored single instance is cast to a batch"),
    KnownFailure("DISTRO-CONNECTION-001", Span("2.2.0", "2.2.4"), "B03", "the ejector detects nothing"),
    KnownFailure("DISTRO-HOLDER-003", EVERY_RELEASE, "B26", "a CHANGE of an unknown client creates it, deleted or not"),
    KnownFailure("DISTRO-NATIVE-001", EVERY_RELEASE, "B01", "a CHANGE is applied to whatever client has that id"),
    KnownFailure("DISTRO-NATIVE-002", EVERY_RELEASE, "B41", "a DELETE removes whatever client has that id"),
    KnownFailure("DISTRO-REFUSAL-001", Span(until="2.5.0"), "B16", "a handler's exception shows in errorCode only"),
    KnownFailure("DISTRO-REFUSAL-002", EVERY_RELEASE, "B16", "a sync that nobody handles is acknowledged"),
    KnownFailure("DISTRO-REFUSAL-003", EVERY_RELEASE, "B16", "a sync that nobody handles is acknowledged"),
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


@dataclass(frozen=True, slots=True)
class KnownBreak:
    """A property of the model that releases do not have, found by the search within the gate's bounds."""

    property: str
    releases: Span
    bug: str
    reason: str


_VERIFY_IS_BLIND = Span(None, "2.1.1")
_REVISION_IS_KEPT = Span("2.1.2", "2.2.4")
_EVERY_RELEASE = Span(None, "3.0.3")

KNOWN_BREAKS: tuple[KnownBreak, ...] = (
    KnownBreak("INV-CONV", _VERIFY_IS_BLIND, "B02", "verify tests existence only, so a lost CHANGE stays lost"),
    KnownBreak("EVENTUALLY-CONV", _VERIFY_IS_BLIND, "B02", "and for good"),
    KnownBreak("INV-VERIFY", _VERIFY_IS_BLIND, "B02", "verify confirms a copy with any content"),
    KnownBreak("INV-REV", _VERIFY_IS_BLIND, "B01", "a stale snapshot overwrites a client that is connected here"),
    KnownBreak("INV-CONV", _REVISION_IS_KEPT, "B10", "a late snapshot changes the content of a copy, not its revision"),
    KnownBreak("EVENTUALLY-CONV", _REVISION_IS_KEPT, "B10", "and for good"),
    KnownBreak("INV-VERIFY", _REVISION_IS_KEPT, "B10", "such a copy passes every verify"),
    KnownBreak("INV-REV", _REVISION_IS_KEPT, "B10", "a plain CHANGE sets a copy's revision only when it creates it"),
    KnownBreak("EVENTUALLY-QUIET", _REVISION_IS_KEPT, "B10", "every verify of a changed client fails, and syncs again"),
    KnownBreak("INV-DELETE", _EVERY_RELEASE, "B24", "the retry of a CHANGE replaces the queued DELETE"),
    KnownBreak("EVENTUALLY-DELETE", _EVERY_RELEASE, "B24", "and the copy is left to its lease"),
    KnownBreak("INV-NATIVE", _EVERY_RELEASE, "B01", "a stale snapshot overwrites a client that is connected here"),
    KnownBreak("INV-CLIENTACK", _EVERY_RELEASE, "B01", "a stale snapshot takes back what a client was told to have"),
)


def known_break(property_id: str, profile: str) -> KnownBreak | None:
    """The entry for that property of that profile, if any."""
    return next((e for e in KNOWN_BREAKS if e.property == property_id and profile in e.releases), None)
