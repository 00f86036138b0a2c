"""Mutants of `rules/load.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Member, NodeState
from distro_model.profile import Profile
from distro_model.rules import load, receive
from distro_model.rules.rule import instead_of


@instead_of(load.is_passed_over)
def waits_for_all(_member: Member, _: Profile) -> bool:
    """A load waits for members that are DOWN too."""
    return False


@instead_of(load.waits_for_second)
def waits_alone(node: NodeState, _: Profile) -> bool:
    """A node that knows no other member waits for one."""
    return not node.others


@instead_of(receive.snapshot_fits)
def only_nothing_fits(clients: int, _: Profile) -> bool:
    """A snapshot is one message, and one client is too large for it (B11)."""
    return not clients


MUTANTS = (
    Mutant(
        "B11",
        rules=(only_nothing_fits,),
        breaks=("INV-LIVE",),
        bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
    ),
    Mutant(
        "B32",
        rules=(load.knows_no_peer_at_first,),
        breaks=("INV-LOAD",),
        bounds=Bounds(changes=0, drops=0, swallows=0, crashes=1),
    ),
    Mutant(
        "load-exception-no-retry",
        "A load that an exception has interrupted is never started again.",
        rules=(load.ends_interrupted_load,),
        breaks=("INV-LOAD", "INV-LIVE"),
        bounds=Bounds(changes=1, drops=0, swallows=0, crashes=1, raises=1, periods=2, lease_periods=1, in_flight=1),
    ),
    Mutant(
        "m-load-waits-for-down",
        "A load that all members refused is not complete while a member is DOWN, which may never come back.",
        rules=(waits_for_all,),
        breaks=("EVENTUALLY-LOAD",),
        bounds=Bounds(nodes=3, clients=0, changes=0, drops=0, swallows=0, crashes=3, stays_down=1, in_flight=1),
    ),
    Mutant(
        "single-member-never-initialised",
        "A node that knows no other member waits for one before it completes its load.",
        rules=(waits_alone,),
        breaks=("INV-LOAD",),
        bounds=Bounds(nodes=1, clients=0, drops=0, swallows=0, crashes=1),
    ),
)
