from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_HALVES, Mutant
from distro_model.rules import clients

MUTANT = Mutant(
    id="B40",
    sentence="A transport that ends between the check and the insertion of its connection leaves a client for ever.",
    rules=(clients.transport_was_open,),
    breaks=("INV-OWNER", "INV-DELETE"),
    bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    unseen=NO_HALVES,
)
