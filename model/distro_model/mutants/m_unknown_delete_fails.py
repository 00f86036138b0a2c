from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import receive
from distro_model.rules.rule import instead_of


@instead_of(receive.is_deletable)
def is_known(node: NodeState, client: str, _: Profile) -> bool:
    """Only what is known can be deleted."""
    return node.client(client) is not None


MUTANT = Mutant(
    id="m-unknown-delete-fails",
    sentence="A DELETE of an unknown client fails, and is retried for ever.",
    rules=(is_known,),
    breaks=("INV-GONE",),
    bounds=Bounds(changes=0, drops=0, swallows=0),
)
