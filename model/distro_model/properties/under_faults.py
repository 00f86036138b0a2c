"""The faults after which each property is still judged: a property that a fault disables holds vacuously.

A cell is judged when a rule that breaks the property is found to break it *after* the fault: in a state, or by a
transition, of which the fault is a part of the past (for `stays_down`: in which the node is still down). A cell that is
not judged has its reason in `NOT_JUDGED`. model/tests/test_under_faults.py has the rules, and fails for a cell of which
the table differs from the search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.layout import BUDGET, node_column
from distro_model.cluster.budget import Budget
from distro_model.search.system import NO_GUARD, Alternative, Chain, Lookup, System, Value, findings_in

Function = Callable[..., Sequence[Alternative]]


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
            Fault("strays", "a request named a client of another node", {"nodes": 2, "strays": 1, "clients": 1}),
            Fault("pauses", "a node slept for longer than a lease", {"periods": 2, "lease_periods": 1, "pauses": 1}),
            Fault("lost_events", "a local event was lost", {"event_queue": 1, "index": 1, "lost_events": 1}),
            Fault("silences", "a client fell silent", {"silences": 1, "clients": 1}),
            Fault("lapses", "the beats of an ip:port client stayed out", {"lapses": 1, "ip_clients": 1, "changes": 1}),
        )
    }
)


NOT_JUDGED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "INV-METADATA": {
            "What an operator sets is replicated by Raft, which the model does not have, so no node crashes there": (
                "crashes stays_down"
            )
        },
    }
)
"""Property -> the reason why it is not judged -> the faults."""


def reason_of(property_id: str, fault: str) -> str | None:
    """Why the property is not judged after the fault; None where it is."""
    reasons = NOT_JUDGED.get(property_id, {})
    return next((why for why, faults in reasons.items() if fault in faults.split()), None)


def is_judged(property_id: str, fault: str) -> bool:
    return reason_of(property_id, fault) is None


def bounds_after(own: Bounds, fault: Fault) -> Bounds:
    """The bounds of a mutant in which the fault happens too. Raises ValueError where they contradict each other."""
    both = {each.name: getattr(own, each.name) for each in fields(own)}
    more = {name: max(least, both[name]) for name, least in fault.bounds.items()}
    if fault.is_standing:
        more["crashes"] = both["crashes"] + 1
    both |= more
    clients = -(-both["clients"] // both["nodes"]) + both["ip_clients"]
    return Bounds(**{**both, "in_flight": max(both["in_flight"], clients)})


def after(system: System, property_id: str, fault: Fault) -> System:
    """The system in which every finding is a violation of the property after the fault."""
    happened = _is_down(system) if fault.is_standing else (_is_spent(system, fault.name),)

    def only(alarm: Value, has_happened: bool) -> Sequence[Alternative]:
        found = findings_in(alarm) if has_happened else ()
        return ((tuple(each for each in found if each.property_id == property_id),),)

    guard = Lookup(f"{fault.name} have not happened", _if_true, (happened[-1].writes[0],))
    return replace(
        system,
        chains=tuple(_watched(chain, happened, only) for chain in system.chains),
        checks=tuple(
            replace(check, lookups=(*happened, guard, *check.lookups)) if check.lookups else check
            for check in system.checks
            if check.property_id == property_id
        ),
    )


def _is_spent(system: System, name: str) -> Lookup:
    whole = system.initial[system.index[BUDGET]]
    assert isinstance(whole, Budget)

    def is_spent(budget: Budget) -> Sequence[Alternative]:
        return ((budget.of(name) < whole.of(name),),)

    return Lookup(NO_GUARD, is_spent, (BUDGET,), ("happened",))


def _is_down(system: System) -> tuple[Lookup, ...]:
    columns = [name for name in system.columns if name.startswith(node_column(""))]
    first = Lookup(NO_GUARD, _this_is_down, (columns[0],), ("down 0",))
    others = enumerate(columns[1:], start=1)
    return (first, *(Lookup(NO_GUARD, _or_this, (f"down {at - 1}", name), (f"down {at}",)) for at, name in others))


def _this_is_down(node: Value) -> Sequence[Alternative]:
    return ((node is None,),)


def _or_this(is_one_down: bool, node: Value) -> Sequence[Alternative]:
    return ((is_one_down or node is None,),)


def _if_true(value: bool) -> Sequence[Alternative]:
    return ((),) if value else ()


def _watched(chain: Chain, happened: Sequence[Lookup], only: Function) -> Chain:
    """Its alarms, if the fault happened before this transition."""
    if not chain.alarms:
        return chain
    has_happened = happened[-1].writes[0]
    kept = tuple(Lookup(NO_GUARD, only, (alarm, has_happened), (f"{alarm} after",)) for alarm in chain.alarms)
    return replace(
        chain,
        lookups=(*happened, *chain.lookups, *kept),
        alarms=tuple(name for lookup in kept for name in lookup.writes),
    )
