"""The owner's side of anti-entropy (docs/protocol #verify-round)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import FAILURE, Arrival
from distro_conformance.node.player import PlayedClient
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import Look


@requirement(
    "DISTRO-VERIFY-001",
    MUST,
    since="2.1.2",
    source="docs/protocol #verify-round",
    text="Within every verify period the owner sends each other member a VERIFY with the client's current revision.",
)
async def verify_carries_the_revision(kit: Kit) -> None:
    client, _ = await _replicated(kit)
    await client.register(kit.service(), "10.0.0.2", 80)
    kit.note("it registers a second service")
    change = await kit.arrange(
        _change_with(kit, client, 2), within_ms=kit.timings.sync_ms, what=f"a CHANGE of {client.id} with both services"
    )
    verify = await kit.eventually(
        kit.arrival("VERIFY", client.id, after=change),
        within_ms=kit.timings.verify_ms,
        what=f"a VERIFY of {client.id}",
    )
    assert verify.call is not None
    assert change.call is not None
    kit.require(
        verify.call.revision == change.call.revision == 2,
        "the revision 2 in the CHANGE and in the VERIFY after two changes",
        f"{change} at {change.at_ms} ms; {verify} at {verify.at_ms} ms",
    )


@requirement(
    "DISTRO-VERIFY-002",
    MUST,
    source="docs/protocol #verify-failed, #sync-result",
    text="A VERIFY that is answered with failure is followed, at once, by a CHANGE of the whole client to that member.",
)
async def failed_verify_is_followed_by_change(kit: Kit) -> None:
    client, change = await _replicated(kit)
    kit.answer("VERIFY", FAILURE, client=client.id)
    verify = await kit.arrange(
        kit.arrival("VERIFY", client.id, after=change),
        within_ms=kit.timings.verify_ms,
        what=f"a VERIFY of {client.id} to be answered with failure",
    )
    again = await kit.eventually(
        kit.arrival("CHANGE", client.id, after=verify),
        within_ms=kit.timings.resync_ms,
        what=f"a CHANGE of {client.id} after its failed VERIFY at {verify.at_ms} ms",
    )
    assert again.call is not None
    assert change.call is not None
    kit.require(again.call.digest == change.call.digest, f"the content of {change}", again)


async def _replicated(kit: Kit) -> tuple[PlayedClient, Arrival]:
    """A client with one service, and the CHANGE that told the played member."""
    client, _ = await kit.publisher()
    change = await kit.arrange(
        kit.arrival("CHANGE", client.id), within_ms=kit.timings.sync_ms, what=f"a CHANGE of {client.id}"
    )
    return client, change


def _change_with(kit: Kit, client: PlayedClient, services: int) -> Look[Arrival]:
    async def look() -> Arrival | None:
        for arrival in kit.arrivals(client.id):
            replica = arrival.call.replica if arrival.call else None
            if arrival.is_about("CHANGE", client.id) and replica and len(replica.published) == services:
                return arrival
        return None

    return look
