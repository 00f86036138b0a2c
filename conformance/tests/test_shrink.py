"""A failing run is shrunk on the action language: steps without effect are removed, waits joined, nodes left out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from distro_conformance.walks.shrink import OnModel, OnNodes, Run, shrink, smallest
from distro_conformance.wire.transports import IN_MEMORY, OVER_GRPC, Wire
from distro_model.actions import (
    Action,
    Advance,
    Connect,
    Crash,
    Cut,
    Deliver,
    Disconnect,
    Heal,
    Hold,
    Register,
    Release,
    Restart,
    Swallow,
)
from distro_model.mutants import UnknownMutantError

LONG: Sequence[Action] = (
    Connect("c1", "c"),
    Advance(100),
    Connect("c2", "a"),
    Register("c2", "web", "10.0.0.2:80"),
    Advance(300),
    Advance(800),
    Cut("b", "c"),
    Disconnect("c1"),
    Heal("b", "c"),
    Crash("c"),
    Swallow("a", "b", "CHANGE", "c2"),
    Advance(100),
    Register("c2", "web", "10.0.0.2:80 version=2"),
    Restart("c"),
    Advance(2_000),
    Advance(31_000),
    Advance(5_000),
)
NODES = ("a", "b", "c")


def soon() -> float:
    return time.monotonic() + 60


def test_steps_that_change_nothing_are_removed() -> None:
    """Fails as soon as c2 has registered and a second has passed."""

    def fails(run: Run) -> Run | None:
        since = None
        for number, action in enumerate(run.actions, start=1):
            if isinstance(action, Register) and since is None:
                since = 0
            if isinstance(action, Advance) and since is not None:
                since += action.ms
            if since is not None and since >= 1_000:
                return replace(run, actions=run.actions[:number])
        return None

    small = smallest(Run(NODES, tuple(LONG)), fails, soon())
    assert len(small.nodes) == 2
    assert small.actions == (Register("c2", "web", "10.0.0.2:80"), Advance(1_000))


def test_a_lost_change_that_verify_does_not_see_takes_five_steps_on_the_model() -> None:
    on_model = OnModel("strict", "B02")
    assert on_model(Run(NODES, tuple(LONG))) is not None
    small = smallest(Run(NODES, tuple(LONG)), on_model, soon())
    assert small.nodes == ("a", "b")
    assert len(small.actions) <= 6, small.actions
    assert on_model(small) == small


def test_five_actions_on_a_held_link_shrink_to_one_lost_change() -> None:
    """A run as random walks find it; none of its actions can be left out."""
    held: Sequence[Action] = (
        Hold("a", "b", True),
        Connect("c1", "a"),
        Advance(4_050),
        Deliver("a", "b", "VERIFY", "c1"),
        Advance(100),
        Register("c1", "web", "10.0.0.1:80"),
        Deliver("a", "b", "CHANGE", "c1"),
        Advance(4_850),
        Release("a", "b"),
    )
    on_model = OnModel("strict", "B02")
    assert on_model(Run(NODES[:2], tuple(held))) == Run(NODES[:2], tuple(held))
    small = smallest(Run(NODES[:2], tuple(held)), on_model, soon())
    assert [type(action) for action in small.actions if not isinstance(action, Advance)] == [Connect, Swallow, Register]


def test_a_step_that_depends_on_its_time_keeps_the_waits_before_it() -> None:
    """Fails where c2 registers after 1.3 s: parts of the run are taken out, and their time is not."""
    wanted, tried = Register("c2", "web", "10.0.0.2:80 version=2"), []

    def fails(run: Run) -> Run | None:
        tried.append(run)
        if wanted not in run.actions:
            return None
        number = run.actions.index(wanted)
        waited_ms = sum(each.ms for each in run.actions[:number] if isinstance(each, Advance))
        return replace(run, actions=run.actions[: number + 1]) if waited_ms == 1_300 else None

    small = smallest(Run(NODES, tuple(LONG)), fails, soon())
    assert small.actions == (Advance(1_300), wanted)
    assert len(tried) < 50


def test_impossible_actions_are_left_out() -> None:
    unrelated = Register("c9", "web", "10.0.0.9:80")
    assert OnModel("strict", "B02")(Run(NODES, (unrelated,))) is None
    failed = OnModel("strict", "B02")(Run(NODES, (unrelated, *LONG)))
    assert failed is not None
    assert unrelated not in failed.actions


def test_a_mutant_that_the_model_does_not_have_is_left_to_the_nodes() -> None:
    with pytest.raises(UnknownMutantError):
        OnModel("strict", "B99")


@pytest.mark.wire
@pytest.mark.parametrize("wire", [IN_MEMORY, OVER_GRPC])
def test_a_run_that_the_model_shrank_fails_on_the_nodes_too_and_in_memory_where_it_can(wire: Wire) -> None:
    on_nodes = OnNodes("strict", "B02", wire)
    small = shrink(Run(NODES, tuple(LONG)), on_nodes, seconds=20)
    assert small is not None
    assert len(small.actions) <= 6, small.actions
    assert "VERIFY" in str(on_nodes.error)
    assert on_nodes.wire is IN_MEMORY


@pytest.mark.wire
def test_a_run_that_does_not_fail_again_stays_as_it_is() -> None:
    assert shrink(Run(NODES, tuple(LONG)), OnNodes("strict", None, IN_MEMORY), seconds=1) is None
