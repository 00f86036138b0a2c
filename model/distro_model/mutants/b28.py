from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant, without_choices
from distro_model.rules import notify, sync

MUTANT = Mutant(
    id="B28",
    sentence="An event that finds its queue full is handled at once, ahead of those that wait.",
    # `strict` sends the DELETE all the same (B24), and would hide whatever is about the order of a CHANGE and a
    # DELETE.
    rules=(
        notify.overtaken,
        sync.skips_gone_client,
    ),
    breaks=("INV-DELETE", "INV-INDEX"),
    bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=1, index=1),
    unseen=without_choices("events are handled at once: no queue is ever full"),
)
