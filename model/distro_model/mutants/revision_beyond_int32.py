from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant

MUTANT = Mutant(
    id="revision-beyond-int32",
    sentence="A revision beyond what can be read raises after the content was applied: FAIL, for ever, and"
    " it is not taken over.",
    parameters={"largest_revision": 1},
    breaks=("INV-REV",),
    bounds=Bounds(drops=0, swallows=0),
)
