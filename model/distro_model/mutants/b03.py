from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import connections

MUTANT = Mutant(
    id="B03",
    sentence="No connection is ever asked for a sign of life: a client that fell silent stays for good.",
    rules=(connections.checks_no_connection,),
    breaks=("INV-SILENT",),
    bounds=Bounds(changes=1, drops=0, swallows=0, silences=1),
)
