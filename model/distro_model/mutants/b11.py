from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

MUTANT = Mutant(
    id="B11",
    sentence="A snapshot is one message: where it is too large no load ever succeeds, and the node never verifies.",
    parameters={"largest_snapshot": 0},
    breaks=("INV-LIVE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
)
