"""After each fault each property is still judged: a rule that breaks the property is found to break it then.

Where a property is not judged no cluster has both its subject and the fault; `Bounds` says why.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache, reduce
from zlib import crc32

import pytest

from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.layout import BUDGET, node_column
from distro_model.cluster.budget import Budget
from distro_model.events import Reply
from distro_model.explorer import search_compiled
from distro_model.messages import SUCCESS
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.node import Step
from distro_model.profile import Profile
from distro_model.profiles import STRICT
from distro_model.properties import PROPERTIES
from distro_model.properties.under_faults import FAULTS, NOT_JUDGED, Fault
from distro_model.rules import owners, receive, verify
from distro_model.rules.rule import instead_of
from distro_model.search.graph import NoGraphError, state_graph
from distro_model.search.liveness import search_liveness
from distro_model.search.results import Limits
from distro_model.search.system import NO_GUARD, Alternative, Chain, Kind, Lookup, System, Value, findings_in

MOST_STATES = 1_000_000
MOST_OF_GRAPH = 400_000
JUDGED = [each for each in PROPERTIES.values() if each.kind is not Kind.SOMETIMES]
NO_FAULTS = {"drops": 0, "swallows": 0}


@instead_of(owners.is_responsible)
def owns_every_connection(_node, client, _profile) -> bool:
    """A node owns each client of a connection that it holds, also where it holds a copy."""
    return not owners.is_ip_client(client.name)


@instead_of(verify.revision_matches)
def never_matches(_verified, _held, _profile) -> bool:
    """Every verify fails, and each brings a sync."""
    return False


@instead_of(receive.on_delete)
def acknowledged_only(node, _event, _request, _profile) -> Step:
    """A DELETE is acknowledged, and the copy stays."""
    return Step(node, (Reply(SUCCESS),))


@instead_of(receive.snapshot_fits)
def nothing_fits(_clients, _profile) -> bool:
    """No snapshot can be sent, so that no load ends."""
    return False


def mutated(*mutants: str) -> Profile:
    return reduce(with_mutant, mutants, STRICT)


QUIET = Bounds(changes=0, **NO_FAULTS)
ONE_CHANGE = Bounds(changes=1, **NO_FAULTS)
EXPIRY = replace(ONE_CHANGE, periods=5, lease_periods=1)
LONG = replace(ONE_CHANGE, periods=6, lease_periods=1, in_flight=1)
"""Until a lease is long over; as many periods as that takes with the fault."""
WITNESSES: dict[str, tuple[tuple[Profile, Bounds], ...]] = {
    "INV-RESURRECT": ((mutated("no-anti-entropy", "m-no-lease-ends").with_rules(acknowledged_only), LONG),),
    "INV-EXPIRE": (
        (mutated("no-anti-entropy", "m-no-lease-ends"), EXPIRY),
        (mutated("no-anti-entropy", "m-no-lease-ends"), replace(EXPIRY, changes=2)),
    ),
    "INV-RENEW": ((mutated("m-refusal-renews"), replace(MUTANTS["m-refusal-renews"].bounds, in_flight=1)),),
    "INV-SOURCE": ((STRICT.with_rules(owns_every_connection), ONE_CHANGE),),
    "INV-AIM": ((mutated("m-add-after-fail-to-all"), replace(ONE_CHANGE, nodes=3, in_flight=1)),),
    "INV-RECONNECT": ((mutated("B35"), replace(MUTANTS["B35"].bounds, periods=0)),),
    "EVENTUALLY-LOAD": (
        (STRICT.with_rules(nothing_fits), replace(QUIET, clients=0, crashes=1)),
        (STRICT.with_rules(nothing_fits), replace(QUIET, crashes=1, in_flight=1)),
    ),
    "EVENTUALLY-SILENT": (
        (mutated("B03"), replace(QUIET, nodes=1, silences=1)),
        (mutated("B03"), replace(ONE_CHANGE, nodes=1, silences=1)),
    ),
    "EVENTUALLY-CONV": ((mutated("no-anti-entropy", "B03"), replace(ONE_CHANGE, swallows=1)),),
    "EVENTUALLY-DELETE": ((mutated("m-held-delete-fails"), replace(QUIET, in_flight=1)),),
    "EVENTUALLY-QUIET": (
        (STRICT.with_rules(never_matches), replace(QUIET, in_flight=1)),
        (mutated("no-anti-entropy", "m-resends-after-success"), replace(ONE_CHANGE, in_flight=1)),
    ),
}
"""Rules that break a property in smaller clusters than its own mutant, or in other ones."""


@cache
def witnesses(property_id: str) -> Sequence[tuple[Profile, Bounds]]:
    """The rules that break the property, the smallest cluster first."""
    found = [(mutated(each.id), each.bounds) for each in MUTANTS.values() if property_id in each.breaks]
    return sorted([*WITNESSES.get(property_id, ()), *found], key=lambda each: _size(each[1]))


def _size(bounds: Bounds) -> tuple[int, ...]:
    clients = bounds.clients + bounds.ip_clients
    return bounds.nodes, bounds.periods, bounds.torn, bounds.crashes, clients, bounds.changes


class FoundError(Exception):
    """Ends the search."""


def stop(value: Value) -> Sequence[Alternative]:
    if findings_in(value):
        raise FoundError
    return ((),)


def stopping(system: System) -> System:
    chains = (
        replace(each, lookups=(*each.lookups, *(Lookup(NO_GUARD, stop, (alarm,)) for alarm in each.alarms)))
        for each in system.chains
    )
    checks = (
        replace(each, lookups=(*each.lookups, Lookup(NO_GUARD, stop, (each.found,)))) if each.found else each
        for each in system.checks
    )
    return replace(system, chains=tuple(chains), checks=tuple(checks))


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


def _watched(chain: Chain, happened: Sequence[Lookup], only: Callable[..., Sequence[Alternative]]) -> Chain:
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


def systems(property_id: str, fault: str) -> Iterator[System]:
    for profile, own in witnesses(property_id):
        try:
            bounds = bounds_after(own, FAULTS[fault])
        except ValueError:
            continue  # no cluster has both
        if own is LONG:
            bounds = replace(bounds, periods=bounds.lease_length * (1 + bounds.crashes) + 4 + bounds.crashes)
        if PROPERTIES[property_id].applies(bounds):
            yield after(bounded_cluster(bounds, profile, [PROPERTIES[property_id]]), property_id, FAULTS[fault])


def is_found(property_id: str, fault: str) -> bool:
    return any(_is_found_in(system, property_id) for system in systems(property_id, fault))


def _is_found_in(system: System, property_id: str) -> bool:
    if PROPERTIES[property_id].kind is Kind.EVENTUALLY:
        try:
            return property_id in search_liveness(state_graph(system, MOST_OF_GRAPH))
        except NoGraphError:
            return False
    try:
        search_compiled(stopping(system), Limits(MOST_STATES))
    except FoundError:
        return True
    return False


@pytest.mark.parametrize(
    ("property_id", "fault"),
    [
        ("INV-CONV", "swallows"),
        ("INV-GONE", "stays_down"),
        ("INV-NATIVE", "leaves"),
        ("INV-INIT", "drops"),
        ("INV-SOURCE", "drops"),
        ("INV-NATIVE", "joins"),
    ],
)
def test_a_property_is_judged_after_a_fault(property_id, fault):
    assert (property_id, fault) not in NOT_JUDGED
    assert is_found(property_id, fault)


EVERY_CELL = [(each.id, fault) for each in JUDGED for fault in FAULTS if (each.id, fault) not in NOT_JUDGED]
SAMPLED = [cell for cell in EVERY_CELL if crc32(" ".join(cell).encode()) % 12 == 0]
"""`make test-tables` searches every cell, at night."""


@pytest.mark.slow
@pytest.mark.parametrize(("property_id", "fault"), EVERY_CELL if "DISTROCHECK_WHOLE_TABLES" in os.environ else SAMPLED)
def test_a_cell_says_what_the_search_says(property_id, fault):
    assert is_found(property_id, fault)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if ("INV-METADATA", fault) in NOT_JUDGED])
def test_an_operator_and_a_crash_are_in_no_cluster_together(fault):
    with pytest.raises(ValueError, match="metadata is in no node's memory alone"):
        bounds_after(MUTANTS["B43"].bounds, FAULTS[fault])


def test_every_exception_has_a_test_of_its_reason():
    assert set(NOT_JUDGED) == {("INV-METADATA", "crashes"), ("INV-METADATA", "stays_down")}
