from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import receive

MUTANT = Mutant(
    id="B27",
    sentence="A snapshot that was cut before a DELETE and arrives after it brings the client back.",
    rules=(receive.is_forgotten_at_once,),
    breaks=("INV-DELETE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, late_replies=1),
)
