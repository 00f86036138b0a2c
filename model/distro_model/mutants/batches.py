"""Mutants of batches: several instances that one client publishes under one service at once."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

BATCHES = (
    Mutant(
        "B18",
        "A batch registration does not advance the revision, so that verify confirms the batch before.",
        lambda profile: replace(profile, batch_bumps_revision=False),
        ("INV-CONV", "INV-REV", "INV-VERIFY"),
        Bounds(changes=0, drops=0, swallows=1, batches=2),
    ),
    Mutant(
        "B19",
        "A batch over a single instance makes the apply raise, and that is answered with SUCCESS.",
        lambda profile: replace(profile, batch_replaces_single=False, acknowledges_failed_applies=True),
        ("INV-ACK", "INV-CONV"),
        Bounds(changes=1, drops=0, swallows=0, batches=1),
    ),
)
