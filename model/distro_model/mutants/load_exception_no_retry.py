from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import NOTHING_RAISES, Mutant
from distro_model.rules import load

MUTANT = Mutant(
    id="load-exception-no-retry",
    sentence="A load that an exception has interrupted is never started again.",
    rules=(load.ends_interrupted_load,),
    breaks=("INV-LOAD", "INV-LIVE"),
    bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
    unseen=NOTHING_RAISES,
)
