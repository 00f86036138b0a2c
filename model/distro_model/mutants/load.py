"""Mutants of the first load: asking for a snapshot, giving one, taking it over."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

LOAD = (
    Mutant(
        "B01",
        "An element of a snapshot overwrites a client that has connected here since the node started.",
        lambda profile: replace(profile, protects_native=False),
        ("INV-NATIVE",),
        Bounds(swallows=0, crashes=1, in_flight=1),
    ),
    Mutant(
        "B11",
        "A snapshot is one message: where it is too large no load ever succeeds, and the node never verifies.",
        lambda profile: replace(profile, largest_snapshot=0),
        ("INV-LIVE",),
        Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
    ),
    Mutant(
        "B27",
        "A snapshot that was cut before a DELETE and arrives after it brings the client back.",
        lambda profile: replace(profile, tombstones=False),
        ("INV-DELETE",),
        Bounds(changes=1, drops=0, swallows=0, crashes=1, late_replies=1),
    ),
    Mutant(
        "B32",
        "The first load always fails: no peer is known yet.",
        lambda profile: replace(profile, first_load_asks=False),
        ("INV-LOAD",),
        Bounds(changes=0, drops=0, swallows=0, crashes=1),
    ),
    Mutant(
        "B33",
        "A member that is not loaded itself gives a snapshot, and whoever asked takes it for everything.",
        lambda profile: replace(profile, refuses_before_load=False),
        ("INV-INIT",),
        Bounds(changes=0, drops=0, swallows=0, crashes=2),
    ),
    Mutant(
        "m-load-waits-for-down",
        "A load that everybody refused is not complete while a member is DOWN, which may never come back.",
        lambda profile: replace(profile, load_passes_over_down=False),
        ("EVENTUALLY-LOAD",),
        Bounds(nodes=3, clients=0, changes=0, drops=0, swallows=0, crashes=3, stays_down=1, in_flight=1),
    ),
    Mutant(
        "load-exception-no-retry",
        "A load that an exception has interrupted is never started again.",
        lambda profile: replace(profile, interrupted_load_retried=False),
        ("INV-LOAD", "INV-LIVE"),
        Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
    ),
)
