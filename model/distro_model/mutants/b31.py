from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

MUTANT = Mutant(
    id="B31",
    sentence="The lease is 30 s: a short outage removes the copies of clients that are connected.",
    parameters={"lease_ms": 30000},
    breaks=("INV-LIVE",),
    bounds=Bounds(changes=1, swallows=0, periods=3, lease_periods=2),
)
