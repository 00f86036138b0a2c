"""The owner's side of anti-entropy (docs/protocol #verify-round)."""

from __future__ import annotations

import itertools

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival, PlayedPeer
from distro_conformance.node.replies import FAILURE, NEVER
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Poll, first_of, poll_local
from distro_conformance.wire.messages import RESOURCE_TYPE, content_of

_MANY = 60


@requirement("DISTRO-VERIFY-001", MUST, "#verify-round", since="2.1.2")
async def verify_carries_the_revision(kit: Kit) -> None:
    """Within every verify period the owner sends each other member a VERIFY with the client's current revision."""
    client, _, _ = await kit.replicated()
    await client.register(kit.service(), "10.0.0.2", 80)
    kit.note("it registers a second service")
    for peer in kit.peers:
        both = kit.arrival("CHANGE", client.id, at=peer, carrying=lambda replica: len(replica.published) == 2)
        what = f"a CHANGE of {client.id} with both services at {peer.address}"
        change = await kit.arrange(both, within_ms=kit.timings.sync_ms, what=what)
        verify = await kit.eventually_sent("VERIFY", client.id, after=change, at=peer)
        assert verify.call is not None
        assert change.call is not None
        kit.require(
            verify.call.revision == change.call.revision == 2,
            f"the revision 2 in the CHANGE and in the VERIFY after two changes at {peer.address}",
            f"{change} at {change.at_ms} ms; {verify} at {verify.at_ms} ms",
        )


@requirement("DISTRO-VERIFY-002", MUST, "#verify-failed, #sync-result")
async def failed_verify_is_followed_by_change(kit: Kit) -> None:
    """Each VERIFY that is answered with failure is followed at once by a CHANGE of the whole client to that member."""
    client, _, change = await kit.replicated()
    assert change.call is not None
    kit.answer("VERIFY", FAILURE, client=client.id)
    again = change
    for _ in range(2):
        verify = await kit.arrange_sent("VERIFY", client.id, after=again)
        again = await kit.eventually_sent("CHANGE", client.id, after=verify, within_ms=kit.timings.resync_ms)
        assert again.call is not None
        sent, first = again.call.replica, change.call.replica
        is_whole = sent is not None and first is not None and sent.published == first.published
        kit.require(is_whole, f"the content of {change}", again)


@requirement("DISTRO-VERIFY-003", MUST, "#verify-round, #verify-pure-subscriber")
async def every_member_is_verified_each_period(kit: Kit) -> None:
    """Every other member gets a VERIFY of every owned client in each period, as long as the client lives; one that
    publishes nothing is verified too."""
    subscriber = await kit.client()
    await subscriber.subscribe(kit.service())
    client, _, change = await kit.replicated()
    for peer in kit.peers:
        for number in range(3):
            verify = _received(kit, "VERIFY", client.id, peer, number + 1)
            what = f"VERIFY number {number + 1} of {client.id} at {peer.address}"
            await kit.eventually(verify, within_ms=kit.timings.verify_ms + 200, what=what)
        stamps = [each.at_ms for each in kit.arrivals(client.id, peer) if each.is_about("VERIFY", client.id)]
        for earlier_ms, later_ms in itertools.pairwise((change.at_ms, *stamps)):
            what = f"the next VERIFY at {peer.address} after {earlier_ms} ms"
            kit.require_within(later_ms - earlier_ms, kit.timings.verify_ms + 200, what, since_ms=earlier_ms)
        verified = _received(kit, "VERIFY", subscriber.id, peer, 2)
        what = f"two VERIFYs of {subscriber.id}, which publishes nothing, at {peer.address}"
        await kit.eventually(verified, within_ms=kit.timings.verify_ms, what=what)


@requirement("DISTRO-VERIFY-004", MUST, "#verify-failed")
async def only_the_failing_member_is_sent_the_client(kit: Kit) -> None:
    """Only the member that failed a VERIFY is sent a CHANGE, and only of the client that failed."""
    beside, _, _ = await kit.replicated()
    client, _, change = await kit.replicated()
    await kit.arrange_sent("CHANGE", client.id, at=kit.other)
    kit.answer("VERIFY", FAILURE, client=client.id)
    verify = await kit.arrange_sent("VERIFY", client.id, after=change)
    await kit.arrange_sent("CHANGE", client.id, after=verify)

    changes = ((client, kit.other), (beside, kit.peer))
    again = first_of(_received(kit, "CHANGE", each.id, peer, 2) for each, peer in changes)
    what = f"{kit.other.address} has failed no VERIFY, and {kit.peer.address} none of {beside.id}"
    await kit.never(again, for_ms=kit.timings.sync_ms, what=what)


@requirement("DISTRO-VERIFY-005", MUST, "#verify-round, #client-disconnect")
async def gone_client_is_not_verified(kit: Kit) -> None:
    """A client that has gone is no longer verified, at any member."""
    client, _, change = await kit.replicated()
    await kit.arrange_sent("VERIFY", client.id, after=change)
    await kit.leave(client)
    deleted = [(peer, await kit.arrange_sent("DELETE", client.id, at=peer)) for peer in kit.peers]
    later = first_of(kit.arrival("VERIFY", client.id, after=end, at=peer) for peer, end in deleted)
    await kit.never(later, for_ms=kit.timings.verify_ms + 500, what=f"{client.id} is gone")


@requirement("DISTRO-VERIFY-006", MUST, "#distro-envelope, #distro-content")
async def verify_is_whole(kit: Kit) -> None:
    """A VERIFY holds the client's name in its key and in its content."""
    client, _, change = await kit.replicated()
    verify = await kit.arrange_sent("VERIFY", client.id, after=change)
    data = verify.body.get("distroData") or {}
    content = content_of(data) or {}
    kit.require(content.get("clientId") == client.id, f"{client.id} in the content", content)
    kit.require(data.get("type") == "VERIFY", "VERIFY inside too", data.get("type"))
    kind = (data.get("distroKey") or {}).get("resourceType")
    kit.require(kind == RESOURCE_TYPE, f"the resource type {RESOURCE_TYPE}", kind)


@requirement("DISTRO-VERIFY-007", MUST, "#verify-failed, #verify-round", own_node=True)
async def silence_delays_no_verify(kit: Kit) -> None:
    """A member that answers no VERIFY delays no VERIFY to another member, however many clients there are, and is sent
    no CHANGE for it."""
    await kit.start_node()
    silent, other = sorted(kit.peers, key=lambda peer: peer.address)
    silent.answer("VERIFY", NEVER)
    for _ in range(_MANY):
        client = kit.http_client(kit.target.address)
        reply = await client.register(kit.service())
        kit.assume(reply.text == "ok", f"a registration of {client.id} that succeeds", reply)
    kit.note(f"{_MANY} clients of the HTTP API register; {silent.address} answers no VERIFY")
    verify = await kit.arrange_sent("VERIFY", client.id, at=other, within_ms=2 * kit.timings.verify_ms)
    for _ in range(2):
        within_ms = kit.timings.verify_ms + 200
        verify = await kit.eventually_sent("VERIFY", client.id, after=verify, at=other, within_ms=within_ms)
    sent = [str(each) for each in kit.arrivals(client.id, silent) if each.is_about("CHANGE")]
    kit.require(len(sent) == 1, f"one CHANGE of {client.id} at {silent.address}", sent)


def _received(kit: Kit, operation: str, client: str, peer: PlayedPeer, number: int) -> Poll[Arrival]:
    """Polls for the request with that number, from 1."""

    def find() -> Arrival | None:
        received = [each for each in kit.arrivals(client, peer) if each.is_about(operation)]
        return received[number - 1] if len(received) >= number else None

    return poll_local(find)
