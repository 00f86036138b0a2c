"""Mutants of `rules/clients.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import clients, sync

MUTANTS = (
    Mutant(
        "B12",
        rules=(clients.success_to_unknown,),
        breaks=("INV-CLIENTACK",),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "B18",
        rules=(clients.revision_forgotten,),
        breaks=("INV-CONV", "INV-REV", "INV-VERIFY"),
        bounds=Bounds(changes=0, drops=0, swallows=1, batches=2),
    ),
    Mutant(
        "B25",
        # `strict` sends the DELETE nevertheless (B24), and would hide all effects of the order of a CHANGE and a
        # DELETE.
        rules=(clients.looked_before, sync.skips_gone_client),
        breaks=("INV-DELETE", "INV-INDEX"),
        bounds=Bounds(changes=2, drops=0, swallows=0, slow_requests=1, index=1),
    ),
    Mutant(
        "B40",
        rules=(clients.transport_was_open,),
        breaks=("INV-OWNER", "INV-DELETE"),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "native-connect-onto-synced",
        rules=(clients.leaves_copy, clients.copy_may_ask),
        breaks=("INV-OWNER", "INV-CONV"),
        bounds=Bounds(changes=1, drops=0, swallows=0, id_collisions=1),
    ),
)
