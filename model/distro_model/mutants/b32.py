from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import load

MUTANT = Mutant(
    id="B32",
    sentence="The first load always fails: no peer is known yet.",
    rules=(load.knows_no_peer_at_first,),
    breaks=("INV-LOAD",),
    bounds=Bounds(changes=0, drops=0, swallows=0, crashes=1),
)
