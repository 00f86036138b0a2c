"""A change of an owned client reaches the other members (docs/protocol #sync-announce to #sync-only-up)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.requirements.requirement import MUST, requirement


@requirement(
    "DISTRO-SYNC-001",
    MUST,
    source="docs/protocol #sync-announce, #sync-merge",
    text="A registration reaches every other member as a CHANGE that holds what the client publishes.",
)
async def registration_arrives_as_change(kit: Kit) -> None:
    client, service = await kit.publisher(zone="a")
    change = await kit.eventually(
        kit.arrival("CHANGE", client.id), within_ms=kit.timings.sync_ms, what=f"a CHANGE of {client.id}"
    )
    published = change.call.replica.published if change.call and change.call.replica else ()
    kit.require(
        [(p.service, p.ip, p.port) for p in published] == [(service, "10.0.0.1", 80)],
        f"the CHANGE to hold {service} at 10.0.0.1:80 and nothing else",
        change,
    )
    kit.require('"zone":"a"' in published[0].attributes, "the instance's metadata", published[0].attributes)


@requirement(
    "DISTRO-SYNC-002",
    MUST,
    source="docs/protocol #client-disconnect, #sync-announce",
    text="The end of a client's connection reaches every other member as a DELETE.",
)
async def disconnect_arrives_as_delete(kit: Kit) -> None:
    client, _ = await kit.publisher()
    await kit.arrange(kit.arrival("CHANGE", client.id), within_ms=kit.timings.sync_ms, what=f"a CHANGE of {client.id}")
    await kit.leave(client)
    await kit.eventually(
        kit.arrival("DELETE", client.id), within_ms=kit.timings.sync_ms, what=f"a DELETE of {client.id}"
    )
