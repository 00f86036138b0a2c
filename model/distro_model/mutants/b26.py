from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B26",
    sentence="A CHANGE that comes after the DELETE of its client brings it back.",
    rules=(receive.is_forgotten_at_once,),
    breaks=("INV-DELETE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, reorders=1),
)
