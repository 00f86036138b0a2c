from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import sync

MUTANT = Mutant(
    id="B37-fall-through",
    sentence="A task for a node that has left the member list ends with success, and is executed all the same.",
    rules=(
        sync.for_everybody,
        sync.reaches_everybody,
    ),
    breaks=("INV-RETRY",),
    bounds=Bounds(changes=1, drops=1, swallows=0, leaves=1),
)
