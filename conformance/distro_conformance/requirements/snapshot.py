"""Answers to SNAPSHOT and QUERY requests of members (docs/protocol #distro-snapshot, #load-snapshot, #distro-query)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.messages import RESOURCE_TYPE, distro_request


@requirement("DISTRO-SNAPSHOT-001", MUST, "#distro-snapshot, #load-snapshot")
async def snapshot_holds_every_client(kit: Kit) -> None:
    """A SNAPSHOT holds every client, own and synced, of either kind, with all that it publishes, batches too, or
    nothing, as a QUERY shows it, and no client that has gone."""
    expected: dict[str, list[str] | None] = {(await kit.client()).id: []}
    for _ in range(2):
        client, service = await kit.publisher(zone="a", weight="2.5", cluster="blue")
        expected[client.id] = [service]
    for copy in (kit.foreign_client(), kit.http_client(kit.peer.address).id):
        expected[copy] = [(await kit.synced(5, client=copy, zone="a"))[1]]
    if kit.has_batches:
        batched, service = kit.foreign_client(), kit.service()
        reply = await kit.peer.sync_batches(batched, 5, "10.0.0.1", {service: (80, 81)})
        kit.assume(reply.succeeded, f"an acknowledged CHANGE of {batched}", reply)
        expected[batched] = [service, service]
    gone, _ = await kit.synced()
    await kit.peer.delete(gone)
    expected[gone] = None
    snapshot = {replica.client: replica for replica in await kit.peer.snapshot()}
    held = {client: services(snapshot.get(client)) for client in expected}
    kit.note(f"the snapshot has {held}")
    kit.require(held == expected, f"{expected} in the snapshot", held)
    for each in expected:
        asked, found = await kit.peer.query(each), snapshot.get(each)
        is_alike = asked == found if asked is None or found is None else asked.published == found.published
        kit.require(is_alike, f"{each} in the snapshot as in a QUERY, {asked}", found)


@requirement("DISTRO-SNAPSHOT-002", MUST, "#distro-snapshot, #distro-content", since="2.1.2")
async def snapshot_shows_revisions(kit: Kit) -> None:
    """A SNAPSHOT and a QUERY show the revision of each client of either kind."""
    own, _ = await kit.publisher()
    await own.register(kit.service(), "10.0.0.1", 80)
    copies = [(await kit.synced(5, client=each))[0] for each in (None, kit.http_client(kit.peer.address).id)]
    clients = (own.id, *copies)
    held = {replica.client: replica.revision for replica in await kit.peer.snapshot()}
    asked = {client: found.revision for client in clients if (found := await kit.peer.query(client))}
    for name, revisions in (("SNAPSHOT", held), ("QUERY", asked)):
        shown = [revisions.get(each) for each in clients]
        kit.require(shown == [2, 5, 5], f"the revisions 2, 5 and 5 in a {name}", shown)


@requirement("DISTRO-SNAPSHOT-003", MUST, "#distro-snapshot, #distro-query")
async def answers_are_keyed(kit: Kit) -> None:
    """A QUERY of an unknown client succeeds without data, and the data of a SNAPSHOT has the key SNAPSHOT."""
    client = kit.foreign_client()
    reply = await kit.peer.send(distro_request("QUERY", client, target=kit.target.address))
    kit.require(reply.succeeded and "distroData" not in reply.body, "success without data", reply.body)
    reply = await kit.peer.send(distro_request("SNAPSHOT"))
    key = (reply.body.get("distroData") or {}).get("distroKey") or {}
    found = (key.get("resourceKey"), key.get("resourceType"))
    kit.require(found == ("SNAPSHOT", RESOURCE_TYPE), f"the key SNAPSHOT of {RESOURCE_TYPE}", key)
