from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_HALVES, Mutant
from distro_model.rules import ip_clients

MUTANT = Mutant(
    id="B30",
    sentence="Two first requests create a client twice; the beat check watches the one that is lost.",
    rules=(ip_clients.creates_twice,),
    breaks=("INV-DEAD",),
    bounds=Bounds(nodes=1, clients=0, ip_clients=1, drops=0, swallows=0, lapses=2, races=1),
    unseen=NO_HALVES,
)
