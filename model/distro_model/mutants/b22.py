from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import ip_clients, members, notify

MUTANT = Mutant(
    id="B22",
    sentence="A change is announced by who is the owner when its event is handled, and nothing compares age.",
    rules=(
        ip_clients.changed_and_announced_late,
        notify.announces_what_it_owns,
        members.tells_nobody,
    ),
    breaks=("INV-CLIENTACK",),
    bounds=Bounds(clients=0, ip_clients=1, changes=2, drops=0, swallows=0, flips=1, in_flight=1),
)
