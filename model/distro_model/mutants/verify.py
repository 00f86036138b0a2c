"""Mutants of anti-entropy and leases: what is verified, when, what a failure leads to, and how long a copy lives."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

VERIFY = (
    Mutant(
        "B02",
        "Verify tests only that the client exists, not its revision.",
        lambda profile: replace(profile, verify_tests_revision=False),
        ("INV-CONV", "INV-VERIFY"),
    ),
    Mutant(
        "B17",
        "Only a verify renews a lease: the copy of a client that changes before each one expires.",
        lambda profile: replace(profile, sync_renews_lease=False),
        ("INV-LIVE",),
        Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "B23",
        "A node that was suspended for longer than a lease ends all copies before their owners are heard again.",
        lambda profile: replace(profile, grace_after_pause=False),
        ("INV-LIVE",),
        Bounds(changes=1, drops=0, swallows=0, periods=2, lease_periods=1, pauses=1),
    ),
    Mutant(
        "B31",
        "The lease is 30 s: a short outage removes the copies of clients that are connected.",
        lambda profile: replace(profile, lease_ms=30_000),
        ("INV-LIVE",),
        Bounds(changes=1, swallows=0, periods=3, lease_periods=2),
    ),
    Mutant(
        "no-anti-entropy",
        "There is no verify: what a sync has lost is never repaired.",
        lambda profile: replace(profile, verifies=False),
        ("INV-CONV",),
        Bounds(changes=1, drops=0),
    ),
    Mutant(
        "revision-zero-wildcard",
        "A verify of revision 0 succeeds against any copy.",
        lambda profile: replace(profile, revision_zero_passes=True),
        ("INV-VERIFY", "INV-CONV"),
        Bounds(changes=0, drops=0, swallows=0, strays=1),
    ),
    Mutant(
        "m-verify-to-one",
        "Each verify round goes to one member only.",
        lambda profile: replace(profile, verifies_everybody=False),
        ("INV-LIVE",),
        Bounds(nodes=3, changes=0, drops=0, swallows=0, periods=3, lease_periods=1),
    ),
    Mutant(
        "m-cleaner-drops-native",
        "The lease check removes native clients too.",
        lambda profile: replace(profile, natives_expire=True),
        ("INV-LIVE", "INV-OWNER"),
        Bounds(changes=0, drops=0, swallows=0, periods=2, lease_periods=1),
    ),
    Mutant(
        "m-query-creates",
        "A VERIFY of an unknown client creates it, with nothing.",
        lambda profile: replace(profile, verify_creates=True),
        ("INV-DELETE",),
        Bounds(changes=0, drops=0, swallows=0, delays=1),
    ),
)
