"""Virtual time moves only on request and only when nothing is left to do; the system clock promises the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from distro_impl import NotSettledError, SystemClock, VirtualClock, WorkFailedError
from distro_impl.clocks import clock as clock_module
from distro_impl.clocks.clock import Waiting, side_by_side
from distro_impl.clocks.lifetime import Lifetime
from distro_impl.options import AuthOptions, User
from distro_impl.security.callers import Right
from distro_impl.security.tokens import AccessDeniedError, TokenManager


def recorder(clock: VirtualClock, into: list[tuple[str, int]]) -> Callable[[str], Callable[[], None]]:
    start_ms = clock.now_ms()
    return lambda name: lambda: into.append((name, clock.now_ms() - start_ms))


async def test_timers_fire_in_the_order_due_then_set() -> None:
    clock, fired = VirtualClock(), []
    note = recorder(clock, fired)
    start_ms = clock.now_ms()
    clock.call_at(start_ms + 20, note("late"), "late")
    clock.call_at(start_ms + 10, note("first of two"), "a")
    clock.call_at(start_ms + 10, note("second of two"), "b")
    await clock.advance(15)
    assert fired == [("first of two", 10), ("second of two", 10)]
    assert clock.now_ms() == start_ms + 15
    await clock.advance(5)
    assert fired[-1] == ("late", 20)


async def test_a_timer_sees_the_work_of_the_one_before_it_done() -> None:
    clock, seen = VirtualClock(), []

    async def slow() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        seen.append("work")

    clock.call_at(clock.now_ms() + 1, slow, "slow")
    clock.call_at(clock.now_ms() + 1, lambda: seen.append("next timer"), "next")
    await clock.advance(1)
    assert seen == ["work", "next timer"]


async def test_a_repeating_timer_keeps_its_phase_until_cancelled() -> None:
    clock, fired = VirtualClock(), []
    timer = clock.every(2000, recorder(clock, fired)("report"), first_ms=clock.now_ms() + 5000, name="report")
    await clock.advance(9500)
    assert [at_ms for _, at_ms in fired] == [5000, 7000, 9000]
    timer.cancel()
    await clock.advance(9500)
    assert len(fired) == 3


async def test_after_a_jump_what_fell_due_fires_late_and_in_its_order() -> None:
    clock, fired = VirtualClock(), []
    note = recorder(clock, fired)
    clock.every(2000, note("report"), first_ms=clock.now_ms() + 2000, name="report")
    clock.call_at(clock.now_ms() + 3000, note("once"), "once")
    clock.jump(5000)
    assert fired == []
    await clock.advance(1500)
    assert fired == [("report", 5000), ("once", 5000), ("report", 5000), ("report", 6000)]


async def test_settle_waits_for_work_and_for_the_work_that_it_starts() -> None:
    clock, done = VirtualClock(), []

    async def second() -> None:
        await asyncio.sleep(0.01)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0.01)
        clock.spawn(second(), "second")
        done.append("first")

    clock.spawn(first(), "first")
    await clock.settle()
    assert done == ["first", "second"]


async def test_a_wait_for_an_external_event_does_not_count_until_the_event() -> None:
    clock, done = VirtualClock(), []
    reply = Waiting[str](clock)

    async def held_back() -> None:
        answer = await clock.wait_for(reply.taken(), 5_000)
        await asyncio.sleep(0.01)
        done.append(answer)

    clock.spawn(held_back(), "held back")
    await clock.settle()
    assert not done
    reply.give("here")
    reply.give("too late")
    await clock.settle()
    assert done == ["here"]
    assert await reply.taken() == "here"


async def test_a_counter_is_work_while_it_is_set() -> None:
    clock = VirtualClock()
    messages = clock.counted("messages to c1")
    messages.set(True)
    with pytest.raises(NotSettledError, match="messages to c1"):
        await clock.settle(0.02)
    asyncio.get_running_loop().call_later(0.02, messages.set, False)
    await clock.settle()


async def test_side_by_side_one_that_waits_does_not_hide_one_that_works() -> None:
    clock, results = VirtualClock(), []
    reply = Waiting[int](clock)

    async def works() -> int:
        await asyncio.sleep(0.02)
        results.append("worked")
        return 2

    async def both() -> None:
        results.append(await side_by_side(clock, [reply.taken(), works()], "both"))

    clock.spawn(both(), "work")
    await clock.settle()
    assert results == ["worked"]
    reply.give(1)
    await clock.settle()
    assert results == ["worked", [1, 2]]


async def test_side_by_side_the_first_error_is_raised() -> None:
    clock = VirtualClock()

    async def fails() -> None:
        raise KeyError("no such member")

    clock.spawn(side_by_side(clock, [fails(), clock.wait_for(Waiting[None](clock).taken(), 10)], "both"), "work")
    with pytest.raises(WorkFailedError, match="no such member"):
        await clock.advance(20)


async def test_a_part_of_work_that_outlives_it_leaves_nothing_busy() -> None:
    """gRPC runs interceptors in tasks of its own; a cancelled one may end after the request that it belongs to."""
    clock, parts = VirtualClock(), []

    async def part() -> None:
        with clock.parked():
            await asyncio.Event().wait()

    async def work() -> None:
        parts.append(asyncio.create_task(part()))
        await asyncio.sleep(0)

    clock.spawn(work(), "work")
    await asyncio.sleep(0.01)
    parts[0].cancel()
    await clock.settle(0.1)


async def test_a_timeout_ends_even_what_is_parked_and_is_work_itself() -> None:
    clock, outcome = VirtualClock(), []

    async def mute() -> None:
        with clock.parked():
            await asyncio.Event().wait()

    async def caller() -> None:
        try:
            await clock.wait_for(mute(), 3000)
        except TimeoutError:
            await asyncio.sleep(0.01)
            outcome.append(clock.now_ms())

    clock.spawn(caller(), "caller")
    due_ms = clock.now_ms() + 3000
    await clock.advance(2999)
    assert not outcome
    await clock.advance(1)
    assert outcome == [due_ms]


async def test_a_cancelled_waiter_is_cancelled_and_not_timed_out() -> None:
    clock = VirtualClock()
    task = clock.spawn(clock.wait_for(asyncio.Event().wait(), 3000), "waiter")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await clock.advance(5000)  # its timer is gone as well


async def test_settle_gives_up_in_real_time_and_names_what_is_busy() -> None:
    clock = VirtualClock()
    task = clock.spawn(asyncio.Event().wait(), "CHANGE of c1 to 10.0.0.2:8848")
    with pytest.raises(NotSettledError, match=r"still busy after 0.05 s of real time: CHANGE of c1 to 10.0.0.2:8848"):
        await clock.settle(0.05)
    task.cancel()


async def test_settle_raises_the_error_of_the_work() -> None:
    clock = VirtualClock()

    async def defect() -> None:
        raise KeyError("no such peer")

    clock.spawn(defect(), "VERIFY of c1")
    with pytest.raises(WorkFailedError, match="VERIFY of c1 failed: KeyError") as raised:
        await clock.settle()
    assert isinstance(raised.value.__cause__, KeyError)
    await clock.settle()  # raised once


async def test_unique_stamps_differ_while_time_stands_still() -> None:
    clock = VirtualClock()
    assert len({clock.unique_ms() for _ in range(5)}) == 5
    await clock.advance(1000)
    assert clock.unique_ms() == clock.now_ms()


async def test_the_system_clock_keeps_time() -> None:
    clock = SystemClock()
    start_ms, fired = clock.now_ms(), asyncio.Event()

    async def fire() -> None:
        fired.set()

    clock.call_at(start_ms + 20, fire, "timer")
    await asyncio.wait_for(fired.wait(), 5)
    assert clock.now_ms() - start_ms >= 19
    with pytest.raises(TimeoutError):
        await clock.wait_for(asyncio.Event().wait(), 10)


async def test_a_suspended_machine_has_aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the clock of a machine that slept for a day: tokens have expired, and a periodic timer fires once."""
    slept_s, real = 0.0, clock_module.elapsed_s
    monkeypatch.setattr(clock_module, "elapsed_s", lambda: real() + slept_s)
    clock, fired_ms = SystemClock(), []
    tokens = TokenManager(AuthOptions(secret=b"x" * 32, users={"nacos": User("nacos", "x")}), clock)
    token = tokens.login("nacos", "x")
    tokens.check(token, Right.READ, None)
    start_ms = clock.now_ms()
    timer = clock.every(50, lambda: fired_ms.append(clock.now_ms()), first_ms=start_ms + 50, name="period")
    slept_s = 86_400.0
    assert clock.now_ms() - start_ms >= 86_400_000
    with pytest.raises(AccessDeniedError, match="token expired"):
        tokens.check(token, Right.READ, None)
    await asyncio.sleep(0.3)
    timer.cancel()
    assert 1 <= len(fired_ms) < 20


async def test_the_system_clock_counts_suspensions_where_the_system_does() -> None:
    counted = getattr(time, "CLOCK_BOOTTIME", None)
    expected = time.monotonic() if counted is None else time.clock_gettime(counted)
    assert abs(clock_module.elapsed_s() - expected) < 5


@pytest.mark.parametrize("make_clock", [VirtualClock, SystemClock])
async def test_nothing_outlives_a_lifetime(make_clock: Callable[[], VirtualClock | SystemClock]) -> None:
    clock = make_clock()
    lifetime, seen = Lifetime(clock), []

    def note() -> Awaitable[None] | None:
        seen.append("timer")
        return None

    lifetime.every(10, note, first_ms=clock.now_ms(), name="timer")
    task = lifetime.spawn(asyncio.Event().wait(), "work")
    await lifetime.end()
    assert task.cancelled()
    if isinstance(clock, VirtualClock):
        await clock.advance(1000)
    else:
        await asyncio.sleep(0.03)
    assert not seen
