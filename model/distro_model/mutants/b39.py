from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant, without_choices
from distro_model.rules import connections

MUTANT = Mutant(
    id="B39",
    sentence="A sign of life is counted before it is recorded, and the check goes on in between.",
    rules=(connections.counts_first,),
    breaks=("INV-LIVE",),
    bounds=Bounds(clients=2, nodes=1, changes=1, drops=0, swallows=0, idle_spells=2),
    unseen=without_choices("a living client speaks often enough that nobody asks it for a sign of life"),
)
