from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B17",
    sentence="Only a verify renews a lease: the copy of a client that changes before each one expires.",
    rules=(receive.keeps_lease,),
    breaks=("INV-LIVE",),
    bounds=Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
)
