"""Mutants of `rules/clients.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.mutants.mutant import Mutant
from distro_model.rules import clients, sync

MUTANTS = (
    Mutant(
        "B12",
        "A request for a client that the node does not know is answered with SUCCESS.",
        rules=(clients.success_to_unknown,),
        breaks=("INV-CLIENTACK",),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "B18",
        "A batch registration does not advance the revision, so that verify confirms the batch before.",
        rules=(clients.revision_forgotten,),
        breaks=("INV-CONV", "INV-REV", "INV-VERIFY"),
        bounds=Bounds(changes=0, drops=0, swallows=1, batches=2),
    ),
    Mutant(
        "B25",
        "A request changes and announces the client that it looked up, even if that has left the table since.",
        # `strict` sends the DELETE nevertheless (B24), and would hide all effects of the order of a CHANGE and a
        # DELETE.
        rules=(clients.looked_before, sync.skips_gone_client),
        breaks=("INV-DELETE", "INV-INDEX"),
        bounds=Bounds(changes=2, drops=0, swallows=0, slow_requests=1, index=1),
    ),
    Mutant(
        "B40",
        "A transport that ends between the check and the insertion of its connection leaves a client for ever.",
        rules=(clients.transport_was_open,),
        breaks=("INV-OWNER", "INV-DELETE"),
        bounds=Bounds(nodes=1, changes=1, drops=0, swallows=0, slow_setups=1),
    ),
    Mutant(
        "native-connect-onto-synced",
        "A connection whose id is held as a copy makes no native client: it is neither synced nor verified.",
        rules=(clients.leaves_copy, clients.copy_may_ask),
        breaks=("INV-OWNER", "INV-CONV"),
        bounds=Bounds(changes=1, drops=0, swallows=0, strays=1),
    ),
)
