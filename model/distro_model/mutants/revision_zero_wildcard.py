from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_STRAYS, Mutant
from distro_model.rules import verify

MUTANT = Mutant(
    id="revision-zero-wildcard",
    sentence="A verify of revision 0 succeeds against any copy.",
    rules=(verify.zero_always_matches,),
    breaks=("INV-VERIFY", "INV-CONV"),
    bounds=Bounds(changes=0, drops=0, swallows=0, strays=1),
    unseen=NO_STRAYS,
)
