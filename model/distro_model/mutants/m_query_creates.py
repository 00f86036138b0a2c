from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.messages import Change, Verify
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import verify
from distro_model.rules.receive import fresh_copy
from distro_model.rules.rule import instead_of


@instead_of(verify.of_unknown)
def created_empty(node: NodeState, request: Verify, at_ms: int, profile: Profile) -> NodeState:
    """A VERIFY of an unknown client creates it, with nothing."""
    return node.with_client(fresh_copy(Change(request.client, 0, ()), at_ms, profile))


MUTANT = Mutant(
    id="m-query-creates",
    sentence="A VERIFY of an unknown client creates it, with nothing.",
    rules=(created_empty,),
    breaks=("INV-DELETE",),
    bounds=Bounds(changes=0, drops=0, swallows=0, delays=1),
)
