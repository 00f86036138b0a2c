"""The survivors converge, and each waiting task has fairness of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from distro_model.bounded import placed
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.cluster import nodes
from distro_model.explorer import LIVENESS_STATES, explore
from distro_model.mutants import with_mutant
from distro_model.profiles import PROFILES, STRICT
from distro_model.properties import property_named
from distro_model.rules import sync
from distro_model.search.graph import StateGraph, state_graph
from distro_model.search.results import until_found

ONE_STAYS_DOWN = Bounds(nodes=3, changes=1, crashes=1, drops=0, swallows=1, in_flight=1, stays_down=1)
LASTING = [property_named("EVENTUALLY-CONV"), property_named("EVENTUALLY-QUIET")]


MUTANT = with_mutant(STRICT, "m-verify-only-if-all-up")


def test_survivors_that_verify_no_member_while_one_is_down_do_not_converge():
    """A CHANGE between them is lost, and the third node stays down."""
    explored = explore(ONE_STAYS_DOWN, MUTANT, [property_named("INV-CONV")], until_found("INV-CONV"))
    run = explored.result("INV-CONV").counterexample
    assert run.found == "c1: a shows web 10.0.0.1:80 v=1, b shows nothing"
    assert "a reports to c, which is not there" in str(run)


@pytest.mark.slow
def test_nothing_but_convergence_notices_it_and_strict_converges():
    explored = explore(ONE_STAYS_DOWN, MUTANT)
    assert (explored.complete, explored.distinct_states, explored.transitions) == (True, 131_164, 644_035)
    assert {each.name for each in explored.results if each.holds is False} == {"INV-CONV", "EVENTUALLY-CONV"}
    explored = explore(ONE_STAYS_DOWN, STRICT)
    assert (explored.complete, explored.distinct_states, explored.transitions) == (True, 134_120, 656_961)
    assert explored.holds
    assert all(explored.result(each.id).holds for each in LASTING)


def test_fairness_of_a_node_as_a_whole_is_not_enough(monkeypatch):
    """One place for all tasks of a node: a run may retry the task for the node that is down, and no other."""
    monkeypatch.setattr(placed.fairness, "tasks", lambda layout, node: [(nodes.RUN_TASK, layout.node(node))])
    bounds = replace(ONE_STAYS_DOWN, swallows=0)
    run = explore(bounds, STRICT, LASTING).result("EVENTUALLY-CONV").counterexample
    assert run.run.loop_from is not None
    looped = [str(each.transition) for each in run.steps[run.run.loop_from :]]
    assert [each for each in looped if "executes" in each] == [
        "a executes its CHANGE task of c1 for b"
    ]  # which is down


@pytest.mark.slow
def test_a_verify_round_is_not_held_up_for_ever_by_a_link_that_is_full_now_and_then():
    """A node that sends to members that are DOWN too (2.0.x) retries a refused call on the link of its next round."""
    profile = STRICT.with_rules(sync.reaches_all)
    assert explore(ONE_STAYS_DOWN, profile, LASTING[:1]).holds


MAY_CHOOSE = {
    "connection check": "which connections are idle is the environment's choice",
    "finish request": "requests of clients are a budget: each of those that wait is finished in the end",
    "http finish": "likewise",
    "apply": "two CHANGEs of one client at once: runs that let the earlier wait for ever are judged too",
    "apply the last": "likewise",
}
"""Kinds of fair transitions that have several alternatives at one place, and why that is right."""


@pytest.mark.parametrize(
    ("profile", "bounds"),
    [
        ("strict", Bounds(nodes=3, changes=1, drops=0)),
        ("strict", Bounds(clients=2, changes=1, swallows=0)),
        ("strict", Bounds(changes=1, crashes=1, late_replies=2)),
        ("strict", Bounds(clients=2, nodes=1, changes=1, drops=0, swallows=0, idle_spells=2, silences=1)),
        ("strict", Bounds(changes=1, drops=0, swallows=0, event_queue=2, index=1, lost_events=1)),
        ("strict", Bounds(changes=2, drops=0, swallows=0, slow_requests=2, slow_setups=1)),
        ("strict", Bounds(changes=2, drops=0, swallows=0, delays=2, half_open=1)),
        ("strict", Bounds(clients=0, ip_clients=1, in_flight=2, changes=2, drops=1, swallows=0, lapses=1, races=2)),
        pytest.param(
            *("nacos-2.0.0", Bounds(clients=2, changes=1, drops=0, swallows=0, crashes=1, stays_down=1)),
            marks=pytest.mark.slow,
        ),
        ("nacos-2.0.0", Bounds(changes=1, drops=0, swallows=0, event_queue=2, index=1)),
        ("nacos-2.2.4", Bounds(changes=1, drops=0, swallows=0, torn=1)),
    ],
    ids=str,
)
def test_a_fair_transition_chooses_nothing_that_could_be_starved(profile, bounds):
    graph = state_graph(bounded_cluster(replace(bounds, max_states=200_000), PROFILES[profile], ()), LIVENESS_STATES)
    assert kinds_that_choose(graph) <= MAY_CHOOSE.keys()


def kinds_that_choose(graph: StateGraph) -> set[str]:
    """Kinds of fair transitions that lead from one row to several at one place."""
    chains = graph.system.chains
    again = (np.diff(graph.source) == 0) & (np.diff(graph.chain) == 0)
    return {chains[each].kind for each in set(graph.chain[1:][again].tolist()) if chains[each].is_fair}
