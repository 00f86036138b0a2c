"""How a change travels: delay, merge, request, retry (docs/protocol #sync-announce to #sync-only-up,
#releases-timeline)."""

from __future__ import annotations

import pytest
from impl_lab import NACOS_2_0_4, NACOS_2_2_4, STRICT, Lab

from distro_conformance.node_mutants import with_mutant
from distro_impl import Profile

pytestmark = pytest.mark.wire
OVER_GRPC = True


@pytest.mark.parametrize(("profile", "delay_ms"), [(NACOS_2_0_4, 2000), (NACOS_2_2_4, 1000), (STRICT, 1000)])
async def test_a_change_is_on_every_peer_after_the_delay_and_not_before(
    lab: Lab, profile: Profile, delay_ms: int
) -> None:
    run = await lab.cluster(profile)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(delay_ms - 1)
    assert run.links.operations(client.id) == []
    await run.clock.advance(1)
    for node in run.cluster.nodes[1:]:
        assert await (await lab.naming(node)).ports("web") == [80]
    event = run.last(1, client.id)
    assert (event.kind, event.native, event.reason) == ("replica_applied", False, "CHANGE")
    assert event.at_ms == run.start_ms + delay_ms
    assert event.revision == (None if profile is NACOS_2_0_4 else 1)


async def test_six_changes_are_one_message_with_the_last_state(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    for port in range(80, 86):
        await client.register("web", port)
        await run.clock.advance(150)
    await run.clock.advance(1000)
    assert run.links.operations(client.id) == ["CHANGE", "CHANGE"]  # one to each peer
    assert await (await lab.naming(run.cluster.nodes[2])).ports("web") == [85]


async def test_a_service_that_is_no_longer_published_disappears_from_peers(lab: Lab) -> None:
    run = await lab.cluster()
    client, reader = await lab.naming(run.cluster.nodes[0]), await lab.naming(run.cluster.nodes[1])
    await client.register("web", 80)
    await client.register("api", 90)
    await run.clock.advance(1100)
    await client.deregister("web")
    await run.clock.advance(1100)
    assert (await reader.ports("web"), await reader.ports("api")) == ([], [90])


async def test_a_closed_connection_is_deleted_on_every_peer(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(1500)
    await lab.leave(run, client)
    await run.clock.advance(1100)
    assert run.links.operations(client.id) == ["CHANGE", "CHANGE", "DELETE", "DELETE"]
    for index in (1, 2):
        assert (run.last(index, client.id).kind, run.last(index, client.id).reason) == ("replica_removed", "DELETE")


async def test_a_client_that_comes_and_goes_within_the_delay_is_only_deleted(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await lab.leave(run, client)
    await run.clock.advance(5000)
    assert run.links.operations(client.id) == ["DELETE", "DELETE"]


async def test_unavailable_is_retried_after_the_retry_delay_and_delays_no_other_target(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).cut = True
    await client.register("web", 80)
    await run.clock.advance(1500)
    assert run.kinds(1, client.id) == []
    assert run.kinds(2, client.id) == ["replica_applied"]
    run.link(0, 1).cut = False
    run.links.set_ups.clear()
    await run.clock.advance(2499)  # failed at 1000, due at 4000
    assert run.kinds(1, client.id) == []
    await run.clock.advance(1)
    assert run.last(1, client.id).at_ms == run.start_ms + 4000
    assert run.links.set_ups == [(run.cluster.addresses[0], run.cluster.addresses[1])]  # over a new connection


@pytest.mark.parametrize(("profile", "again_ms"), [(STRICT, 7000), (NACOS_2_0_4, 10000)])
async def test_an_unanswered_change_is_retried_after_time_out_and_retry_delay(
    lab: Lab, profile: Profile, again_ms: int
) -> None:
    """6 s after the first try, 8 s on 2.0.4 (docs/real-servers.md#what-the-sender-does)."""
    run = await lab.cluster(profile)
    client = await lab.naming(run.cluster.nodes[0])
    link = run.link(0, 1)
    link.unanswered = {"CHANGE", "VERIFY"}
    await client.register("web", 80)
    await run.clock.advance(again_ms - 1)
    link.unanswered = set()
    assert run.links.operations(client.id, peer=run.cluster.addresses[1]).count("CHANGE") == 1
    await run.clock.advance(1)
    assert run.last(1, client.id).at_ms == run.start_ms + again_ms


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        (("DistroDataResponse", {"resultCode": 500, "errorCode": 500}), 3),
        (("ErrorResponse", {"resultCode": 500, "errorCode": 300}), 3),
        (("DistroDataResponse", {"resultCode": 200, "errorCode": 500}), 1),
    ],
    ids=["typed 500", "ErrorResponse", "200/500"],
)
async def test_which_answers_to_a_change_are_followed_by_a_retry(
    lab: Lab, answer: tuple[str, dict[str, int]], changes: int
) -> None:
    """docs/real-servers.md#what-the-sender-does: 200/500 counts as success (D5)."""
    run = await lab.cluster(size=2)
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).answers = {"CHANGE": answer}
    run.link(0, 1).unanswered = {"VERIFY"}
    await client.register("web", 80)
    await run.clock.advance(7000)
    assert run.links.operations(client.id).count("CHANGE") == changes  # at 1, 4 and 7 s


async def test_a_peer_that_does_not_even_answer_the_set_up_costs_a_time_out(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_0_4)
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).cut = True
    await client.register("web", 80)
    await run.clock.advance(2000)  # the broken connection is thrown away
    run.link(0, 1).cut, run.link(0, 1).mute = False, True
    await run.clock.advance(9000)
    assert run.kinds(1, client.id) == []
    assert run.kinds(2, client.id) == ["replica_applied"]
    run.link(0, 1).mute = False
    await run.clock.advance(8000)
    assert run.kinds(1, client.id) == ["replica_applied"]


async def test_a_crashed_peer_gets_what_it_missed_when_it_is_back(lab: Lab) -> None:
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    await run.cluster.crash(1)
    await client.register("web", 80)
    await run.clock.advance(3000)
    await run.cluster.restart(1)
    await run.clock.advance(1100)
    assert await (await lab.naming(run.cluster.nodes[1])).ports("web") == [80]


@pytest.mark.parametrize(
    ("profile", "deletes"),
    [(NACOS_2_2_4, 0), (STRICT, 1), (with_mutant(STRICT, "m-delete-retried-as-change"), 1)],
    ids=["nacos-2.2.4", "strict", "mutant"],
)
async def test_b24_the_retry_of_a_change_swallows_a_delete_but_not_in_strict(
    lab: Lab, profile: Profile, deletes: int
) -> None:
    run = await lab.cluster(profile)
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).unanswered = {"CHANGE"}
    await client.register("web", 80)
    await run.clock.advance(3500)
    await lab.leave(run, client)
    await run.clock.advance(12_000)
    assert run.links.operations(client.id, peer=run.cluster.addresses[1]).count("DELETE") == deletes
    assert run.links.operations(client.id, peer=run.cluster.addresses[2]) == ["CHANGE", "DELETE"]


@pytest.mark.parametrize("mutant", [None, "m-delete-retried-as-change"])
async def test_a_failed_delete_is_retried_until_it_arrives_unless_the_mutant_turns_it(
    lab: Lab, mutant: str | None
) -> None:
    run = await lab.cluster(with_mutant(STRICT, mutant) if mutant else STRICT)
    client = await lab.naming(run.cluster.nodes[0])
    await client.register("web", 80)
    await run.clock.advance(1500)
    run.link(0, 1).cut = True
    await lab.leave(run, client)
    await run.clock.advance(2000)
    run.link(0, 1).cut = False
    await run.clock.advance(10_000)
    assert run.last(1, client.id).kind == ("replica_applied" if mutant else "replica_removed")
    assert run.last(2, client.id).kind == "replica_removed"


async def test_nothing_is_sent_to_a_member_that_is_not_up(lab: Lab) -> None:
    """From 2.1.1 on; a report that fails makes the member SUSPICIOUS, one that arrives makes it UP."""
    run = await lab.cluster()
    client = await lab.naming(run.cluster.nodes[0])
    run.link(0, 1).cut = run.link(1, 0).cut = True
    await run.clock.advance(5000)  # the first report finds node 1 cut off
    run.link(0, 1).cut = False  # still SUSPICIOUS until the next report, at 9 s
    run.links.sent.clear()
    await client.register("web", 80)
    await run.clock.advance(1100)
    assert run.links.operations(client.id, peer=run.cluster.addresses[1]) == []
    assert run.links.operations(client.id, peer=run.cluster.addresses[2]) == ["CHANGE"]
    await run.clock.advance(15_000)
    assert run.last(1, client.id).kind == "replica_applied"


async def test_2_0_4_sends_to_members_in_any_state(lab: Lab) -> None:
    run = await lab.cluster(NACOS_2_0_4)
    client = await lab.naming(run.cluster.nodes[0])
    run.link(1, 0).cut = run.link(0, 1).cut = True
    await run.clock.advance(5000)
    run.link(0, 1).cut = False
    await client.register("web", 80)
    await run.clock.advance(2000)
    assert run.kinds(1, client.id) == ["replica_applied"]
