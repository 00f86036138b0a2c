"""The pace of runs side by side: they wait while the kit serves requests late."""

from __future__ import annotations

import asyncio
import time

import pytest

from distro_conformance.walks import pace
from distro_conformance.walks.pace import Pace

pytestmark = pytest.mark.wire
SOON_S = 10.0


async def busy_for(seconds: float) -> None:
    """Many short turns of the event loop: none is late, and a request takes several of them."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(0.05)  # noqa: ASYNC251 - the loop is to be busy
        await asyncio.sleep(0)


async def waited_s(at: Pace) -> float:
    began_s = time.monotonic()
    await at.until_in_time(began_s + SOON_S)
    return time.monotonic() - began_s


def test_runs_wait_until_the_kit_answers_itself_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "IN_TIME_S", 0.05)

    async def runs() -> tuple[float, bool]:
        at = Pace()
        async with at.measured():
            busy = asyncio.create_task(busy_for(2.0))
            await asyncio.sleep(1.0)
            waited = await waited_s(at)
            return waited, busy.done()

    waited, is_calm = asyncio.run(runs())
    assert is_calm
    assert 0.1 < waited < SOON_S


def test_runs_go_on_at_once_where_nothing_is_measured() -> None:
    assert asyncio.run(waited_s(Pace())) < 1.0


def test_a_kit_that_is_never_in_time_does_not_hold_a_run_beyond_its_end() -> None:
    async def run() -> float:
        at = Pace()
        at._in_time.clear()
        began_s = time.monotonic()
        await at.until_in_time(began_s + 0.2)
        return time.monotonic() - began_s

    assert asyncio.run(run()) < 2.0
