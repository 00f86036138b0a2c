"""Mutants of `rules/notify.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import notify, sync

MUTANTS = (
    Mutant(
        "B08",
        # `strict` sends the DELETE nevertheless (B24), and would hide all effects of the order of a CHANGE and a
        # DELETE.
        rules=(notify.queue_of_class, sync.skips_gone_client),
        breaks=("INV-DELETE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=2),
    ),
    Mutant(
        "B13",
        rules=(notify.removed_by_one_event, notify.handled_removal_from_index_too),
        breaks=("INV-INDEX",),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    ),
    Mutant(
        "B14",
        "The service index is never compared with the table of clients: one lost event leaves it wrong for good.",
        rules=(notify.not_audited,),
        breaks=("INV-INDEX",),
        bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=2, index=1, lost_events=1, in_flight=1),
    ),
    Mutant(
        "B28",
        "An event that finds its queue full is handled at once, ahead of those that wait.",
        # `strict` sends the DELETE nevertheless (B24), and would hide all effects of the order of a CHANGE and a
        # DELETE.
        rules=(notify.overtaken, sync.skips_gone_client),
        breaks=("INV-DELETE", "INV-INDEX"),
        bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=1, index=1),
    ),
    Mutant(
        "B44",
        rules=(notify.registered_after_push,),
        breaks=("INV-INDEX",),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, event_queue=2, index=1),
    ),
)
