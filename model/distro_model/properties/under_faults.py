"""The faults after which each property is still judged: a property that a fault disables holds vacuously.

A cell is judged when a rule that breaks the property is found to break it *after* the fault: in a state, or by a
transition, of which the fault is a part of the past (for `stays_down`: in which the node is still down). A cell that is
not judged has its reason in `NOT_JUDGED`. The rules and the search are in model/tests/test_under_faults.py, which fails
for a cell of which the table differs from the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Fault:
    """`bounds`: the minimum that allows the fault, in addition to the bounds that a mutant needs."""

    name: str
    sentence: str
    bounds: Mapping[str, int]
    is_standing: bool = False
    """The condition is that a node is down, and not that the budget of this name was spent."""


def _between_nodes(name: str, sentence: str, **more: int) -> Fault:
    return Fault(name, sentence, {"nodes": 2, name: 1, **more})


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        each.name: each
        for each in (
            _between_nodes("crashes", "a node has crashed"),
            Fault(
                "stays_down",
                "one of three nodes is down",
                {"nodes": 3, "crashes": 1, "stays_down": 1},
                is_standing=True,
            ),
            _between_nodes("drops", "a request was lost"),
            _between_nodes("lost_replies", "a reply was lost"),
            _between_nodes("swallows", "a request was acknowledged and not delivered"),
            _between_nodes("late_replies", "a reply was late"),
            _between_nodes("reorders", "a request overtook another", in_flight=2),
            _between_nodes("delays", "a request arrived after its sender had given it up", in_flight=2),
            _between_nodes("garbles", "an answer was of an unknown type"),
            _between_nodes("raises", "an exception left a handler"),
            _between_nodes("half_open", "a connection between nodes broke silently"),
            _between_nodes("flips", "a running node was believed DOWN"),
            Fault("leaves", "one of three nodes left the list of another", {"nodes": 3, "leaves": 1}),
            Fault("joins", "a node left the list of another and came back", {"nodes": 2, "leaves": 1, "joins": 1}),
            Fault(
                "id_collisions",
                "two clients of different nodes had the same id",
                {"nodes": 2, "id_collisions": 1, "clients": 1},
            ),
            Fault("pauses", "a node slept for longer than a lease", {"periods": 2, "lease_periods": 1, "pauses": 1}),
            Fault("lost_events", "a local event was lost", {"event_queue": 1, "index": 1, "lost_events": 1}),
            Fault("silences", "a client fell silent", {"silences": 1, "clients": 1}),
            Fault("lapses", "the beats of an ip:port client stayed out", {"lapses": 1, "ip_clients": 1, "changes": 1}),
        )
    }
)


NOT_JUDGED: Mapping[tuple[str, str], str] = MappingProxyType(
    dict.fromkeys(
        (("INV-METADATA", "crashes"), ("INV-METADATA", "stays_down")),
        "What an operator sets is replicated by Raft, which the model does not have, so no node crashes there",
    )
)
"""(property, fault): the reason why it is not judged."""
