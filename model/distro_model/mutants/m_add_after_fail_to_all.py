from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import verify
from distro_model.rules.rule import instead_of


@instead_of(verify.repaired_members)
def everybody(node: NodeState, _failed: str, _: Profile) -> tuple[str, ...]:
    """A failed verify brings a full sync to every member."""
    return node.others


MUTANT = Mutant(
    id="m-add-after-fail-to-all",
    sentence="A failed verify brings a full sync to every member, not only to the one that failed it.",
    rules=(everybody,),
    breaks=("INV-AIM",),
    bounds=Bounds(nodes=3, changes=0, drops=0, swallows=0),
)
