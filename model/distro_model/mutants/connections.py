"""Mutants of the connection layer: who is still there, and how a node finds out."""

from __future__ import annotations

from dataclasses import replace

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

CONNECTIONS = (
    Mutant(
        "B03",
        "No connection is ever asked for a sign of life: a client that fell silent stays for good.",
        lambda profile: replace(profile, detects_silent_connections=False),
        ("INV-SILENT",),
        Bounds(changes=1, drops=0, swallows=0, silences=1),
    ),
    Mutant(
        "B39",
        "A sign of life is counted before it is recorded, and the check goes on in between.",
        lambda profile: replace(profile, records_answer_before_counting=False),
        ("INV-LIVE",),
        Bounds(clients=2, nodes=1, changes=1, drops=0, swallows=0, idle_spells=2),
    ),
)
