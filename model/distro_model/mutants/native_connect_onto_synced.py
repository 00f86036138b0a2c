from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_STRAYS, Mutant
from distro_model.rules import clients

MUTANT = Mutant(
    id="native-connect-onto-synced",
    sentence="A connection whose id is held as a copy makes no native client: it is neither synced nor verified.",
    rules=(clients.leaves_copy,),
    breaks=("INV-OWNER", "INV-CONV"),
    bounds=Bounds(changes=1, drops=0, swallows=0, strays=1),
    unseen=NO_STRAYS,
)
