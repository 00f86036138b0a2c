from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.messages import Change
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client
from distro_model.profile import Profile
from distro_model.rules import receive
from distro_model.rules.rule import instead_of


@instead_of(receive.fresh_copy)
def native_copy(copy: Change, at_ms: int, _: Profile) -> Client:
    """What a peer's CHANGE creates believes that it is an original."""
    return Client(copy.client, True, copy.revision, copy.content, at_ms)


MUTANT = Mutant(
    id="B07",
    sentence="A synced copy is created as native: it is sent on, verified, and never expires.",
    rules=(native_copy,),
    breaks=("INV-OWNER",),
    bounds=Bounds(changes=1, drops=0, swallows=0),
)
