"""Mutants of `rules/metadata.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import metadata

MUTANTS = (
    Mutant(
        "B43",
        "When a publisher goes, the metadata of its address is marked as gone, even if another client publishes it.",
        rules=(metadata.is_always_marked,),
        breaks=("INV-METADATA",),
        bounds=Bounds(nodes=1, clients=2, changes=1, drops=0, swallows=0, operator_changes=1, silences=1),
    ),
)
