from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import CLOCK, IN_ONE_INSTANT, Mutant
from distro_model.rules import notify, sync

MUTANT = Mutant(
    id="B08",
    sentence="Each class of local events has its own queue: a client's change may be handled after its disconnection.",
    # `strict` sends the DELETE all the same (B24), and would hide whatever is about the order of a CHANGE and a
    # DELETE.
    rules=(
        notify.queue_of_class,
        sync.skips_gone_client,
    ),
    breaks=("INV-DELETE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=2),
    unseen={CLOCK: IN_ONE_INSTANT},
)
