from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client, NodeState
from distro_model.profile import Profile
from distro_model.rules import ip_clients
from distro_model.rules.rule import instead_of


@instead_of(ip_clients.counts_as_beat)
def never_counts_as_beat(_node: NodeState, _held: Client, _source: str, _: Profile) -> bool:
    """An accepted verify renews the lease and no beat."""
    return False


MUTANT = Mutant(
    id="m-ipport-verify-no-beat-renew",
    sentence="An accepted verify of an ip:port client does not count as a beat.",
    rules=(never_counts_as_beat,),
    breaks=("INV-LIVE",),
    bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, periods=3),
)
