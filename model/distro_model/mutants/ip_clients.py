"""Mutants of `rules/ip_clients.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client, NodeState
from distro_model.profile import Profile
from distro_model.rules import ip_clients, members, notify, sync
from distro_model.rules.rule import instead_of


@instead_of(ip_clients.counts_as_beat)
def never_counts_as_beat(_node: NodeState, _held: Client, _source: str, _: Profile) -> bool:
    """An accepted verify renews the lease and does not count as a beat."""
    return False


MUTANTS = (
    Mutant(
        "B06",
        rules=(ip_clients.revision_of_registration,),
        breaks=("INV-CONV", "INV-VERIFY", "INV-REV"),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, lapses=1),
    ),
    Mutant(
        "B22",
        rules=(
            ip_clients.changed_and_announced_late,
            ip_clients.held_as_a_copy,
            notify.announces_what_it_owns,
            members.not_handed_over,
            sync.sent_by_a_former_owner,
        ),
        breaks=("INV-CLIENTACK",),
        bounds=Bounds(clients=0, ip_clients=1, changes=2, drops=0, swallows=0, flips=1, in_flight=1),
    ),
    Mutant(
        "B30",
        rules=(ip_clients.creates_twice,),
        breaks=("INV-DEAD",),
        bounds=Bounds(nodes=1, clients=0, ip_clients=1, drops=0, swallows=0, lapses=2, races=1),
    ),
    Mutant(
        "D7",
        rules=(ip_clients.only_v1_is_passed_on, ip_clients.changed_and_announced_late),
        breaks=("INV-CONV", "INV-CLIENTACK"),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, in_flight=1, v2_requests=1),
    ),
    Mutant(
        "m-ipport-verify-no-beat-renew",
        "An accepted verify of an ip:port client does not count as a beat.",
        rules=(never_counts_as_beat,),
        breaks=("INV-LIVE",),
        bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, periods=3),
    ),
)
