from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B01",
    sentence="An element of a snapshot overwrites a client that has connected here since the node started.",
    rules=(receive.natives_are_unprotected,),
    breaks=("INV-NATIVE",),
    bounds=Bounds(swallows=0, crashes=1, in_flight=1),
)
