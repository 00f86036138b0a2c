from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B19",
    sentence="A batch over a single instance makes the apply raise, and that is answered with SUCCESS.",
    rules=(
        receive.no_batch_over_single,
        receive.raised_unseen,
    ),
    breaks=("INV-ACK", "INV-CONV"),
    bounds=Bounds(changes=1, drops=0, swallows=0, batches=1),
)
