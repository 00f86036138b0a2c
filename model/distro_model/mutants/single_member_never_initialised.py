from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import load
from distro_model.rules.rule import instead_of


@instead_of(load.waits_for_second)
def waits_alone(node: NodeState, _: Profile) -> bool:
    """A node that knows no other member waits for one."""
    return not node.others


MUTANT = Mutant(
    id="single-member-never-initialised",
    sentence="A node that knows no other member waits for one before it completes its load.",
    rules=(waits_alone,),
    breaks=("INV-LOAD",),
    bounds=Bounds(nodes=1, clients=0, drops=0, swallows=0, crashes=1),
)
