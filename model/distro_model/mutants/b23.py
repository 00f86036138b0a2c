from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import verify

MUTANT = Mutant(
    id="B23",
    sentence="A node that was suspended for longer than a lease ends all copies before their owners are heard again.",
    rules=(verify.checks_always,),
    breaks=("INV-LIVE",),
    bounds=Bounds(changes=1, drops=0, swallows=0, periods=2, lease_periods=1, pauses=1),
)
