"""A mutant changes the events of a clock and of a random simulation, unless it is listed here.

The same runs are executed by the clock and by a simulation, with the mutant and without. That a search notices each
mutant is in `test_mutants.py`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random
from zlib import crc32

import pytest

from distro_model.actions import (
    Advance,
    Connect,
    Crash,
    Cut,
    Deliver,
    Deregister,
    Disconnect,
    Drop,
    FallSilent,
    Garble,
    Heal,
    Hold,
    HttpBeat,
    HttpRegister,
    ListMembers,
    Mistype,
    Pause,
    Register,
    RegisterBatch,
    Release,
    Restart,
    Resume,
    Swallow,
)
from distro_model.clock.cluster import prologue, start
from distro_model.mutants import MUTANTS, with_mutant
from distro_model.possible import PossibleStates
from distro_model.profiles import STRICT
from distro_model.simulation.cluster import SimulatedCluster
from distro_model.simulation.scheduler import Scheduler

ONE, OTHER, THIRD = "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"
INDEXED = replace(STRICT, event_queue=2, keeps_index=True)
PUBLISHED = (Connect("c1", "a"), Register("c1", "web", ONE), Advance(2000))
SEVERAL = tuple(HttpRegister("web", each, "a") for each in (ONE, OTHER, THIRD))
BEATEN = (Advance(5000), *(HttpBeat("web", each, "a") for each in (ONE, OTHER, THIRD)))

RUNS = {
    "a life": (*PUBLISHED, Register("c1", "web", OTHER), Advance(7000), Deregister("c1", "web"), Disconnect("c1")),
    "a lost change": (
        Connect("c1", "a"),
        Drop("a", "b", "CHANGE", "c1"),
        Register("c1", "web", ONE),
        Advance(5500),
        Register("c1", "web", OTHER),
        Advance(9000),
    ),
    "a swallowed change": (
        *PUBLISHED,
        Swallow("a", "b", "CHANGE", "c1"),
        Register("c1", "web", OTHER),
        Advance(20_000),
    ),
    "swallowed from the first": (
        Connect("c1", "a"),
        Swallow("a", "b", "CHANGE", "c1"),
        Advance(1500),
        Register("c1", "web", ONE),
        Advance(9000),
    ),
    "a client that leaves while its change is held": (
        Connect("c1", "a"),
        Hold("a", "b"),
        Register("c1", "web", ONE),
        Advance(3600),
        Disconnect("c1"),
        Advance(4000),
        Release("a", "b"),
        Advance(9000),
    ),
    "a verify that is late": (
        *PUBLISHED,
        Hold("a", "b"),
        Advance(2500),
        Disconnect("c1"),
        Advance(1100),
        Deliver("a", "b", "DELETE", "c1"),
        Deliver("a", "b", "VERIFY", "c1"),
        Release("a", "b"),
        Advance(100),
    ),
    "a garbled answer": (
        Connect("c1", "a"),
        Garble("a", "b", "CHANGE", "c1"),
        Register("c1", "web", ONE),
        Advance(9000),
    ),
    "another cluster": (*PUBLISHED, Register("c1", "web", f"{ONE} cluster=blue"), Advance(2000)),
    "a deletion of an unknown type": (
        *PUBLISHED,
        Mistype("a", "b", "DELETE", "c1"),
        Disconnect("c1"),
        Advance(9000),
    ),
    "a lost deletion": (*PUBLISHED, Drop("a", "b", "DELETE", "c1"), Disconnect("c1"), Advance(15_000)),
    "a deletion that is nothing new": (
        *PUBLISHED,
        Swallow("a", "b", "DELETE", "c1"),
        Disconnect("c1"),
        Advance(2000),
        Connect("c2", "a"),
        Swallow("a", "b", "CHANGE", "c2"),
        Register("c2", "web", ONE),
        Advance(1100),
        Disconnect("c2"),
        Advance(9000),
    ),
    "a deletion that overtakes": (
        *PUBLISHED,
        Hold("a", "b"),
        Register("c1", "web", OTHER),
        Advance(1500),
        Disconnect("c1"),
        Advance(1100),
        Deliver("a", "b", "DELETE", "c1"),
        Release("a", "b"),
        Advance(2000),
    ),
    "two held changes": (
        *PUBLISHED,
        Hold("a", "b"),
        Register("c1", "web", OTHER),
        Register("c1", "db", ONE),
        Advance(1200),
        Deregister("c1", "db"),
        Register("c1", "web", THIRD),
        Advance(1200),
        Release("a", "b"),
        Advance(2000),
    ),
    "a short cut": (*PUBLISHED, Cut("a", "b"), Advance(60_000)),
    "a long cut": (*PUBLISHED, Cut("a", "b"), Advance(200_000), Heal("a", "b"), Advance(20_000)),
    "a copy that starts again": (*PUBLISHED, Crash("b"), Advance(2000), Restart("b"), Advance(40_000)),
    "an owner that starts again": (*PUBLISHED, Crash("a"), Advance(2000), Restart("a"), Advance(220_000)),
    "a snapshot of what has changed since": (
        *PUBLISHED,
        Crash("b"),
        Hold("b", "a"),
        Advance(500),
        Restart("b"),
        Connect("c2", "b"),
        Register("c2", "web", ONE),
        Advance(1200),
        Deliver("b", "a", "CHANGE", "c2"),
        Register("c2", "web", OTHER),
        Deliver("b", "a", "SNAPSHOT"),
        Release("b", "a"),
        Advance(7000),
    ),
    "a silent client": (*PUBLISHED, FallSilent("c1"), Advance(40_000)),
    "two silent clients": (*PUBLISHED, Connect("c2", "a"), FallSilent("c1"), FallSilent("c2"), Advance(40_000)),
    "a failed verify whose repair is lost": (
        *PUBLISHED,
        Swallow("a", "b", "CHANGE", "c1"),
        Drop("a", "b", "CHANGE", "c1"),
        Register("c1", "web", OTHER),
        Advance(6000),
    ),
    "batches": (
        *PUBLISHED,
        RegisterBatch("c1", "web", (ONE, OTHER)),
        Advance(2000),
        Swallow("a", "b", "CHANGE", "c1"),
        RegisterBatch("c1", "web", (ONE, THIRD)),
        Advance(9000),
    ),
    "beats": (
        HttpRegister("web", ONE, "a"),
        Advance(5000),
        HttpBeat("web", ONE, "a"),
        Advance(5000),
        HttpBeat("web", ONE, "b"),
        Advance(60000),
    ),
    "a hand-over": (
        *SEVERAL,
        Advance(2000),
        Crash("b"),
        Advance(15000),
        HttpBeat("web", ONE, "a"),
        Restart("b"),
        Advance(4000),
        HttpBeat("web", ONE, "b"),
        Advance(40000),
    ),
    "a hand-over of what beats": (*SEVERAL, *BEATEN * 4, Crash("b"), Advance(12_000)),
    "a member that is doubtful": (Crash("b"), Advance(9000), *SEVERAL, Advance(2000)),
    "a member that is down": (Crash("b"), Advance(15_000), *SEVERAL, Advance(2000)),
    "a node that stands still": (*PUBLISHED, Pause("b"), Advance(200_000), Resume("b"), Advance(7000)),
    "a cut node that stands still": (
        *PUBLISHED,
        Cut("a", "b"),
        Pause("b"),
        Advance(200000),
        Resume("b"),
        Advance(7000),
    ),
    "a member that leaves": (
        *PUBLISHED,
        Register("c1", "web", OTHER),
        ListMembers("a", ("a",)),
        Advance(5000),
        ListMembers("a", ("a", "b")),
        Advance(12000),
    ),
    "a member that leaves while a change fails": (
        *PUBLISHED,
        Drop("a", "b", "CHANGE", "c1"),
        Register("c1", "web", OTHER),
        Advance(3000),
        ListMembers("a", ("a",)),
        Advance(12000),
    ),
    "a new member that is down": (ListMembers("a", ("a",)), Crash("b"), ListMembers("a", ("a", "b")), Advance(100)),
    "a list read again": (*PUBLISHED, Crash("b"), Advance(15_000), ListMembers("a", ("a", "b")), Advance(100)),
}
OF_THREE = {
    "a failed verify": RUNS["a swallowed change"],
    "a hand-over": RUNS["a hand-over"],
    "one that hangs": (*PUBLISHED, Hold("a", "b"), Register("c1", "web", OTHER), Advance(1500), Release("a", "b")),
    "two of three": (*PUBLISHED, Register("c1", "web", OTHER), ListMembers("a", ("a", "c")), Advance(5000)),
    "who is down": (
        Crash("c"),
        Advance(15_000),
        HttpRegister("web", ONE, "a"),
        Crash("b"),
        Restart("b"),
        Advance(70_000),
    ),
    "one that never starts": (Restart("a"), Advance(100), Restart("b"), Advance(100_000)),
}
EVERY = [
    *(("ab", STRICT, actions) for actions in RUNS.values()),
    *(("abc", STRICT, actions) for actions in OF_THREE.values()),
    ("a", STRICT, RUNS["a life"]),
    ("ab", INDEXED, RUNS["a life"]),
    ("ab", INDEXED, (*RUNS["a lost deletion"], Connect("c2", "a"), Register("c2", "web", ONE), Disconnect("c2"))),
]
"""(nodes, profile, actions). Its nodes have started, unless it begins with that."""


def whole(number):
    nodes, profile, actions = EVERY[number]
    return nodes, profile, actions if isinstance(actions[0], Restart) else (*prologue(nodes, STRICT), *actions)


@cache
def on_a_clock(number, mutant):
    """Every possible final state of a run, and the calls that ended in it."""
    nodes, profile, actions = whole(number)
    profile = profile if mutant is None else with_mutant(profile, mutant)
    possible, ended = PossibleStates.of(start(nodes, profile)), []
    for action in actions:
        if possible.guard(action) is None:
            possible = possible.after(action)
            ended.append(frozenset(outcome.traffic for outcome in possible.outcomes))
    return frozenset((state.nodes, state.links, state.lives) for state in possible.states), tuple(ended)


class Everything:
    """Records all events without their times."""

    def __init__(self):
        self.events = []

    def acted(self, _, action):
        self.events.append(action)

    def sent(self, _, source, target, call):
        self.events.append((source, target, call.request))

    def handled(self, at_ms, handled):
        self.events.append((at_ms, handled.position, handled.event, handled.after, handled.answer))

    def checkpoint(self, *_):
        raise AssertionError("no run has a checkpoint")


@cache
def in_a_simulation(number, mutant):
    nodes, profile, actions = whole(number)
    profile = profile if mutant is None else with_mutant(profile, mutant)
    scheduler, watch = Scheduler(Random(number)), Everything()
    cluster = SimulatedCluster(nodes, profile, scheduler, watch)
    for action in actions:
        if isinstance(action, Advance):
            scheduler.run_until(scheduler.now_ms + action.ms)
        else:
            cluster.perform(action)
    return tuple(watch.events)


def is_inert(run, mutant):
    return all(run(number, mutant) == run(number, None) for number in range(len(EVERY)))


SAMPLED = frozenset(each for each in MUTANTS if crc32(each.encode()) % 4 == 0)


OF_SEARCHES = {
    *("B12", "B25", "B30", "B40"),  # requests and set-ups are handled whole
    "B14",  # no action loses an event of a node
    *("B16", "load-exception-no-retry"),  # no action makes a node's own code raise
    "B28",  # events are handled at once: no queue is ever full
    "B39",  # a living client sends often enough that its node never probes it
    "B43",  # no action sets metadata
    *("native-connect-onto-synced", "revision-zero-wildcard"),  # no action sends a request that no owner sent
}
OF_SIMULATIONS = {
    "B05-sender",  # a client acts between two instants, and no timer comes between the two readings of one
    *("B08", "B13", "B44"),  # the events of a node are handled in the instant in which they are published
}
"""These change nothing on a clock."""


@pytest.mark.quality
@pytest.mark.parametrize(
    ("run", "inert", "mutants"),
    [
        pytest.param(on_a_clock, OF_SEARCHES | OF_SIMULATIONS, SAMPLED, id="on a clock, a sample"),
        pytest.param(on_a_clock, OF_SEARCHES | OF_SIMULATIONS, MUTANTS.keys() - SAMPLED, marks=pytest.mark.slow),
        pytest.param(in_a_simulation, OF_SEARCHES, MUTANTS.keys(), marks=pytest.mark.slow),
    ],
)
def test_a_mutant_changes_what_happens_in_each_mode_unless_it_needs_other_choices(run, inert, mutants):
    assert {each for each in mutants if is_inert(run, each)} == inert & mutants
