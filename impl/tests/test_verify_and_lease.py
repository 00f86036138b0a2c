"""Verify, what its failure causes, revisions by release, leases (docs/protocol #receive-change, #verify-round and
#lease-copies)."""

from __future__ import annotations

import pytest
from impl_lab import LOST_BUT_ACKNOWLEDGED, NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab

from distro_conformance.node_mutants import with_mutant
from distro_impl import Profile

pytestmark = pytest.mark.wire


async def test_each_owned_client_is_verified_on_each_peer_every_five_seconds(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(20_000)
    verifies = [sent for sent in run.links.sent if sent.operation == "VERIFY"]
    assert {sent.sender for sent in verifies} == {run.cluster.addresses[0]}
    assert [sent.at_ms - run.start_ms for sent in verifies] == [5000, 5000, 10000, 10000, 15000, 15000, 20000, 20000]


async def test_a_lost_change_is_found_by_verify_and_sent_again_to_that_peer_alone(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(1500)
    run.link(0, 1).answers = {"CHANGE": LOST_BUT_ACKNOWLEDGED}
    await client.register("web", 81)
    await run.clock.advance(1500)
    run.link(0, 1).answers = {}
    assert run.last(1, client.id).revision == 1
    run.links.sent.clear()
    await run.clock.advance(2000)
    assert run.last(1, client.id).revision == 2
    assert run.last(1, client.id).at_ms == run.start_ms + 5000  # at once
    assert run.links.operations(client.id, peer=run.cluster.addresses[1]) == ["VERIFY", "CHANGE"]
    assert run.links.operations(client.id, peer=run.cluster.addresses[2]) == ["VERIFY"]


@pytest.mark.parametrize(
    ("answer", "causes_a_change"),
    [
        (("DistroDataResponse", {"resultCode": 500, "errorCode": 500}), True),
        (("DistroDataResponse", {"resultCode": 200, "errorCode": 500}), False),
        (("ErrorResponse", {"resultCode": 500, "errorCode": 301}), False),
        (None, False),
    ],
    ids=["typed 500", "200/500", "ErrorResponse", "no answer"],
)
async def test_only_a_typed_failure_of_a_verify_causes_a_change(
    lab: Lab, answer: tuple[str, dict[str, int]] | None, causes_a_change: bool
) -> None:
    """docs/real-servers.md#what-the-sender-does; D10."""
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(4000)
    run.links.sent.clear()
    if answer is None:
        run.link(0, 1).unanswered = {"VERIFY"}
    else:
        run.link(0, 1).answers = {"VERIFY": answer}
    await run.clock.advance(5900)
    assert run.links.operations(client.id) == (["VERIFY", "CHANGE"] if causes_a_change else ["VERIFY"])


@pytest.mark.parametrize("profile", [NACOS_2_0_4, with_mutant(STRICT, "B02")], ids=["nacos-2.0.4", "B02"])
async def test_b02_a_lost_change_stays_lost_where_verify_only_asks_for_existence(lab: Lab, profile: Profile) -> None:
    run = await lab.cluster(profile)
    client = await lab.naming(run.cluster.nodes[0])
    reader = await lab.naming(run.cluster.nodes[1])
    await client.register("web", 80)
    await run.clock.advance(2500)
    run.link(0, 1).answers = {"CHANGE": LOST_BUT_ACKNOWLEDGED}
    await client.register("web", 81)
    await run.clock.advance(2500)
    run.link(0, 1).answers = {}
    await run.clock.advance(60_000)
    assert await reader.ports("web") == [80]


async def test_a_subscriber_exists_on_every_peer_after_one_verify_round(lab: Lab) -> None:
    """Verified with revision 0, unknown there, pushed empty (docs/protocol #sync-announce)."""
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await run.clock.advance(5000)
    assert run.kinds(1, client.id) == run.kinds(2, client.id) == ["replica_applied"]


@pytest.mark.parametrize(
    ("profile", "accepted"),
    [(NACOS_2_0_4, {1, 2, 9, 0}), (NACOS_2_2_4, {1, 0}), (STRICT, {2})],
    ids=lambda value: getattr(value, "name", None),
)
async def test_which_revisions_pass_after_a_second_change(lab: Lab, profile: Profile, accepted: set[int]) -> None:
    """2.2.4 keeps the revision with which the copy was created (B10), and takes 0 for any (D11)."""
    run = await lab.cluster(profile, size=2)
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await peer.change("c1", 2, web=81)
    assert {revision for revision in (0, 1, 2, 9) if await peer.verify("c1", revision)} == accepted
    assert not await peer.verify("unknown", 0)


@pytest.mark.parametrize("profile", [NACOS_2_0_4, NACOS_2_2_4, STRICT], ids=lambda profile: profile.name)
async def test_the_revision_of_a_client_that_never_published_is_zero_everywhere(lab: Lab, profile: Profile) -> None:
    run = await lab.cluster(profile, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 0)
    assert await peer.verify("c1", 0)


@pytest.mark.parametrize("renewed", [True, False])
async def test_a_copy_expires_180_to_185_s_after_the_last_successful_verify(lab: Lab, renewed: bool) -> None:
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(6000 if renewed else 1500)
    last_renewal_ms = run.start_ms + (5000 if renewed else 1000)
    await run.cluster.crash(0)
    await run.clock.advance(last_renewal_ms + 180_000 - run.clock.now_ms())
    assert run.last(1, client.id).kind == "replica_applied"  # strictly greater
    await run.clock.advance(5000)
    event = run.last(1, client.id)
    assert (event.kind, event.reason) == ("replica_removed", "lease")
    assert 180_000 < event.at_ms - last_renewal_ms <= 185_000
    assert await (await lab.naming(run.cluster.nodes[1])).ports("web") == []


@pytest.mark.parametrize(("profile", "survives"), [(NACOS_2_2_4, False), (STRICT, True)])
async def test_only_in_strict_a_change_renews_the_lease(lab: Lab, profile: Profile, survives: bool) -> None:
    run = await lab.cluster(profile, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    for _ in range(100):
        await peer.change("c1", 1, web=80)
        await run.clock.advance(2000)
    assert ("replica_removed" not in run.kinds(0, "c1")) is survives


@pytest.mark.parametrize(
    ("profile", "pause_ms", "survives"),
    [(NACOS_2_2_4, 185_000, False), (STRICT, 185_000, True), (STRICT, 10_000, False)],
    ids=["nacos-2.2.4", "strict", "strict, no turn missed"],
)
async def test_b23_after_a_pause_no_lease_ends_in_strict(
    lab: Lab, profile: Profile, pause_ms: int, survives: bool
) -> None:
    """The machine is suspended: the cleaner runs before the verifies that its peers sent meanwhile."""
    run = await lab.cluster(profile, size=1)
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await run.clock.advance(185_000 - pause_ms)
    run.clock.jump(pause_ms)
    await run.clock.advance(0)
    assert await peer.verify("c1", 1) is survives


async def test_b23_a_lease_that_began_again_ends_as_any_other(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await peer.distro("DELETE", "c2")
    await run.clock.advance(0)
    run.clock.jump(185_000)
    await run.clock.advance(180_000)
    assert run.kinds(0, "c1") == ["replica_applied"]
    assert not (await peer.change("c2", 1, api=90)).succeeded
    await run.clock.advance(5000)
    assert (run.last(0, "c1").kind, run.last(0, "c1").reason) == ("replica_removed", "lease")
    assert (await peer.change("c2", 1, api=90)).succeeded


async def test_a_native_client_never_expires(lab: Lab) -> None:
    run = await lab.cluster(size=1)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(400_000)
    assert await client.ports("web") == [80]


async def test_copies_are_neither_verified_nor_re_broadcast(lab: Lab) -> None:
    run = await lab.cluster()
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await run.clock.advance(20_000)
    assert run.links.operations("c1") == []


async def test_b07_copies_created_as_native_are_spread_and_stay_for_ever(lab: Lab) -> None:
    run = await lab.cluster(with_mutant(STRICT, "B07"))
    peer = await lab.member(run.cluster.nodes[0])
    await peer.change("c1", 1, web=80)
    await run.clock.advance(20_000)
    assert {"CHANGE", "VERIFY"} <= set(run.links.operations("c1", sender=run.cluster.addresses[0]))
    await run.clock.advance(200_000)
    assert await (await lab.naming(run.cluster.nodes[0])).ports("web") == [80]


@pytest.mark.parametrize(("profile", "overwritten"), [(NACOS_2_2_4, True), (STRICT, False)])
async def test_b01_a_peer_overwrites_and_deletes_a_native_client_but_not_in_strict(
    lab: Lab, profile: Profile, overwritten: bool
) -> None:
    run = await lab.cluster(profile, size=2)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(1500)
    run.links.sent.clear()
    peer = await lab.member(run.cluster.nodes[0])
    assert (await peer.change(client.id, 9, api=90)).succeeded is overwritten
    await run.clock.advance(1500)
    assert await client.ports("web") == ([] if overwritten else [80])
    assert run.links.operations(client.id) == (["CHANGE"] if overwritten else [])  # the owner spreads what it got
    assert (await peer.distro("DELETE", client.id)).succeeded is overwritten
    assert (run.last(0, client.id).kind == "replica_removed") is overwritten
