from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import members

MUTANT = Mutant(
    id="B36",
    sentence="A node that is new in the member list is UP, whether or not anybody listens there.",
    rules=(members.listed_up,),
    breaks=("INV-OWNER",),
    bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1, leaves=1, joins=1),
)
