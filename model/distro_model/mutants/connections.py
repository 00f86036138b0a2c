"""Mutants of `rules/connections.py`."""

from __future__ import annotations

from distro_model.bounded.bounds import Bounds
from distro_model.events import ConnectionCheckDue
from distro_model.mutants.mutant import Mutant
from distro_model.node import NodeState, Step
from distro_model.profile import Profile
from distro_model.rules import connections
from distro_model.rules.rule import RULES, instead_of


@instead_of(connections.on_connection_check_due)
def asks_one_alone(node: NodeState, event: ConnectionCheckDue, profile: Profile) -> Step:
    """A check that finds several idle connections probes none of them."""
    asked: Step = RULES["check-connections"].own(node, event, profile)
    return Step(node) if len(event.idle) > 1 else asked


MUTANTS = (
    Mutant(
        "B03",
        rules=(connections.checks_no_connection,),
        breaks=("INV-SILENT",),
        bounds=Bounds(changes=1, drops=0, swallows=0, silences=1),
    ),
    Mutant(
        "B35",
        parameters={"sending_counts_as_activity": True},
        breaks=("INV-LIVE", "INV-RECONNECT"),
        bounds=Bounds(changes=0, drops=0, swallows=0, half_open=1, periods=6),
    ),
    Mutant(
        "B39",
        rules=(connections.counts_first,),
        breaks=("INV-LIVE",),
        bounds=Bounds(clients=2, nodes=1, changes=1, drops=0, swallows=0, idle_spells=2),
    ),
    Mutant(
        "m-check-asks-one",
        "A check that finds several idle connections probes none: two clients that fall silent at one node stay.",
        rules=(asks_one_alone,),
        breaks=("EVENTUALLY-SILENT",),
        bounds=Bounds(nodes=1, clients=2, changes=0, drops=0, swallows=0, silences=2),
    ),
)
