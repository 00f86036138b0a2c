from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NOTHING_RAISES, Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B16",
    sentence="An exception while a sync is handled is answered with SUCCESS.",
    rules=(receive.raised_unseen,),
    breaks=("INV-ACK", "INV-DELETE"),
    bounds=Bounds(changes=1, drops=0, swallows=0, raises=1),
    unseen=NOTHING_RAISES,
)
