"""The pace of runs side by side: they wait while the kit serves requests late."""

from __future__ import annotations

import asyncio
import time

import pytest

from distro_conformance.node.peer import PlayedPeer
from distro_conformance.targets.ports import CLUSTER_OFFSET, free_base_ports, with_offset
from distro_conformance.walks import pace
from distro_conformance.walks.pace import Pace

pytestmark = pytest.mark.wire
SOON_S = 10.0


async def waited_s(at: Pace) -> float:
    began_s = time.monotonic()
    await at.until_in_time(began_s + SOON_S)
    return time.monotonic() - began_s


async def busy_for(seconds: float) -> None:
    """Many short turns of the event loop: none is late, and a request takes several of them."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(0.05)  # noqa: ASYNC251 - the loop is to be busy
        await asyncio.sleep(0)


async def waits_beside_work(seconds: float, *, is_stopped: bool = False) -> tuple[float, bool]:
    """How long a run waits at a member while the kit is busy, and whether the work is done then."""
    (port,) = free_base_ports()
    peer, at = PlayedPeer(port, lambda: 0), Pace()
    await peer.start()
    if is_stopped:
        await peer.stop()
    try:
        async with at.measured(lambda: [with_offset(peer.address, CLUSTER_OFFSET)]):
            work = asyncio.create_task(busy_for(seconds))
            await asyncio.sleep(seconds / 2)
            return await waited_s(at), work.done()
    finally:
        await peer.close()


def test_runs_wait_until_a_played_member_answers_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "IN_TIME_S", 0.05)
    waited, is_done = asyncio.run(waits_beside_work(2.0))
    assert is_done
    assert 0.1 < waited < SOON_S


def test_a_member_that_is_stopped_keeps_no_run_waiting() -> None:
    waited, _ = asyncio.run(waits_beside_work(0.0, is_stopped=True))
    assert waited < 1.0


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
