from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B41",
    sentence="Any peer can overwrite or delete a client that is connected here.",
    rules=(receive.natives_are_unprotected,),
    breaks=("INV-NATIVE", "INV-OWNER"),
    bounds=Bounds(changes=1, drops=0, swallows=0, strays=1),
)
