from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_HALVES, Mutant
from distro_model.rules import clients

MUTANT = Mutant(
    id="B12",
    sentence="A request for a client that the node does not know is answered with SUCCESS.",
    rules=(clients.success_to_unknown,),
    breaks=("INV-CLIENTACK",),
    bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    unseen=NO_HALVES,
)
