from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

MUTANT = Mutant(
    id="B35",
    sentence="What a node sends counts as a sign of life of its target: a connection that broke silently is"
    " never replaced.",
    parameters={"sending_counts_as_activity": True},
    breaks=("INV-LIVE", "INV-RECONNECT"),
    bounds=Bounds(changes=0, drops=0, swallows=0, half_open=1, periods=6),
)
