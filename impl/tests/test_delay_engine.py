"""The merge rule and the ticks of the delay task engine (docs/protocol #sync-merge)."""

from __future__ import annotations

import pytest

from distro_impl import VirtualClock
from distro_impl.tasks.delay_engine import DelayTaskEngine


class Engine:
    """An engine whose runs are recorded as (ms since its start, key, action)."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.start_ms = self.clock.now_ms()
        self.ran: list[tuple[int, str, str]] = []
        self.engine: DelayTaskEngine[str, str] = DelayTaskEngine(self.clock, self._run, lambda new, _: new, "ticks")

    def _run(self, key: str, action: str) -> None:
        self.ran.append((self.clock.now_ms() - self.start_ms, key, action))


@pytest.mark.parametrize(
    ("added_ms", "delay_ms", "runs_ms"),
    [(0, 1000, 1000), (1, 1000, 1100), (99, 1000, 1100), (100, 1000, 1100), (250, 0, 300), (300, 0, 300)],
)
async def test_a_task_runs_at_the_first_tick_at_which_it_is_due(added_ms: int, delay_ms: int, runs_ms: int) -> None:
    test = Engine()
    await test.clock.advance(added_ms)
    test.engine.add("c1", "CHANGE", delay_ms)
    await test.clock.advance(5000)
    assert test.ran == [(runs_ms, "c1", "CHANGE")]


async def test_work_due_in_the_instant_of_a_tick_waits_for_the_next() -> None:
    test = Engine()
    test.engine.add("c1", "CHANGE", 1000)
    await test.clock.advance(1000)
    test.engine.add("c2", "DELETE", 0)
    await test.clock.advance(1000)
    assert test.ran == [(1000, "c1", "CHANGE"), (1100, "c2", "DELETE")]


async def test_later_changes_do_not_postpone_the_first() -> None:
    test = Engine()
    for _ in range(6):
        test.engine.add("c1", "CHANGE", 1000)
        await test.clock.advance(150)
    await test.clock.advance(5000)
    assert test.ran == [(1000, "c1", "CHANGE")]


async def test_the_later_action_wins() -> None:
    test = Engine()
    test.engine.add("c1", "CHANGE", 1000)
    test.engine.add("c1", "DELETE", 1000)
    test.engine.add("c2", "DELETE", 1000)
    test.engine.add("c2", "CHANGE", 1000)
    assert test.engine.pending("c1") == "DELETE"
    await test.clock.advance(1000)
    assert test.ran == [(1000, "c1", "DELETE"), (1000, "c2", "CHANGE")]
    assert test.engine.pending("c1") is None


async def test_a_merged_task_keeps_its_own_delay_counted_from_the_pending_one() -> None:
    """B24: the retry of a CHANGE, added 500 ms after a DELETE, is due 3000 ms after the DELETE was queued."""
    test = Engine()
    await test.clock.advance(3500)
    test.engine.add("c1", "DELETE", 1000)
    await test.clock.advance(500)
    test.engine.add("c1", "CHANGE", 3000)
    await test.clock.advance(5000)
    assert test.ran == [(6500, "c1", "CHANGE")]


async def test_an_urgent_task_overtakes_the_timer_of_a_later_one() -> None:
    test = Engine()
    test.engine.add("later", "CHANGE", 1000)
    await test.clock.advance(210)
    test.engine.add("urgent", "CHANGE", 0)
    await test.clock.advance(1000)
    assert test.ran == [(300, "urgent", "CHANGE"), (1000, "later", "CHANGE")]


async def test_tasks_that_are_due_together_run_in_the_order_in_which_their_keys_came() -> None:
    test = Engine()
    for key, delay_ms in (("c1", 300), ("c2", 100), ("c3", 1000)):
        test.engine.add(key, "CHANGE", delay_ms)
    for key, delay_ms in (("c3", 20), ("c1", 90), ("c2", 50)):
        test.engine.add(key, "DELETE", delay_ms)
    await test.clock.advance(5000)
    assert test.ran == [(100, "c1", "DELETE"), (100, "c2", "DELETE"), (100, "c3", "DELETE")]


async def test_a_task_whose_delay_was_merged_to_and_fro_runs_once() -> None:
    test = Engine()
    for delay_ms in (1000, 3000, 1000):
        test.engine.add("c1", "CHANGE", delay_ms)
    await test.clock.advance(5000)
    assert test.ran == [(1000, "c1", "CHANGE")]
