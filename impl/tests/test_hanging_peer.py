"""A peer that hangs, and a wire that swallows: how a node handles a connection without answers."""

from __future__ import annotations

from typing import Any

import pytest
from impl_lab import Lab
from swallower import a_peer_behind_a_swallower, until

from distro_impl.membership.member import MemberState
from distro_impl.remote import cluster_client
from distro_impl.remote.peer_connection import PeerUnreachableError

pytestmark = pytest.mark.wire
OVER_GRPC = True

HEALTH_CHECK: dict[str, Any] = {"module": "internal"}


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in a hundredth of the time."""
    monkeypatch.setattr(cluster_client, "KEEP_ALIVE_MS", 100)
    monkeypatch.setattr(cluster_client, "HEALTH_TIMEOUT_MS", 100)
    monkeypatch.setattr(cluster_client, "CONNECT_TIMEOUT_MS", 300)


@pytest.mark.usefixtures("_impatient")
async def test_a_connection_that_is_swallowed_is_given_up_without_a_request_and_opened_again() -> None:
    async with a_peer_behind_a_swallower() as (swallower, client):
        assert (await client.request("HealthCheckRequest", HEALTH_CHECK, 5_000)).succeeded
        first = client.connection
        assert first is not None
        swallower.swallows = True
        await until(lambda: not first.is_usable)
        swallower.swallows = False
        await until(lambda: client.connection is not None)
        accepted = swallower.accepted
        assert (await client.request("HealthCheckRequest", HEALTH_CHECK, 5_000)).succeeded
        assert swallower.accepted == accepted  # it was there already


@pytest.mark.usefixtures("_impatient")
async def test_a_time_out_has_the_connection_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_client, "KEEP_ALIVE_MS", 600_000)
    async with a_peer_behind_a_swallower() as (swallower, client):
        assert (await client.request("HealthCheckRequest", HEALTH_CHECK, 5_000)).succeeded
        first = client.connection
        assert first is not None
        swallower.swallows = True
        with pytest.raises(TimeoutError):
            await client.request("HealthCheckRequest", HEALTH_CHECK, 100)
        await until(lambda: not first.is_usable)


async def test_a_member_that_hangs_does_not_stay_up_and_is_back_when_it_answers(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    node, peer = run.cluster.nodes
    await run.clock.advance(10_000)

    def state() -> MemberState:
        return node.members.others[peer.address].state

    assert state() is MemberState.UP
    run.link(0, 1).mute = True
    await run.clock.advance(10_000)
    assert state() is MemberState.UP  # time-outs alone change nothing
    run.link(1, 0).cut = True  # otherwise its own reports keep it up
    await run.clock.advance(40_000)
    assert state() is MemberState.DOWN
    run.link(0, 1).mute = run.link(1, 0).cut = False
    await run.clock.advance(15_000)
    assert state() is MemberState.UP


async def test_a_lost_connection_is_opened_again_after_delays_that_grow(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    await run.clock.advance(6_000)
    run.links.set_ups.clear()
    began: list[int] = []
    link = run.link(0, 1)
    link.check_connect = lambda: began.append(run.clock.now_ms())  # type: ignore[method-assign]
    await run.cluster.crash(1)
    await run.clock.settle()
    lost_ms = run.clock.now_ms()
    await run.clock.advance(1_000)
    assert [at_ms - lost_ms for at_ms in began] == [0, 100, 300, 600, 1_000]
    await run.clock.advance(300_000)
    assert began[-1] - began[-2] <= 5_000


async def test_a_connection_that_is_used_is_not_asked(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    asked: list[str] = []
    link, carry = run.link(0, 1), run.link(0, 1).carry

    async def note(request: Any, forward: Any) -> Any:
        asked.append(request.metadata.type)
        return await carry(request, forward)

    await run.clock.advance(10_000)
    link.carry = note  # type: ignore[method-assign]
    await run.clock.advance(60_000)
    assert set(asked) == {"MemberReportRequest"}


async def test_a_removed_member_is_not_looked_after(lab: Lab) -> None:
    run = await lab.cluster(size=2)
    node, peer = run.cluster.nodes
    await run.clock.advance(6_000)
    client = node.parts.membership.peers._clients[peer.address]
    node.change_members([node.address])
    await run.clock.advance(60_000)
    assert client.is_closed
    with pytest.raises(PeerUnreachableError, match="no member any more"):
        await client.request("HealthCheckRequest", HEALTH_CHECK, 1_000)
