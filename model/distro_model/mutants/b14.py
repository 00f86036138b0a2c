from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant, without_choices
from distro_model.rules import notify

MUTANT = Mutant(
    id="B14",
    sentence="Nothing ever compares the service index with the table of clients: one lost event leaves it"
    " wrong for good.",
    rules=(notify.not_audited,),
    breaks=("INV-INDEX",),
    bounds=Bounds(changes=1, drops=0, swallows=0, event_queue=2, index=1, lost_events=1, in_flight=1),
    unseen=without_choices("no action loses an event of a node"),
)
