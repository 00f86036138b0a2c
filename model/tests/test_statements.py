"""Transitions are stated in steps whose parameter names are registers: the steps fit, and a mismatch is found."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

import pytest
from common_clusters import CLUSTERS
from fitting import mismatches

from distro_model.bounded import periods
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.chains import Chains
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.layout import Layout
from distro_model.bounded.placed import placed
from distro_model.cluster import calls, connections, http_clients
from distro_model.cluster.budget import Budget, Clock
from distro_model.cluster.statement import StatementError, Transition, handles, watches, writes
from distro_model.cluster.values import Call, IpLife, Life, Link
from distro_model.events import Event
from distro_model.messages import Operation
from distro_model.mutants import MUTANTS
from distro_model.node import Addresses, NodeState
from distro_model.profiles import STRICT, Profile
from distro_model.rules import ip_clients
from distro_model.rules import torn as torn_rules
from distro_model.search.system import Finding

FILES = "accidents calls clients connections crashes half_open http_clients inside members nodes operator torn"
MODULES = (*(import_module(f"distro_model.cluster.{name}") for name in FILES.split()), periods)
STATED = [(each, name) for each in MODULES for name, value in vars(each).items() if isinstance(value, Transition)]

NODES = dict.fromkeys(("node", "source", "target", "home", "asked", "handling", "every_node", "peer"), NodeState | None)
ENDS = {"any_source": NodeState | None, "holder": NodeState | None, "any_link": Link, "held": Life, "home_client": Life}
VALUES = {"link": Link, "outgoing": Link, "incoming": Link, "life": Life, "ip_life": IpLife}
CHOOSER = {"budget": Budget, "clock": Clock, "stale": tuple[tuple[str, str], ...]}
NAMES = ("node_name", "source_name", "target_name", "asked_name", "handling_name", "peer_name", "client", "claimant")
CONSTANTS = {
    **dict.fromkeys((*NAMES, "any_source_name", "any_target_name"), str),
    **dict.fromkeys(("now", "period", "periods", "lease_length", "crashes", "slept_ms", "services"), int),
    "last_ms": int | None,
    "operation": Operation,
    "others": tuple[str, ...],
    "addresses": Addresses,
    "profile": Profile,
}
EVERYTHING = {*CLUSTERS.values(), *(each.bounds for each in MUTANTS.values())}
OF_CLOCKS = ("answer again", "duplicate", "refuse", "report to members not up")
KNOWN = {**NODES, **ENDS, **VALUES, **CHOOSER, **CONSTANTS}


def test_the_steps_of_every_transition_fit():
    assert len(STATED) > 70
    assert [each for module, name in STATED for each in mismatches(getattr(module, name), KNOWN)] == []


class Words(NamedTuple):
    link: str


def in_words(call: str) -> Words:
    return Words(call)


def aloud(loudness: int) -> Event: ...


def test_a_step_that_reads_another_type_or_another_name_does_not_fit():
    wrong = replace(calls.LOSE, steps=(*calls.LOSE.steps, writes(in_words), handles("source", aloud)))
    assert list(mismatches(wrong, KNOWN)) == [
        "lose: in_words reads call as str, it is Call",
        "lose: aloud reads loudness, which nothing writes",
    ]


def test_a_step_that_takes_a_node_for_running_needs_a_guard():
    unguarded = replace(connections.END_CHECK, steps=connections.END_CHECK.steps[4:5])
    assert "connection check ends: ejected reads node as NodeState, it is NodeState | NoneType" in mismatches(
        unguarded, KNOWN
    )


def test_deriving_look_ups_refuses_a_name_that_nothing_writes():
    wrong = replace(calls.LOSE, steps=(*calls.LOSE.steps, handles("source", aloud)))
    layout = Layout(Bounds(), STRICT)
    with pytest.raises(StatementError, match="lose a->b: aloud reads loudness, which nothing writes"):
        Chains(layout).chain(wrong, layout.link("a", "b"))


def always(life: Life) -> Finding | None:
    return Finding("INV-LIVE", f"{life.client} is looked at")


def at_a_peer(source: NodeState | None, peer_name: str) -> Finding | None:
    return Finding("INV-LIVE", f"{peer_name} is looked at")


class OtherWords(NamedTuple):
    words: str


def in_other_words(call: Call) -> OtherWords:
    return OtherWords(str(call))


class TestNoStepVanishes:
    """Every step of a transition is looked up at its places, or the cluster is not built."""

    def test_a_family_that_a_place_does_not_have_is_an_error(self):
        layout = Layout(Bounds(ip_clients=1), STRICT)
        watching = replace(http_clients.HTTP_CHANGE, steps=(*http_clients.HTTP_CHANGE.steps, watches(always)))
        (route, *_) = layout.routes(*layout.ip_clients)
        with pytest.raises(StatementError, match=r"http change .*: always reads life, which nothing writes"):
            Chains(layout).chain(watching, route)

    def test_a_constant_that_is_named_like_a_member_of_a_family_is_a_constant(self):
        layout = Layout(Bounds(), STRICT)
        watching = replace(calls.LOSE, steps=(*calls.LOSE.steps, watches(at_a_peer)))
        chain = Chains(layout).chain(watching, layout.link("a", "b", peer_name="b"))
        assert len(chain.alarms) == 1
        with pytest.raises(StatementError, match="at_a_peer reads peer_name, which nothing writes"):
            Chains(layout).chain(watching, layout.link("a", "b"))

    def test_a_family_without_members_in_this_cluster_is_none(self):
        layout = Layout(Bounds(ip_clients=0), STRICT)
        assert len(Chains(layout).chain(calls.SWALLOW, layout.link("a", "b")).alarms) == 1

    def test_an_unread_statement_is_an_error(self):
        layout = Layout(Bounds(), STRICT)
        useless = replace(calls.LOSE, steps=(*calls.LOSE.steps, writes(in_other_words)))
        with pytest.raises(StatementError, match="lose a->b: in_other_words writes words, which nothing reads"):
            Chains(layout).chain(useless, layout.link("a", "b"))

    def test_every_transition_of_a_search_has_a_place_in_some_cluster(self):
        built = {transition for bounds in EVERYTHING for transition, _ in placed(Layout(bounds, STRICT))}
        of_parts = STRICT.with_rules(torn_rules.on_change, torn_rules.on_task_due)
        built |= {transition for transition, _ in placed(Layout(Bounds(torn=1), of_parts))}
        late = STRICT.with_rules(ip_clients.changed_and_announced_late)
        built |= {transition for transition, _ in placed(Layout(Bounds(ip_clients=1), late))}
        kinds = {transition.kind for transition in built}
        assert {getattr(module, name).kind for module, name in STATED} - kinds == {*OF_CLOCKS}
        for bounds in EVERYTHING:
            bounded_cluster(bounds, STRICT)
