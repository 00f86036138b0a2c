"""Walks of the bounded cluster on a clock: as far as it follows, and at each transition in the state of the walk."""

from __future__ import annotations

import pytest

from distro_model.actions import Advance, Crash, Deliver, LoseReply, Register, RegisterBatch, Swallow
from distro_model.bounded.bounds import Bounds
from distro_model.bounded.cluster import bounded_cluster
from distro_model.bounded.view import situation_of
from distro_model.clock.cluster import observe, prologue, start, views_of
from distro_model.explorer import explore
from distro_model.mutants import mutant_named, with_mutant
from distro_model.possible import PossibleStates
from distro_model.profiles import profile_named
from distro_model.properties import property_named
from distro_model.repeating import as_timed
from distro_model.search.graph import StateGraph, state_graph
from distro_model.search.results import Run
from distro_model.search.system import Finding
from distro_model.search.tours import rarest, transition_tours
from distro_model.timing import NoTimesError, TimedWalk, Timing, whole

STRICT = profile_named("strict")
SMALL = Bounds(changes=1, in_flight=1)
BUSY = Bounds(changes=0, swallows=0)
CRASH = Bounds(changes=1, crashes=1, drops=0, swallows=0, in_flight=1)


def graph_of(bounds: Bounds) -> StateGraph:
    return state_graph(bounded_cluster(bounds, STRICT, ()))


def walk(bounds: Bounds, *wanted: str) -> Run:
    """The walk whose n-th transition says the n-th of these texts."""
    graph, edges, row = graph_of(bounds), [], 0
    for text in wanted:
        labels = [str(each.label) for each in graph.transitions_of(row)]
        edges.append(graph.edges_of(row)[labels.index(text)])
        row = int(graph.target[edges[-1]])
    return graph.run(edges, Finding("TEST", "a walk"))


def repeated(bounds: Bounds, timed: TimedWalk, run: Run) -> None:
    """Without a look at how the times were found: every outcome shows, after each action, the row that it says."""
    possible = PossibleStates.of(start(bounds.node_names, STRICT))
    for action in prologue(bounds.node_names, STRICT):
        possible = possible.after(action)
    for action, taken in zip(timed.actions, timed.taken, strict=True):
        possible = possible.after(action)
        views = views_of(situation_of(run.rows[taken], bounds).nodes.items(), STRICT)
        assert all(observe(state) == views for state in possible.states), f"after {action}"


@pytest.mark.parametrize("bounds", [SMALL, CRASH])
def test_wherever_a_walk_counts_as_being_every_outcome_is(bounds: Bounds) -> None:
    graph, clock = graph_of(bounds), Timing(bounds, STRICT)
    done = set()
    for edges in transition_tours(graph)[::4]:
        run = graph.run(edges, Finding("TOUR", "all"))
        timed = clock.timed(run)
        repeated(bounds, timed, run)
        done |= {str(graph.system.chains[graph.chain[edge]].kind) for edge in edges[: timed.transitions]}
    kinds = {chain.kind for chain in graph.system.chains}
    never = {"load"}  # a second load needs a first one that fails
    assert done >= {str(kind) for kind in kinds} - never - {"fail"}, kinds - done


def test_a_late_delivery_is_an_action_of_its_own() -> None:
    run = walk(
        SMALL,
        "connect c1 a",
        "register c1 web 10.0.0.1:80 v=1",
        "a executes its CHANGE task of c1 for b",
        "disconnect c1",
        "a->b: CHANGE c1 revision 1 arrives and is answered",
    )
    timed = whole(Timing(SMALL, STRICT).timed(run))
    assert timed.actions[-1] == Deliver("a", "b", "CHANGE", "c1")
    assert timed.taken[-2:] == (4, 5)


def test_each_transition_is_taken_by_an_action_or_a_wait() -> None:
    sent = ("a executes its CHANGE task of c1 for b", "a->b: CHANGE c1 revision 1 arrives and is answered")
    run = walk(SMALL, "connect c1 a", "register c1 web 10.0.0.1:80 v=1", *sent)
    timed = Timing(SMALL, STRICT).timed(run)
    after_holds = dict(zip(timed.actions, timed.taken, strict=True))
    assert after_holds[Advance(1_050)] == 3
    assert after_holds[Deliver("a", "b", "CHANGE", "c1")] == 4


def test_a_request_that_is_swallowed_later_waits_until_then() -> None:
    run = walk(
        SMALL,
        "connect c1 a",
        "register c1 web 10.0.0.1:80 v=1",
        "a executes its CHANGE task of c1 for b",
        "disconnect c1",
        "a->b: CHANGE c1 revision 1 is acknowledged and not delivered",
    )
    timed = whole(Timing(SMALL, STRICT).timed(run))
    assert timed.actions[-1] == Swallow("a", "b", "CHANGE", "c1", held=True)
    assert timed.taken[-2:] == (4, 5)


def test_a_client_waits_so_that_its_task_comes_after_the_verify_round() -> None:
    run = walk(
        SMALL,
        "connect c1 a",
        "register c1 web 10.0.0.1:80 v=1",
        "a starts a verify round",
        "a->b: VERIFY c1 revision 1 arrives and is answered",
    )
    timed = whole(Timing(SMALL, STRICT).timed(run))
    before = timed.actions[: timed.actions.index(Register("c1", "web", "10.0.0.1:80 v=1"))]
    waited_ms = sum(action.ms for action in before if isinstance(action, Advance))
    assert 3_000 < waited_ms < 4_000, "the round is after 4 s, the task is executed a second after the registration"


def test_a_step_that_no_clock_can_take_ends_the_walk() -> None:
    """A verify round comes every five seconds; a request that is lost has timed out long before the second one."""
    run = walk(
        BUSY,
        "connect c1 a",
        "a starts a verify round",
        "a->b: VERIFY c1 revision 0 is lost",
        "a starts a verify round",
    )
    timed = Timing(BUSY, STRICT).timed(run)
    assert timed.transitions == 3
    assert str(timed.stopped_at) == "a starts a verify round"
    with pytest.raises(NoTimesError, match="a time out of a is due at 7,000 ms, before: a starts a verify round"):
        whole(timed)


def test_a_walk_that_cannot_begin_is_refused_with_its_first_transition() -> None:
    bounds = Bounds(changes=0, slow_setups=1, drops=0, swallows=0)
    run = walk(bounds, "a finds the transport open: connect c1 a")
    with pytest.raises(NoTimesError, match="no action controls events inside a node"):
        Timing(bounds, STRICT).timed(run)


@pytest.mark.parametrize("mutant", ["B18", "B19"])
def test_a_counterexample_with_batches_has_times(mutant: str) -> None:
    broken, profile = mutant_named(mutant), with_mutant(STRICT, mutant)
    found = explore(broken.bounds, profile, [property_named(broken.breaks[0])]).results[0].counterexample
    assert any(isinstance(action, RegisterBatch) for action in as_timed(found, profile).actions)


def test_a_reply_is_lost_by_an_action() -> None:
    bounds = Bounds(changes=1, drops=0, swallows=0, lost_replies=1)
    run = walk(
        bounds,
        "connect c1 a",
        "register c1 web 10.0.0.1:80 v=1",
        "a executes its CHANGE task of c1 for b",
        "a->b: CHANGE c1 revision 1 arrives, its reply is lost",
        "a->b: CHANGE c1 revision 1 times out",
    )
    timed = whole(Timing(bounds, STRICT).timed(run))
    assert any(isinstance(action, LoseReply) for action in timed.actions)


def test_a_crash_answers_at_once_what_was_on_its_way() -> None:
    run = walk(
        CRASH,
        "connect c1 a",
        "a starts a verify round",
        "crash b",
        "a->b: VERIFY c1 revision 0 finds no connection",
        "restart b",
        "b->a: SNAPSHOT arrives and is answered",
    )
    timed = whole(Timing(CRASH, STRICT).timed(run))
    assert timed.taken[timed.actions.index(Crash("b"))] == 3
    repeated(CRASH, timed, run)


def test_a_rare_state_has_times_too() -> None:
    graph, clock = graph_of(SMALL), Timing(SMALL, STRICT)
    assert any(clock.timed(run).stopped_at is None for run in rarest(graph, 30))
