from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import sync

MUTANT = Mutant(
    id="B24",
    sentence="The retry of a failed CHANGE replaces a queued DELETE, and finding no client to send ends silently.",
    # Either of the two repairs alone is enough for `strict`.
    rules=(
        sync.replaces_anything,
        sync.skips_gone_client,
    ),
    breaks=("INV-DELETE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, lost_replies=1),
)
