"""A node with more clients than a peer takes at once: nothing is lost, queues are bounded, and a number says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from impl_lab import STRICT, Lab

from distro_impl import VirtualClock
from distro_impl.clocks.clock import Waiting
from distro_impl.distro.record import DistroRecord
from distro_impl.tasks.execute_engine import IN_FLIGHT_MAX, ExecuteTaskEngine

OVER_GRPC = True
MANY = 1_500
"""gRPC's own limit is a thousand requests that wait; from there on it refuses at random."""


@pytest.mark.slow
@pytest.mark.wire
async def test_more_clients_than_a_server_takes_at_once_are_synced_and_verified_without_a_failure(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    owner, peer = run.cluster.nodes
    for number in range(MANY):
        owner.parts.naming.clients.client_connected(f"{number}_10.0.0.1_80")
    await run.clock.advance(5_200)  # the peer has none yet: the verifies fail, and each is sent whole
    assert owner.record == DistroRecord(sync_successes=MANY, verifies=MANY, verify_failures=MANY, load_ms=0)
    await run.clock.advance(5_000)
    assert owner.record == DistroRecord(sync_successes=MANY, verifies=2 * MANY, verify_failures=MANY, load_ms=0)
    assert len(list(peer.parts.naming.clients)) == MANY


@pytest.mark.wire
async def test_a_peer_that_does_not_answer_has_no_more_to_do_than_it_takes_at_once(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    owner = run.cluster.nodes[0]
    for number in range(MANY):
        owner.parts.naming.clients.client_connected(f"{number}_10.0.0.1_80")
    run.link(0, 1).unanswered.add("VERIFY")
    await run.clock.advance(5_000)
    asked = [sent for sent in run.links.sent if sent.operation == "VERIFY"]
    assert len(asked) == IN_FLIGHT_MAX < MANY


@pytest.mark.wire
async def test_a_round_that_takes_longer_than_its_period_is_waited_for(lab: Lab) -> None:
    slow = replace(STRICT, verify_timeout_ms=8_000)
    run = await lab.cluster(slow, size=2)
    owner = run.cluster.nodes[0]
    client = await lab.naming(owner)
    await client.register("web", 80)
    await run.clock.advance(4_000)
    run.link(0, 1).unanswered.add("VERIFY")
    await run.clock.advance(26_000)  # at 5 s, 15 s and 25 s
    assert run.links.operations(client.id).count("VERIFY") == 3
    assert owner.record.verify_rounds_late == 3


async def test_a_worker_starts_its_tasks_in_order_and_not_too_many_at_once() -> None:
    clock, started = VirtualClock(), list[int]()
    engine = ExecuteTaskEngine(clock, in_flight_max=3)
    answers = [Waiting[None](clock) for _ in range(7)]

    async def task(number: int) -> None:
        started.append(number)
        await answers[number].taken()

    for number in range(7):
        engine.add_task("sync to b", f"task {number}", lambda number=number: task(number))  # type: ignore[misc]
    await clock.settle()
    assert (started, engine.waiting) == ([0, 1, 2], 4)
    answers[1].give(None)
    await clock.settle()
    assert started == [0, 1, 2, 3]
    for answer in answers:
        answer.give(None)
    await clock.settle()
    assert (started, engine.is_busy("sync to b"), engine.waiting) == ([*range(7)], False, 0)


async def test_work_waiting_for_a_worker_ends_with_the_node() -> None:
    clock = VirtualClock()
    engine = ExecuteTaskEngine(clock, in_flight_max=1)

    async def never() -> None:
        await asyncio.Event().wait()

    engine.add_task("sync to b", "first", never)
    await asyncio.sleep(0)
    engine.add_task("sync to b", "second", never)
    (first,) = (task for task in asyncio.all_tasks() if task.get_name() == "first")
    first.cancel()
    await clock.settle()
    assert engine.waiting == 0
