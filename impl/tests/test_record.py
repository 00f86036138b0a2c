"""The counters of Distro: requests, answers, the duration of the load (docs/protocol #log-lines)."""

from __future__ import annotations

import pytest
from impl_lab import Lab

from distro_impl.distro.record import DistroRecord

pytestmark = pytest.mark.wire


async def test_each_attempt_is_counted_as_what_became_of_it(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    owner = run.cluster.nodes[0]
    client = await lab.naming(owner)
    await client.register("web", 80)
    await run.clock.advance(1100)
    assert owner.record == DistroRecord(sync_successes=1, load_ms=0)
    run.link(0, 1).answers["CHANGE"] = ("DistroDataResponse", {"resultCode": 500, "errorCode": 500})
    await client.register("web", 81)
    await run.clock.advance(1100 + 3000)  # a failure and that of the first retry
    assert owner.record.sync_failures == 2
    del run.link(0, 1).answers["CHANGE"]
    await run.clock.advance(3100)
    assert (owner.record.sync_successes, owner.record.sync_failures) == (2, 2)


async def test_a_verify_that_fails_or_goes_unanswered_is_counted(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    owner, peer = run.cluster.nodes
    await lab.naming(owner)
    await run.clock.advance(5100)  # no peer has the client yet, so its first verify fails
    assert (owner.record.verify_failures, peer.record.verify_failures) == (1, 0)
    run.link(0, 1).unanswered.add("VERIFY")
    await run.clock.advance(5000 + 3000)
    assert owner.record.verify_failures == 2


async def test_the_load_is_timed_from_the_start_of_the_node(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    await run.cluster.crash(1)
    run.link(1, 0).mute = True
    node = await run.cluster.restart(1)
    await run.clock.advance(1000)
    assert node.record.load_ms is None
    run.link(1, 0).mute = False
    await run.clock.advance(65_000)
    assert node.record.load_ms is not None
    assert 30_000 <= node.record.load_ms <= 65_000
