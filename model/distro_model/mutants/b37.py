from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import sync

MUTANT = Mutant(
    id="B37",
    sentence="A node is taken for a member when its address is a part of a member's.",
    rules=(sync.has_part_of_member,),
    breaks=("INV-RETRY",),
    bounds=Bounds(nodes=3, changes=1, drops=0, swallows=0, leaves=1, in_flight=1),
)
