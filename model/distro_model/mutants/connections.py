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
    Mutant(
        "B35",
        "What a node sends counts as a sign of life of its target: a connection that broke silently is never replaced.",
        lambda profile: replace(profile, sending_counts_as_activity=True),
        ("INV-LIVE", "INV-RECONNECT"),
        Bounds(changes=0, drops=0, swallows=0, half_open=1, periods=6),
    ),
    Mutant(
        "B43",
        "When a publisher goes, what an operator set of its address is marked as gone, whoever else publishes it.",
        lambda profile: replace(profile, keeps_metadata_of_published=False),
        ("INV-METADATA",),
        Bounds(nodes=1, clients=2, changes=1, drops=0, swallows=0, operator_changes=1, silences=1),
    ),
)
