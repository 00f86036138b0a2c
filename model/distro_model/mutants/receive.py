"""Mutants of how a peer's state is taken over: CHANGE and DELETE at their receiver."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.profiles import TakesRevision

RECEIVE = (
    Mutant(
        "B05",
        "CHANGEs of one client are applied at the same time, service by service: the revision does not tell whose"
        " content has stayed.",
        lambda profile: replace(profile, applies_atomically=False),
        ("INV-REV", "INV-VERIFY", "INV-CONV"),
        Bounds(services=2, drops=0, swallows=0),
    ),
    Mutant(
        "B07",
        "A synced copy is created as native: it is sent on, verified, and never expires.",
        lambda profile: replace(profile, replicas_are_native=True),
        ("INV-OWNER",),
        Bounds(changes=1, drops=0, swallows=0),
    ),
    Mutant(
        "B10",
        "A copy keeps the revision with which it was created: every later verify fails, and the copy expires.",
        # `strict` has a second line of defence (a sync renews the lease, B17) that keeps the copy alive.
        lambda profile: replace(profile, takes_revision=TakesRevision.AT_CREATION, sync_renews_lease=False),
        ("INV-REV", "INV-LIVE"),
        Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "B16",
        "An exception while a sync is handled is answered with SUCCESS.",
        lambda profile: replace(profile, acknowledges_failed_applies=True),
        ("INV-ACK", "INV-DELETE"),
        Bounds(changes=1, drops=0, swallows=0, raises=1),
    ),
    Mutant(
        "B26",
        "A CHANGE that comes after the DELETE of its client brings it back.",
        lambda profile: replace(profile, tombstones=False),
        ("INV-DELETE",),
        Bounds(changes=1, drops=0, swallows=0, reorders=1),
    ),
    Mutant(
        "B41",
        "Any peer can overwrite or delete a client that is connected here.",
        lambda profile: replace(profile, protects_native=False),
        ("INV-NATIVE", "INV-OWNER"),
        Bounds(changes=1, drops=0, swallows=0, strays=1),
    ),
    Mutant(
        "native-connect-onto-synced",
        "A connection whose id is held as a copy makes no native client: it is neither synced nor verified.",
        lambda profile: replace(profile, connection_takes_over=False),
        ("INV-OWNER", "INV-CONV"),
        Bounds(changes=1, drops=0, swallows=0, strays=1),
    ),
    Mutant(
        "revision-beyond-int32",
        "A revision beyond what can be read raises after the content was applied: FAIL, for ever, and it is not taken"
        " over.",
        lambda profile: replace(profile, largest_revision=1),
        ("INV-REV",),
        Bounds(drops=0, swallows=0),
    ),
    Mutant(
        "m-unknown-delete-fails",
        "A DELETE of an unknown client fails, and is retried for ever.",
        lambda profile: replace(profile, unknown_delete_succeeds=False),
        ("INV-GONE",),
        Bounds(changes=0, drops=0, swallows=0),
    ),
)
