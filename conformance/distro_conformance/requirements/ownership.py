"""Only the member that holds the connection of a client announces it (docs/protocol #sync-announce)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival
from distro_conformance.requirements.requirement import MUST, requirement


@requirement("DISTRO-OWNER-001", MUST, "#owner-responsible, #receive-change", bug="B07")
async def synced_client_is_shown_but_not_owned(kit: Kit) -> None:
    """A client that is synced to a node is in the node's lists, and the node neither verifies nor re-broadcasts it, nor
    its DELETE."""
    reader = await kit.client()
    synced, service = await kit.synced()
    await kit.eventually_listed(reader, service, "10.0.0.1:80")

    async def claimed() -> Arrival | None:
        for operation in ("VERIFY", "CHANGE", "DELETE"):
            if (arrival := await kit.arrival(operation, synced)()) is not None:
                return arrival
        return None

    # The reader's own VERIFY shows that a round has passed; before that silence about the other client proves nothing.
    await kit.arrange_sent("VERIFY", reader.id)
    await kit.never(claimed, for_ms=kit.timings.sync_ms, what=f"the node does not own {synced}")
    reply = await kit.peer.delete(synced)
    kit.note(f"{kit.peer.address} sends DELETE of {synced}: {reply}")
    await kit.never(claimed, for_ms=2 * kit.timings.sync_ms, what=f"the node did not own {synced}")
