from __future__ import annotations

from collections.abc import Sequence

from distro_model.bounded.bounds import Bounds
from distro_model.events import Send
from distro_model.messages import OwnedList
from distro_model.mutants.mutant import Mutant
from distro_model.node import Client
from distro_model.profile import Profile
from distro_model.rules import verify
from distro_model.rules.owners import is_ip_client
from distro_model.rules.rule import instead_of


@instead_of(verify.lists_sent)
def one_list_each(owned: Sequence[Client], targets: Sequence[str], _: Profile) -> tuple[Send, ...]:
    """Each member is sent the list of all ip:port clients that this node owns."""
    names = tuple(client.name for client in owned if is_ip_client(client.name))
    return tuple(Send(target, OwnedList(names)) for target in targets)


MUTANT = Mutant(
    id="v1-checksum-dual-owner-delete",
    sentence="A verify lists what its sender owns; what the receiver attributes to the sender and is not"
    " listed is deleted.",
    rules=(one_list_each,),
    breaks=("INV-LIVE",),
    bounds=Bounds(clients=0, ip_clients=1, changes=1, drops=0, swallows=0, flips=1, in_flight=1),
)
