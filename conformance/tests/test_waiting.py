"""Waiting: what comes after the time counts for nothing, and a node that hangs gets more of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from distro_conformance.waiting import MAX_SLACK_MS, SLACK_MS, RealClock, eventually, in_order, known, never


@dataclass
class Hand:
    """A clock that somebody moves."""

    at_ms: int = 0
    slack_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms

    async def pass_ms(self, ms: int) -> None:
        self.at_ms += ms


@pytest.mark.parametrize(("from_ms", "seen"), [(970, "there"), (1_001, None)])
def test_what_comes_after_the_time_is_not_held_against_anybody(from_ms: int, seen: str | None) -> None:
    clock = Hand()

    async def look() -> str | None:
        clock.at_ms += 7  # so long does it take
        return "there" if clock.at_ms >= from_ms else None

    assert asyncio.run(never(look, clock, 1_005)) == seen
    assert asyncio.run(eventually(look, clock, 1_005)) == "there", "whoever waits for it is glad of it"


@pytest.mark.parametrize("nothing", [None, False])
def test_none_and_false_are_nothing_and_an_empty_list_is_something(nothing: bool | None) -> None:
    assert asyncio.run(eventually(known(lambda: nothing), Hand(), 200)) is None
    clock = Hand()
    assert asyncio.run(eventually(known(lambda: clock.at_ms > 100 or nothing), clock, 200)) is True
    assert asyncio.run(eventually(known(lambda: ()), Hand(), 200)) == ()


def test_a_node_that_hangs_is_slow_before_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr("distro_conformance.waiting.time.monotonic", lambda: now_s[0])
    clock = RealClock()
    assert clock.slack_ms == SLACK_MS
    with clock.asking():
        now_s[0] += 0.5
        assert clock.slack_ms == 25_000
        now_s[0] += 10
        assert clock.slack_ms == MAX_SLACK_MS
    assert clock.slack_ms == MAX_SLACK_MS
    now_s[0] += 31
    assert clock.slack_ms == SLACK_MS


def test_of_those_that_fail_the_first_in_order_is_told_not_the_fastest() -> None:
    async def after(turns: int, fails: str) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError(fails)

    with pytest.raises(ValueError, match="a"):
        asyncio.run(in_order([after(5, "a"), after(0, "b")]))
