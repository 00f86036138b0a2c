"""Random walks go on from states that they seldom come to, with clients of both kinds, and do come to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from distro_conformance.walks import NODES
from distro_conformance.walks.driver import Lockstep
from distro_conformance.walks.random_walks import random_walks
from distro_conformance.walks.rare_starts import BOUNDS, HTTP_BOUNDS, STARTS, on_a_clock, rare_starts
from distro_conformance.walks.result import WalkOptions
from distro_model.actions import Action, Hold, Release
from distro_model.bounded.bounds import Bounds
from distro_model.node import NodeState
from distro_model.profiles import Profile
from distro_model.timing import Timing, shown_by


@pytest.mark.wire
@pytest.mark.slow
@pytest.mark.parametrize("http", [False, True])
def test_some_runs_go_on_from_a_rare_state_and_some_begin_with_nothing(
    monkeypatch: pytest.MonkeyPatch, http: bool
) -> None:
    runs: list[list[Action]] = []
    start, perform = Lockstep.__init__, Lockstep.perform

    def starting(self: Lockstep, *arguments: Any, **named: Any) -> None:
        start(self, *arguments, **named)
        runs.append([])

    def noting(self: Lockstep, action: Action) -> None:
        runs[-1].append(action)
        perform(self, action)

    monkeypatch.setattr(Lockstep, "__init__", starting)
    monkeypatch.setattr(Lockstep, "perform", noting)
    result = random_walks(WalkOptions(runs_max=6, seed=2, http=http))
    assert result.failure is None, result.failure
    beginnings = [list(each) for each in rare_starts("strict", seed=2, http=http)]
    begun = [run for run in runs if any(run[: len(each)] == each for each in beginnings)]
    assert 0 < len(begun) < len(runs)
    for run in begun:
        held, released = (sum(isinstance(action, kind) for action in run) for kind in (Hold, Release))
        assert held == released, "what a beginning holds is released, at the latest in the calm end"


def test_the_seed_chooses_the_rare_states() -> None:
    made_again = rare_starts.__wrapped__
    assert made_again("strict", seed=1) == rare_starts("strict", seed=1)
    assert made_again("strict", seed=1) != rare_starts("strict", seed=2)
    assert [len(rare_starts("strict", seed=1, http=http)) for http in (False, True)] == [STARTS, STARTS]


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("profile", ["strict", "nacos-2.2.4"])
def test_a_rare_state_of_two_nodes_is_reached_beside_a_third(profile: str, http: bool) -> None:
    rules, bounds = on_a_clock(profile), HTTP_BOUNDS if http else BOUNDS
    starts = rare_starts(profile, seed=1, http=http)
    for actions in starts[:3]:
        (alone,) = of_a_and_b(bounds, rules, actions)
        assert alone in of_a_and_b(replace(bounds, nodes=len(NODES)), rules, actions)


def of_a_and_b(bounds: Bounds, rules: Profile, actions: Iterable[Action]) -> list[tuple[Any, ...]]:
    """The possible later states of these two nodes and of the links between them, without those of other nodes."""
    timing = Timing(bounds, rules)
    place = timing.quiet
    for action in actions:
        place = place.do(action)
    return [_without_others(*shown_by(state), timing) for state in place.states]


def _without_others(nodes: tuple[NodeState, ...], links: tuple[Any, ...], timing: Timing) -> tuple[Any, ...]:
    two = NODES[:2]
    between = [link for ends, link in zip(timing.links, links, strict=True) if {*ends} == {*two}]
    alone = [
        replace(
            node,
            others=tuple(each for each in node.others if each in two),
            tasks=tuple(each for each in node.tasks if each.target in two),
            unacknowledged=tuple(each for each in node.unacknowledged if each[1] in two),
        )
        for node in nodes[: len(two)]
    ]
    return (*alone, *between)
