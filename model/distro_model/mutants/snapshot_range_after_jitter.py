from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client, NodeState
from distro_model.profile import Profile
from distro_model.rules import load, receive
from distro_model.rules.owners import is_responsible
from distro_model.rules.rule import instead_of
from distro_model.rules.sync import is_reachable


@instead_of(receive.given_clients)
def own_range(node: NodeState, profile: Profile) -> tuple[Client, ...]:
    """A snapshot has what its giver owns by now."""
    return tuple(client for client in node.clients if is_responsible(node, client, profile))


@instead_of(load.asked_further)
def everybody_else(node: NodeState, later: tuple[str, ...], profile: Profile) -> tuple[str, ...]:
    """Each member is asked for what it owns, one after the other."""
    return tuple(peer for peer in later if is_reachable(node, peer, profile))


MUTANT = Mutant(
    id="snapshot-range-after-jitter",
    sentence="A load asks each member for what that one owns by now; what nobody owns that is asked is missing.",
    rules=(
        own_range,
        everybody_else,
    ),
    breaks=("INV-CONV",),
    bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, crashes=1),
)
