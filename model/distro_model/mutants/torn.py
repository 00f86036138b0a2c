"""Mutants of `rules/torn.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import torn

MUTANTS = (
    Mutant(
        "B05",
        rules=(torn.on_change,),
        breaks=("INV-REV", "INV-VERIFY", "INV-CONV"),
        bounds=Bounds(torn=1, services=2, drops=0, swallows=0),
    ),
    Mutant(
        "B05-sender",
        "The sender reads the content first and then the revision, while its client goes on changing.",
        rules=(torn.on_task_due,),
        breaks=("INV-REV", "INV-VERIFY", "INV-CONV"),
        bounds=Bounds(torn=1, drops=0),
    ),
)
