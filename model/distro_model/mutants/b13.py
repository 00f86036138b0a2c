from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import CLOCK, IN_ONE_INSTANT, Mutant
from distro_model.rules import notify

MUTANT = Mutant(
    id="B13",
    sentence="The index hears of registrations and of removed clients through two queues, in either order.",
    rules=(
        notify.removed_by_one_event,
        notify.handled_removal_from_index_too,
    ),
    breaks=("INV-INDEX",),
    bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    unseen={CLOCK: IN_ONE_INSTANT},
)
