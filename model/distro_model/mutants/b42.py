from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import sync

MUTANT = Mutant(
    id="B42",
    sentence="A sync whose answer is of an unknown type is neither finished nor retried.",
    rules=(sync.drops_unheard,),
    breaks=("INV-RETRY",),
    bounds=Bounds(changes=1, drops=0, swallows=0, garbles=1),
)
