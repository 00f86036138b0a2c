from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B10",
    sentence="A copy keeps the revision with which it was created: every later verify fails, and the copy expires.",
    # `strict` has a second line of defence (a sync renews the lease, B17) that keeps the copy alive.
    rules=(
        receive.revision_of_batches_only,
        receive.keeps_lease,
    ),
    breaks=("INV-REV", "INV-LIVE"),
    bounds=Bounds(drops=0, swallows=0, periods=2, lease_periods=1),
)
