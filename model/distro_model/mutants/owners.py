"""Mutants of `rules/owners.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState
from distro_model.profile import Profile
from distro_model.rules import owners
from distro_model.rules.owners import preference
from distro_model.rules.rule import instead_of


@instead_of(owners.owner_of)
def first_of_all(node: NodeState, client: str, _: Profile) -> str:
    """The place is computed among all members, DOWN or not."""
    return preference(node, client)[0]


MUTANTS = (
    Mutant(
        "B15",
        rules=(owners.owner_among_alive,),
        breaks=("INV-OWNER",),
        bounds=Bounds(nodes=3, clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
    ),
    Mutant(
        "m-owner-includes-down",
        "Members that are DOWN stay in the ring that names the owner.",
        rules=(first_of_all,),
        breaks=("INV-OWNER",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1),
    ),
)
