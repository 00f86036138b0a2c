"""Properties of the model that releases do not have, each with its cause: the rules that a repair would bring back.

A break is excused when its cause is listed for the release and the property holds once all that is listed is repaired:
a second cause cannot hide behind the first, however much longer its counterexample is. A property that holds although a
cause is listed is a violation: then the entry is wrong, or the search no longer reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distro_conformance.findings.upstream import UPSTREAM
from distro_conformance.release import Span
from distro_model.profile import Profile
from distro_model.rules import load, receive, sync, verify
from distro_model.rules.rule import Function


@dataclass(frozen=True, slots=True)
class Cause:
    """A defect of releases. `repair`: the rules of `strict`, and the parameters, with which it is gone."""

    bug: str
    releases: Span
    breaks: Mapping[str, str]
    """Property to why the defect breaks it within the gate's bounds."""
    repair: tuple[Function, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def link(self) -> str:
        return UPSTREAM[self.bug]


_EVERY_RELEASE = Span(None, "3.0.3")

CAUSES: tuple[Cause, ...] = (
    Cause(
        "B02",
        Span(None, "2.1.1"),
        {
            "INV-CONV": "verify tests existence only, so a lost CHANGE stays lost",
            "EVENTUALLY-CONV": "and for good",
            "INV-VERIFY": "verify confirms a copy with any content",
        },
        (verify.revision_matches,),
        {"revisions_travel": True},
    ),
    Cause(
        "B10",
        Span("2.1.2", "2.2.4"),
        {
            "INV-CONV": "a late snapshot changes the content of a copy, not its revision",
            "EVENTUALLY-CONV": "and for good",
            "INV-VERIFY": "such a copy passes every verify",
            "INV-REV": "a plain CHANGE sets a copy's revision only when it creates it",
            "EVENTUALLY-QUIET": "every verify of a changed client fails, and syncs again",
        },
        (receive.taken_revision,),
    ),
    Cause(
        "B24",
        _EVERY_RELEASE,
        {
            "INV-DELETE": "the retry of a CHANGE replaces the queued DELETE",
            "EVENTUALLY-DELETE": "and the copy is left to its lease",
        },
        (sync.of_gone_client, sync.replaces_pending),
    ),
    Cause(
        "B27",
        _EVERY_RELEASE,
        {
            "INV-DELETE": "a snapshot that was asked for before the DELETE brings the client back",
            "EVENTUALLY-DELETE": "and the copy is left to its lease",
        },
        (receive.is_remembered,),
    ),
    Cause(
        "B01",
        _EVERY_RELEASE,
        {
            "INV-NATIVE": "a stale snapshot overwrites a client that is connected here",
            "INV-CLIENTACK": "a stale snapshot takes back what a client was told to have",
        },
        (receive.is_not_native_here,),
    ),
    Cause(
        "B01",
        Span(None, "2.1.1"),
        {"INV-REV": "a stale snapshot overwrites a client that is connected here"},
        (receive.is_not_native_here,),
    ),
    Cause(
        "B32",
        Span(None, "2.2.0"),
        {
            "INV-LOAD": "no peer is known when the first load begins, so it fails and waits for its retry",
            "INV-SOURCE": "the load that comes late brings a client back that has left, and its task sends the copy",
        },
        (load.knows_a_peer,),
    ),
)


def causes_of(profile: str) -> tuple[Cause, ...]:
    return tuple(cause for cause in CAUSES if profile in cause.releases)


def known_breaks(property_id: str, profile: str) -> tuple[Cause, ...]:
    """The causes that are listed for that property of that profile."""
    return tuple(cause for cause in causes_of(profile) if property_id in cause.breaks)


def repaired(profile: Profile) -> Profile:
    """Without the defects that are listed for it."""
    for cause in causes_of(profile.name):
        profile = replace(profile.with_rules(*cause.repair), **cause.parameters)
    return profile
