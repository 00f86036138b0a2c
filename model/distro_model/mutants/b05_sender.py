from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import torn

MUTANT = Mutant(
    id="B05-sender",
    sentence="The sender reads the content first and then the revision, while its client goes on changing.",
    rules=(torn.on_task_due,),
    breaks=("INV-REV", "INV-VERIFY", "INV-CONV"),
    bounds=Bounds(torn=1, drops=0),
)
