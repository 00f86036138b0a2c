from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import ip_clients

MUTANT = Mutant(
    id="B06",
    sentence="What a beat or its absence changes in an ip:port client leaves its revision as it was.",
    rules=(ip_clients.revision_of_registration,),
    breaks=("INV-CONV", "INV-VERIFY", "INV-REV"),
    bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, lapses=1),
)
