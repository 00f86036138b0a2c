"""Replication, leases and loads, broken one by one: every mutant is noticed, and a near miss is not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from distro_model.actions import Connect, Drop, Register
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.explorer import Exploration, explore
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.profiles import STRICT, Profile
from distro_model.properties import property_named
from distro_model.rules import receive, sync
from distro_model.rules.rule import Function
from distro_model.search.graph import state_graph
from distro_model.search.liveness import search_liveness
from distro_model.search.results import until_found


@cache
def in_strict(bounds: Bounds) -> Exploration:
    return explore(bounds, STRICT)


def broken(explored: Exploration) -> set[str]:
    return {result.name for result in explored.results if result.holds is False}


def never_reached(bounds: Bounds, profile: Profile) -> set[str]:
    return set(search_liveness(state_graph(bounded_cluster(bounds, profile))))


@pytest.mark.quality
@pytest.mark.parametrize(
    ("mutant", "property_id"),
    [
        ("B24", "EVENTUALLY-DELETE"),
        ("B26", "EVENTUALLY-DELETE"),
        ("B02", "EVENTUALLY-CONV"),
        ("no-anti-entropy", "EVENTUALLY-CONV"),
        ("revision-zero-wildcard", "EVENTUALLY-CONV"),
        ("m-unknown-delete-fails", "EVENTUALLY-QUIET"),
        ("revision-beyond-int32", "EVENTUALLY-QUIET"),
    ],
)
def test_a_mutant_keeps_the_cluster_from_its_goal_for_ever(mutant, property_id):
    bounds = MUTANTS[mutant].bounds
    assert never_reached(bounds, STRICT) == set()
    assert property_id in never_reached(bounds, with_mutant(STRICT, mutant))


def without(mutant: str, *rules: Function, **parameters: object) -> Profile:
    return replace(with_mutant(STRICT, mutant).with_rules(*rules), **parameters)


@pytest.mark.parametrize(
    ("mutant", "bounds", "repaired"),
    [
        ("B24", {}, sync.replaces_pending),
        ("B24", {}, sync.of_gone_client),
        ("m-one-worker", {}, sync.worker_of),
        ("m-one-worker", {}, sync.is_free_when_sent),
        ("m-delete-retried-as-change", {}, sync.of_gone_client),
        ("B42", {"garbles": 0}, {}),
        ("B05", {"in_flight": 1}, {}),
        ("B16", {"raises": 0}, {}),
        ("B16-unhandled", {"raises": 0}, {}),
        ("D4", {"cluster_changes": 0}, {}),
        ("B26", {"reorders": 0}, {}),
        ("B27", {"late_replies": 0}, {}),
        ("B01", {"crashes": 0}, {}),
        ("B17", {"changes": 0}, {}),
        ("B23", {"pauses": 0}, {}),
        ("B31", {"drops": 0}, {}),
        ("B11", {"crashes": 0}, {}),
        ("B33", {"crashes": 1}, {}),
        ("m-load-waits-for-down", {"crashes": 2}, {}),
        ("m-load-waits-for-down", {"stays_down": 0}, {}),
        ("load-exception-no-retry", {"raises": 0}, {}),
        ("revision-beyond-int32", {}, {"largest_revision": 2}),
        ("revision-zero-wildcard", {"id_collisions": 0}, {}),
        ("native-connect-onto-synced", {"id_collisions": 0}, {}),
        ("B41", {"id_collisions": 0}, {}),
        ("m-verify-to-one", {"nodes": 2}, {}),
        ("m-query-creates", {"delays": 0}, {}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),  # the same in each process that runs tests
)
def test_without_its_cause_a_mutant_does_no_harm(mutant, bounds, repaired):
    """Or with the other line of defence put back: so the bounds say what the defect needs, and nothing else is it."""
    smaller = replace(MUTANTS[mutant].bounds, **bounds)
    profile = without(mutant, **repaired) if isinstance(repaired, dict) else without(mutant, repaired)
    explored = explore(smaller, profile, [property_named(name) for name in MUTANTS[mutant].breaks])
    assert explored.complete
    assert broken(explored) == set()


def test_a_revision_that_stays_behind_costs_no_lease_where_syncs_renew_it():
    bounds = MUTANTS["B10"].bounds
    explored = explore(bounds, without("B10", receive.renews_lease))
    assert broken(explored) == {"INV-REV", "EVENTUALLY-QUIET"}, "every verify fails, and is answered with a sync"


class TestStories:
    """The shortest run is the one that the catalogue describes."""

    def run(self, mutant: str, property_id: str) -> list[str]:
        looked = [property_named(property_id)]
        explored = explore(MUTANTS[mutant].bounds, with_mutant(STRICT, mutant), looked, until_found(property_id))
        return [str(step.transition) for step in explored.result(property_id).counterexample.steps]

    def test_a_snapshot_rolls_a_client_back_that_changed_after_its_sync(self):
        assert self.run("B01", "INV-NATIVE")[-4:] == [
            "register c1 web 10.0.0.1:80 v=2",
            "a->b: CHANGE c1 revision 1 arrives and is answered",
            "a starts its load again",
            "a->b: SNAPSHOT arrives and is answered",
        ]

    def test_two_changes_are_applied_into_each_other(self):
        """The older one puts back what the newer one has removed, and the newer one's revision is set last."""
        assert self.run("B05", "INV-CONV")[-5:] == [
            "b applies CHANGE c1 revision 2: removes what it does not mention",
            "b applies CHANGE c1 revision 1: puts web",
            "b applies CHANGE c1 revision 1: removes what it does not mention",
            "a->b: CHANGE c1 revision 1 is applied, and answered",
            "a->b: CHANGE c1 revision 2 is applied, and answered",
        ]

    def test_a_delete_falls_between_the_cut_of_a_snapshot_and_its_arrival(self):
        assert self.run("B27", "INV-DELETE")[-5:] == [
            "b->a: SNAPSHOT arrives, its reply is on its way",
            "disconnect c1",
            "a executes its DELETE task of c1 for b",
            "a->b: DELETE c1 arrives and is answered",
            "b->a: SNAPSHOT is answered at last",
        ]

    def test_a_woken_node_checks_its_leases_before_it_receives_from_the_owner(self):
        assert self.run("B23", "INV-LIVE")[-2:] == ["b sleeps for longer than a lease", "b checks its leases"]


@pytest.mark.parametrize(("profile", "sent_ms"), [("strict", 5200), ("m-merge-keeps-max-delay", 7200)])
def test_a_fresh_change_does_not_wait_for_the_retry_that_it_meets(cluster, profile, sent_ms):
    """The CHANGE of 1.2 s times out at 4.2 s; the change of 4.3 s is sent a second later, with it."""
    lab = cluster(STRICT if profile == "strict" else with_mutant(STRICT, profile), "ab")
    lab.run(200)  # away from the instants of verify rounds
    lab.do(Connect("c1", "a"), Register("c1", "web", "10.0.0.1:80 v=1"), Drop("a", "b", "CHANGE"))
    lab.run(4100)
    lab.do(Register("c1", "web", "10.0.0.1:80 v=2"))
    lab.run(4000)
    assert [at_ms for at_ms, _ in lab.calls("CHANGE a->b c1 revision 2")] == [sent_ms]


def test_only_a_crashed_node_can_stay_down():
    with pytest.raises(ValueError, match="only a node that has crashed can stay down; raise crashes"):
        Bounds(stays_down=1)


@pytest.mark.parametrize("services", [0, 4])
def test_a_client_has_one_to_three_services(services):
    with pytest.raises(ValueError, match="1 to 3 services"):
        Bounds(services=services)


class TestAFreshChangeIsNotLate:
    """INV-DELAY: every change of a client is announced after the sync delay, not after the delay of a queued retry."""

    LOST = Bounds(changes=0, drops=1, swallows=0, retry_waits=1)

    @pytest.mark.quality
    @pytest.mark.parametrize(
        "bounds",
        [
            pytest.param(replace(LOST, changes=2), id="a registration"),
            pytest.param(replace(LOST, batches=2), id="a batch"),
            pytest.param(LOST, id="a disconnection"),
            pytest.param(replace(LOST, changes=2, event_queue=1), id="a change whose event waits"),
            pytest.param(replace(LOST, silences=1), id="a closed connection"),
            pytest.param(replace(LOST, clients=0, ip_clients=1, changes=2, in_flight=1), id="a request over HTTP"),
            pytest.param(
                replace(LOST, clients=0, ip_clients=1, changes=1, lapses=1, in_flight=1), id="a check of beats"
            ),
        ],
    )
    def test_every_change_of_a_client_counts(self, bounds):
        looked = [property_named("INV-DELAY")]
        late = explore(bounds, with_mutant(STRICT, "m-merge-keeps-max-delay"), looked, until_found("INV-DELAY"))
        assert broken(late) == {"INV-DELAY"}
        in_time = explore(bounds, STRICT, looked)
        assert (in_time.complete, broken(in_time)) == (True, set())
