"""Mutants of `rules/members.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Member, MemberState, NodeState
from distro_model.profile import Profile
from distro_model.rules import members
from distro_model.rules.rule import instead_of


@instead_of(members.listed)
def all_up(node: NodeState, name: str, profile: Profile) -> Member:
    """Reading the member list makes every member UP that was in it before."""
    down = Member(name, MemberState.DOWN, profile.failures_until_down + 1)
    return Member(name) if name in node.others else down


MUTANTS = (
    Mutant(
        "B36",
        "A node that is new in the member list is UP, whether or not a node listens there.",
        rules=(members.listed_up,),
        breaks=("INV-OWNER",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1, leaves=1, joins=1),
    ),
    Mutant(
        "B36-refresh",
        "Reading the member list makes every member UP again.",
        rules=(all_up,),
        breaks=("INV-OWNER",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1, refreshes=1),
    ),
)
