from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Member
from distro_model.profile import Profile
from distro_model.rules import load
from distro_model.rules.rule import instead_of


@instead_of(load.is_passed_over)
def waits_for_everybody(_member: Member, _: Profile) -> bool:
    """A load waits for members that are DOWN too."""
    return False


MUTANT = Mutant(
    id="m-load-waits-for-down",
    sentence="A load that everybody refused is not complete while a member is DOWN, which may never come back.",
    rules=(waits_for_everybody,),
    breaks=("EVENTUALLY-LOAD",),
    bounds=Bounds(nodes=3, clients=0, changes=0, drops=0, swallows=0, crashes=3, stays_down=1, in_flight=1),
)
