"""After each fault each property is still judged: a rule that breaks the property is found to break it then.

What is not judged has its reason in `NOT_JUDGED`, and is found by no witness here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from zlib import crc32

import pytest

from distro_model import MUTANTS, PROPERTIES, Bounds, Kind, with_mutant
from distro_model.bounded.cluster import bounded_cluster
from distro_model.profile import Profile
from distro_model.profiles import STRICT
from distro_model.properties.under_faults import FAULTS, NOT_JUDGED, OPEN, after, bounds_after, is_judged
from distro_model.rules import owners, verify
from distro_model.rules.rule import instead_of
from distro_model.search.graph import NoGraphError, state_graph
from distro_model.search.liveness import search_liveness
from distro_model.search.readable import search_readably
from distro_model.search.results import Limits
from distro_model.search.system import NO_GUARD, Alternative, Lookup, System, Value, findings_in

MOST_STATES = 60_000
MOST_OF_GRAPH = 120_000
JUDGED = [each for each in PROPERTIES.values() if each.kind is not Kind.SOMETIMES]
NO_FAULTS = {"drops": 0, "swallows": 0}


@instead_of(verify.is_expired)
def never_expired(_client, _at_ms, _profile) -> bool:
    """No lease of a copy ends."""
    return False


@instead_of(owners.is_responsible)
def of_everybody(_node, client, _profile) -> bool:
    """A node answers for every connection that it knows of, also where it holds a copy."""
    return not owners.is_ip_client(client.name)


@instead_of(verify.revision_matches)
def never_matches(_verified, _held, _profile) -> bool:
    """Every verify fails, and each brings a sync."""
    return False


@instead_of(verify.on_verify)
def renewed_in_any_case(node, event, request, _profile):
    """A verify renews the lease, whatever its answer is."""
    done = verify.on_verify(node, event, request, STRICT)
    held = done.node.client(request.client)
    if held is None or held.native:
        return done
    return replace(done, node=done.node.with_client(replace(held, renewed_ms=event.at_ms)))


SHORT = Bounds(changes=1, periods=2, lease_periods=1, **NO_FAULTS)
LONG = Bounds(changes=0, periods=6, lease_periods=1, drops=0, swallows=1, in_flight=1)
"""Until a lease is long over; as many periods as that takes with the fault."""
WITNESSES: dict[str, tuple[tuple[Profile, Bounds], ...]] = {
    "INV-RESURRECT": ((STRICT.with_rules(never_expired), LONG),),
    "INV-EXPIRE": ((with_mutant(STRICT, "no-anti-entropy").with_rules(never_expired), LONG),),
    "INV-RENEW": (
        (STRICT.with_rules(renewed_in_any_case), Bounds(changes=1, periods=2, lease_periods=1, **NO_FAULTS)),
    ),
    "EVENTUALLY-QUIET": ((STRICT.with_rules(never_matches), Bounds(changes=0, **NO_FAULTS)),),
    "INV-SOURCE": ((STRICT.with_rules(of_everybody), Bounds(changes=1, **NO_FAULTS)),),
}

MUTANTS_OF = {
    "EVENTUALLY-CONV": ("no-anti-entropy", "B02"),
    "EVENTUALLY-DELETE": ("B24",),
    "EVENTUALLY-LOAD": ("load-exception-no-retry",),
    "EVENTUALLY-SILENT": ("B03",),
}
"""Mutants that break more than they say."""


@cache
def witnesses(property_id: str) -> Sequence[tuple[Profile, Bounds]]:
    """What breaks the property, the smallest cluster first."""
    names = {each.id for each in MUTANTS.values() if property_id in each.breaks} | {*MUTANTS_OF.get(property_id, ())}
    found = [(with_mutant(STRICT, name), MUTANTS[name].bounds) for name in sorted(names)]
    return sorted([*found, *WITNESSES.get(property_id, ())], key=lambda each: _size(each[1]))


def _size(bounds: Bounds) -> tuple[int, ...]:
    clients = bounds.clients + bounds.ip_clients
    return bounds.nodes, bounds.periods, bounds.torn, bounds.crashes, clients, bounds.changes


class FoundError(Exception):
    """The search need not go on."""


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
        search_readably(stopping(system), Limits(MOST_STATES))
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
    assert is_judged(property_id, fault)
    assert is_found(property_id, fault)


EVERY_CELL = [(each.id, fault) for each in JUDGED for fault in FAULTS]
SAMPLED = [cell for cell in EVERY_CELL if is_judged(*cell) and crc32(" ".join(cell).encode()) % 12 == 0]
"""A cell that is not judged is searched whole, so `make test-tables` does that, at night."""


@pytest.mark.slow
@pytest.mark.parametrize(("property_id", "fault"), EVERY_CELL if "DISTROCHECK_WHOLE_TABLES" in os.environ else SAMPLED)
def test_a_cell_says_what_the_search_says(property_id, fault):
    assert is_found(property_id, fault) is is_judged(property_id, fault)


def test_every_exception_is_of_a_property_and_of_faults_that_there_are():
    assert (NOT_JUDGED.keys() | OPEN.keys()) <= {each.id for each in JUDGED}
    for name in (each.id for each in JUDGED):
        listed = " ".join([*NOT_JUDGED.get(name, {}).values(), OPEN.get(name, "")]).split()
        assert set(listed) <= FAULTS.keys()
        assert len(set(listed)) == len(listed), name
