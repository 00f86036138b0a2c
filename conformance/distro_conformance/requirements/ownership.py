"""Who speaks for a client: the member that holds its connection, and nobody else (docs/protocol #sync-announce)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival
from distro_conformance.node.player import Host
from distro_conformance.requirements.requirement import MUST, requirement


@requirement("DISTRO-OWNER-001", MUST, "#owner-responsible, #receive-change", bug="B07")
async def synced_client_is_shown_but_not_owned(kit: Kit) -> None:
    """A client synced to a member shows up in its queries, and that member neither verifies nor re-broadcasts it."""
    reader, synced, service = await kit.client(), kit.foreign_client(), kit.service()
    reply = await kit.peer.sync(synced, 1, (service, "10.0.0.1", 80))
    kit.note(f"{kit.peer.address} sends CHANGE of {synced} revision 1 with {service}: {reply}")
    kit.presuppose(reply.succeeded, f"an acknowledged CHANGE of {synced}", reply)

    async def listed() -> tuple[Host, ...] | None:
        return await reader.query(service) or None

    hosts = await kit.eventually(listed, within_ms=kit.timings.view_ms, what=f"{service} in a query's result")
    kit.require([host.address for host in hosts] == ["10.0.0.1:80"], f"{service} at 10.0.0.1:80 alone", hosts)

    async def claimed() -> Arrival | None:
        for operation in ("VERIFY", "CHANGE", "DELETE"):
            if (arrival := await kit.arrival(operation, synced)()) is not None:
                return arrival
        return None

    # The reader's own VERIFY shows that a round has passed; only then does silence about the other one count.
    await kit.arrange_sent("VERIFY", reader.id)
    await kit.never(claimed, for_ms=kit.timings.sync_ms, what=f"{synced} is not the node's to speak for")
