"""Waiting: results in time, late, missed, and left open because of the machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from distro_conformance.language.expectations import Expect
from distro_conformance.language.holding import hold
from distro_conformance.verdict import Verdict
from distro_conformance.waiting import (
    MAX_SLACK_MS,
    Clock,
    Timeliness,
    eventually,
    gather_in_order,
    never,
    poll_local,
    settled,
    wait_until_found,
)


@dataclass
class Hand(Clock):
    """A clock that the test moves."""

    at_ms: int = 0

    def now_ms(self) -> int:
        return self.at_ms

    async def pass_ms(self, ms: int) -> None:
        self.at_ms += ms


@dataclass
class Busy(Hand):
    """The machine takes so much of each 100 ms; `starved`: so much that answers were late."""

    is_real = True
    tolerance_ms = 500
    takes: int = 0
    starved: bool = False

    def slack_since(self, at_ms: int) -> int:
        return (self.at_ms - at_ms) * self.takes // 100

    def is_starved_since(self, at_ms: int) -> bool:  # noqa: ARG002 - of the contract
        return self.starved


def there_from(clock: Hand, at_ms: int) -> Callable[[], Awaitable[str | None]]:
    return poll_local(lambda: "there" if clock.at_ms >= at_ms else None)


@pytest.mark.parametrize(("from_ms", "seen"), [(970, "there"), (1_001, None)])
def test_an_event_after_the_time_is_no_violation(from_ms: int, seen: str | None) -> None:
    clock = Hand()

    async def poll() -> str | None:
        clock.at_ms += 7  # so long does it take
        return "there" if clock.at_ms >= from_ms else None

    assert asyncio.run(never(poll, clock, 1_005)).found == seen


@dataclass
class Stalling(Hand):
    """In one wait the kit does not run again for `late_ms` more than planned; then its event loop runs at once."""

    is_real = True
    stalls_at_ms: int = 950
    late_ms: int = 0

    async def pass_ms(self, ms: int) -> None:
        self.at_ms += ms + (self.late_ms if self.at_ms == self.stalls_at_ms else 0)


@pytest.mark.parametrize(
    ("clock", "found_ms", "timeliness"),
    [
        (Stalling(late_ms=300), 1_300, Timeliness.OPEN),  # found by the first poll after the stall
        (Stalling(late_ms=300), 1_301, Timeliness.OPEN),  # or after the event loop has run once
        (Stalling(late_ms=300), 1_351, None),
        (Stalling(late_ms=40), 1_001, None),  # due right after the time, and the kit was there
        (Stalling(stalls_at_ms=500, late_ms=300), 600, Timeliness.IN_TIME),
        (Stalling(stalls_at_ms=500, late_ms=300), 1_001, None),
    ],
)
def test_an_event_that_is_found_after_a_stall_of_the_kit_is_open(
    clock: Stalling, found_ms: int, timeliness: Timeliness | None
) -> None:
    result = asyncio.run(never(there_from(clock, found_ms), clock, 1_000))
    assert (result.timeliness if result.found else None) is timeliness


def test_an_answer_that_comes_after_the_time_may_be_of_that_time() -> None:
    """A node that answers slowly does not hide that way what must not be there: the question stays open."""
    clock = Busy()

    async def asks() -> str | None:
        clock.at_ms += 3_000
        return "there"

    result = asyncio.run(never(asks, clock, 1_000))
    assert (result.found, result.timeliness) == ("there", Timeliness.OPEN)


def test_a_thread_that_still_waits_for_a_processor_is_counted_before_an_event_is_missed() -> None:
    """The kernel adds the run delay of a thread when it runs again; until then the slack is too small."""

    @dataclass
    class CountedLate(Busy):
        def slack_since(self, at_ms: int) -> int:  # noqa: ARG002 - of the contract
            return 400 if self.at_ms > 1_600 else 0

    for there_ms, timeliness in ((1_700, Timeliness.OPEN), (1_950, Timeliness.MISSED)):
        clock = CountedLate()
        assert asyncio.run(wait_until_found(there_from(clock, there_ms), clock, 1_000)).timeliness is timeliness


@pytest.mark.parametrize("nothing", [None, False])
def test_none_and_false_are_nothing_and_an_empty_list_is_something(nothing: bool | None) -> None:
    assert asyncio.run(eventually(poll_local(lambda: nothing), Hand(), 200)) is None
    clock = Hand()
    assert asyncio.run(eventually(poll_local(lambda: clock.at_ms > 100 or nothing), clock, 200)) is True
    assert asyncio.run(eventually(poll_local(lambda: ()), Hand(), 200)) == ()


@pytest.mark.parametrize(
    ("takes", "there_ms", "timeliness"),
    [
        (0, 1_500, Timeliness.IN_TIME),  # the delay of an idle machine is part of the bound
        (0, 1_600, Timeliness.MISSED),
        (30, 1_500, Timeliness.IN_TIME),
        (30, 2_100, Timeliness.OPEN),  # 600 ms late, and the machine took 630
        (30, 2_300, Timeliness.MISSED),  # 800 ms late, and the machine took 690
        (30, 99_000, Timeliness.MISSED),
        (35, 99_000, Timeliness.OPEN),  # it took more than a third: of three threads each may have waited as long
    ],
)
def test_late_is_open_within_what_the_machine_took_and_never_in_time(
    takes: int, there_ms: int, timeliness: Timeliness
) -> None:
    clock = Busy(takes=takes)
    assert asyncio.run(wait_until_found(there_from(clock, there_ms), clock, 1_000)).timeliness is timeliness
    assert clock.at_ms <= 3_350, "the wait ends when the result can no longer be open"


def test_in_virtual_time_the_bound_is_exact() -> None:
    for there_ms, timeliness in ((1_000, Timeliness.IN_TIME), (1_001, Timeliness.MISSED)):
        clock = Hand()
        assert asyncio.run(wait_until_found(there_from(clock, there_ms), clock, 1_000)).timeliness is timeliness


def test_where_the_other_side_may_have_given_up_what_is_missing_is_open() -> None:
    clock = Busy(takes=10, starved=True)
    missing = asyncio.run(wait_until_found(there_from(clock, 99_000), clock, 1_000))
    assert (missing.timeliness, missing.found) == (Timeliness.OPEN, None)
    endless = Busy(takes=100)
    assert asyncio.run(wait_until_found(there_from(endless, 999_000), endless, 1_000)).timeliness is Timeliness.OPEN
    assert endless.at_ms <= 1_500 + MAX_SLACK_MS + 50, "and it ends"


def test_a_slow_answer_is_time_of_the_node_and_no_slack() -> None:
    clock = Busy()

    async def asks() -> str | None:
        clock.at_ms += 2_000  # so long does the node take to answer
        return "there"

    slow = asyncio.run(wait_until_found(asks, clock, 1_000))
    assert (slow.timeliness, slow.found, slow.took_ms) == (Timeliness.MISSED, "there", 2_000)


@pytest.mark.parametrize(("clock", "at_ms"), [(Hand(), 1_000), (Busy(), 1_500), (Busy(takes=50), 3_000)])
def test_what_a_node_has_time_for_lasts_longer_where_the_machine_took_some_of_it(clock: Hand, at_ms: int) -> None:
    asyncio.run(settled(clock, 1_000))
    assert at_ms - 3 <= clock.at_ms <= at_ms


def test_the_first_failure_in_order_is_raised_and_not_the_fastest() -> None:
    async def after(turns: int, fails: str) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise ValueError(fails)

    with pytest.raises(ValueError, match="a"):
        asyncio.run(gather_in_order([after(5, "a"), after(0, "b")]))


@dataclass
class Shown:
    """A cluster of which a condition holds from some time on, and the clock by which that is looked at."""

    clock: Busy
    from_ms: int

    async def unmet(self, _: object) -> list[str | None]:
        return [None if self.clock.at_ms >= self.from_ms else "a does not have c1"]

    def last_event(self) -> str | None:
        return None


@pytest.mark.parametrize(
    ("takes", "from_ms", "verdict", "says"),
    [
        (0, 1_400, Verdict.CONFORMS, "^holds$"),
        (0, 9_000, Verdict.VIOLATES, "^a does not have c1; it never held"),
        (50, 2_000, Verdict.INCONCLUSIVE, r"^not judged: this machine took \d+ ms of the time; it holds too late"),
        (30, 9_000, Verdict.VIOLATES, "^a does not have c1; it never held"),
    ],
)
def test_an_expectation_of_a_scenario_is_open_where_the_machine_may_be_why(
    takes: int, from_ms: int, verdict: Verdict, says: str
) -> None:
    """So it is in the fixture of the pytest plugin, which takes nothing but `conforms` for a pass."""
    shown = Shown(Busy(takes=takes), from_ms)
    held = asyncio.run(hold(cast("Any", shown), Expect(cast("Any", shown), within_ms=1_000)))
    assert held.verdict is verdict, held.outcome
    assert re.search(says, held.outcome), held.outcome
