from __future__ import annotations

from distro_model.mutants.mutant import Mutant
from distro_model.rules import verify

MUTANT = Mutant(
    id="B02",
    sentence="Verify tests only that the client exists, not its revision.",
    rules=(verify.existence_is_enough,),
    breaks=("INV-CONV", "INV-VERIFY"),
)
