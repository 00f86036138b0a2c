from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import load, receive

MUTANT = Mutant(
    id="B33",
    sentence="A member that is not loaded itself gives a snapshot, and whoever asked takes it for everything.",
    rules=(
        receive.gives_unloaded,
        load.refusals_fail,
        load.missing_nobody,
    ),
    breaks=("INV-INIT",),
    bounds=Bounds(changes=0, drops=0, swallows=0, crashes=2),
)
