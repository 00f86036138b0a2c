from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import verify
from distro_model.rules.rule import instead_of
from distro_model.rules.sync import is_reachable


@instead_of(verify.verified_members)
def one_member(node: NodeState, profile: Profile) -> tuple[str, ...]:
    """A verify round goes to the first member that requests are sent to."""
    return tuple(target for target in node.others if is_reachable(node, target, profile))[:1]


MUTANT = Mutant(
    id="m-verify-to-one",
    sentence="Each verify round goes to one member only.",
    rules=(one_member,),
    breaks=("INV-LIVE",),
    bounds=Bounds(nodes=3, changes=1, drops=0, swallows=0, periods=2, lease_periods=1, in_flight=1),
)
