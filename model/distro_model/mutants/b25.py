from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NO_HALVES, Mutant
from distro_model.rules import clients, sync

MUTANT = Mutant(
    id="B25",
    sentence="A request changes and announces the client that it looked up, even if that has left the table since.",
    # `strict` sends the DELETE all the same (B24), and would hide whatever is about the order of a CHANGE and a
    # DELETE.
    rules=(
        clients.looked_before,
        sync.skips_gone_client,
    ),
    breaks=("INV-DELETE", "INV-INDEX"),
    bounds=Bounds(changes=2, drops=0, swallows=0, slow_requests=1, index=1),
    unseen=NO_HALVES,
)
