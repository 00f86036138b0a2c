"""Several instances of one service, registered by one client at once (docs/protocol #naming-requests, #distro-content
and #receive-change)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival
from distro_conformance.node.player import Host
from distro_conformance.requirements.requirement import MUST, requirement
from distro_protos import Message

PORTS, OTHER_PORTS = (80, 81), (80, 82)


@requirement("DISTRO-BATCH-001", MUST, "#naming-requests, #distro-content", since="2.1.1")
async def batch_arrives_whole(kit: Kit) -> None:
    """The CHANGE of a client with a batch holds all instances of the batch, and nothing of the one before it, and
    VERIFYs follow."""
    client, service = await kit.client(), kit.service()
    change: Arrival | None = None
    for ports in (PORTS, PORTS[1:]):
        await client.register_batch(service, "10.0.0.1", ports)
        kit.note(f"it registers the batch {service} at 10.0.0.1, ports {ports}")
        change = await kit.arrange_sent("CHANGE", client.id, after=change)
        published = change.call.replica.published if change.call and change.call.replica else ()
        held = [(each.service, each.ip, each.port) for each in published]
        kit.require(
            held == [(service, "10.0.0.1", port) for port in ports],
            f"the CHANGE to hold {service} at 10.0.0.1, ports {ports}, and nothing else",
            held,
        )
    await kit.eventually_sent("VERIFY", client.id, after=change)


@requirement("DISTRO-BATCH-002", MUST, "#revision-connection", bug="B18", since="2.1.2")
async def batch_raises_the_revision(kit: Kit) -> None:
    """A batch raises the revision of its client, without which no member would notice that it missed one."""
    client, service = await kit.client(), kit.service()
    await client.register(kit.service(), "10.0.0.1", 79)
    revisions = [await kit.revision_of(client.id)]
    kit.presuppose(bool(revisions[0]), f"a revision of {client.id} that a registration raises", revisions[0])
    for ports in (PORTS, PORTS[1:]):
        await client.register_batch(service, "10.0.0.1", ports)
        revisions.append(await kit.revision_of(client.id))
        kit.note(f"it registers the batch {service}, ports {ports}; the node holds revision {revisions[-1]}")
    copy = await kit.peer.query(client.id)
    held = sorted(each.port for each in copy.published if each.service == service) if copy else None
    kit.require(
        len(set(revisions)) == len(revisions),
        "another revision after each batch",
        revisions,
        observed={"revisions": revisions, "ports": held},
    )


@requirement("DISTRO-BATCH-003", MUST, "#receive-batch-over-single", bug="B19", since="2.1.1")
async def batch_replaces_a_single_instance(kit: Kit) -> None:
    """A CHANGE that holds a batch where a single instance was, or another batch, is applied and shows every instance
    of the batch."""
    reader, synced, service = await kit.client(), kit.foreign_client(), kit.service()
    until_ms = kit.target.clock.now_ms() + kit.timings.lease_ms  # later on a copy may end that nobody verifies
    for revision, port in ((1, 78), (2, 79)):
        reply = await kit.peer.sync(synced, revision, (service, "10.0.0.1", port))
        kit.note(f"{kit.peer.address} sends CHANGE of {synced} with {service} at port {port}: {reply}")
        kit.presuppose(reply.succeeded, f"an acknowledged CHANGE of {synced}", reply)
    ports: list[int] = []
    for revision, batch in ((3, PORTS), (4, OTHER_PORTS)):
        reply = await kit.peer.sync_batch(synced, revision, service, "10.0.0.1", batch)
        kit.note(f"{kit.peer.address} sends CHANGE of {synced} with the batch {service}, ports {batch}: {reply}")
        kit.require(reply.succeeded, f"success for the CHANGE of {synced}", reply)

        async def shown(batch: tuple[int, ...] = batch) -> tuple[Host, ...] | None:
            nonlocal ports
            hosts = await reader.query(service)
            there = sorted(host.port for host in hosts)
            ports = there if kit.target.clock.now_ms() < until_ms else ports
            return hosts if there == list(batch) else None

        async def otherwise(reply: Message = reply) -> dict[str, object]:
            return {"ports": ports, "error_code": reply.body.get("errorCode")}

        what = f"{service} at ports {batch} and no other"
        await kit.eventually(shown, within_ms=kit.timings.view_ms, what=what, otherwise=otherwise)
