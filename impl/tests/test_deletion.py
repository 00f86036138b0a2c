"""Deleted clients stay deleted in strict (B26, B27). A release accepts them again."""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab, sync_data

from distro_impl import Profile
from distro_impl.distro.transport_agent import encode_content

pytestmark = pytest.mark.wire

COMES_BACK = pytest.mark.parametrize(
    ("profile", "comes_back"),
    [(NACOS_2_0_4, True), (NACOS_2_2_4, True), (STRICT, False)],
    ids=["nacos-2.0.4", "nacos-2.2.4", "strict"],
)


@COMES_BACK
@pytest.mark.parametrize("known", [True, False])
async def test_b26_a_change_after_the_delete(lab: Lab, profile: Profile, comes_back: bool, known: bool) -> None:
    run = await lab.cluster(profile, size=1)
    peer, reader = await lab.member(run.cluster.nodes[0]), await lab.naming(run.cluster.nodes[0])
    if known:
        await peer.change("c1", 1, web=80)
    assert (await peer.distro("DELETE", "c1")).succeeded
    late = await peer.change("c1", 1, web=80)
    assert late.type == "DistroDataResponse"
    assert late.succeeded is comes_back  # a success means: applied
    assert await reader.ports("web") == ([80] if comes_back else [])
    assert await peer.verify("c1", 1) is comes_back


@COMES_BACK
async def test_b27_a_delete_before_the_snapshot_that_still_has_it(lab: Lab, profile: Profile, comes_back: bool) -> None:
    run = await lab.cluster(profile, size=2)
    await run.cluster.crash(1)
    run.link(1, 0).cut = True
    await run.cluster.restart(1)
    peer = await lab.member(run.cluster.nodes[1])
    await peer.distro("DELETE", "c1")
    stale = encode_content({"clientSyncDataList": [sync_data("c1", 1, web=80), sync_data("c2", 1, api=90)]})
    answer = {"resultCode": 200, "errorCode": 0, "distroData": {"content": stale}}
    run.link(1, 0).cut, run.link(1, 0).answers = False, {"SNAPSHOT": ("DistroDataResponse", answer)}
    await run.clock.advance(profile.load_retry_delay_ms)
    reader = await lab.naming(run.cluster.nodes[1])
    assert await reader.ports("web") == ([80] if comes_back else [])
    assert await reader.ports("api") == [90]  # the rest is taken


async def test_the_owner_does_not_take_its_own_echo(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client, peer = await lab.naming(run.cluster.nodes[0]), await lab.member(run.cluster.nodes[0])
    await client.register("web", 80)
    await lab.leave(run, client)
    assert not (await peer.change(client.id, 1, web=80)).succeeded


async def test_it_is_forgotten_180_to_185_s_after_the_last_delete(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    for _ in range(2):
        await run.clock.advance(1000)
        await peer.distro("DELETE", "c1")
    await run.clock.advance(180_000)
    assert not (await peer.change("c1", 1, web=80)).succeeded
    await run.clock.advance(5000)
    assert (await peer.change("c1", 1, web=80)).succeeded


async def test_a_lease_that_ended_is_no_deletion(lab: Lab) -> None:
    """Its owner may be alive behind a cut link, and its next verify brings the client back."""
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await run.clock.advance(186_000)
    assert run.last(0, "c1").reason == "lease"
    assert (await peer.change("c1", 1, web=80)).succeeded
