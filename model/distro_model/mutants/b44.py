from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import CLOCK, IN_ONE_INSTANT, Mutant
from distro_model.rules import notify

MUTANT = Mutant(
    id="B44",
    sentence="A push is published before the index has the entry that caused it.",
    rules=(notify.registered_after_push,),
    breaks=("INV-INDEX",),
    bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    unseen={CLOCK: IN_ONE_INSTANT},
)
