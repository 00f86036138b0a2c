"""Mutants of anti-entropy: what is verified, when, and what a failure leads to."""

from __future__ import annotations

from dataclasses import replace

from distro_model.mutants.mutant import Mutant

VERIFY = (
    Mutant(
        "B02",
        "Verify tests only that the client exists, not its revision.",
        lambda profile: replace(profile, verify_tests_revision=False),
        ("INV-CONV", "INV-VERIFY"),
    ),
)
