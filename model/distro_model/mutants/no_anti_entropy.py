from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import verify
from distro_model.rules.rule import instead_of


@instead_of(verify.verified_members)
def nobody(_node: NodeState, _: Profile) -> tuple[str, ...]:
    """A verify round goes to nobody."""
    return ()


MUTANT = Mutant(
    id="no-anti-entropy",
    sentence="There is no verify: what a sync has lost is never repaired.",
    rules=(nobody,),
    breaks=("INV-CONV",),
    bounds=Bounds(changes=1, drops=0),
)
