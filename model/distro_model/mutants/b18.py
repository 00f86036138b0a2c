from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import clients

MUTANT = Mutant(
    id="B18",
    sentence="A batch registration does not advance the revision, so that verify confirms the batch before.",
    rules=(clients.revision_forgotten,),
    breaks=("INV-CONV", "INV-REV", "INV-VERIFY"),
    bounds=Bounds(changes=0, drops=0, swallows=1, batches=2),
)
