from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import owners

MUTANT = Mutant(
    id="B15",
    sentence="The owner is computed from the members that are not DOWN; with different views it may be nobody.",
    rules=(owners.owner_among_alive,),
    breaks=("INV-OWNER",),
    bounds=Bounds(nodes=3, clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
)
