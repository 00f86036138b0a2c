"""Only the member that holds the connection of a client announces it (docs/protocol #sync-announce)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit
from distro_conformance.node.peer import Arrival
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.waiting import poll_local


@requirement("DISTRO-OWNER-001", MUST, "#owner-responsible, #receive-change", bug="B07")
async def synced_client_is_shown_but_not_owned(kit: Kit) -> None:
    """A client of either kind that is synced to a node is in the node's lists, and the node neither verifies nor
    re-broadcasts it, nor its DELETE, at any member."""
    reader = await kit.client()
    copies = [await kit.synced(client=each) for each in (None, kit.http_client(kit.peer.address).id)]
    for _, service in copies:
        await kit.eventually_listed(reader, service, "10.0.0.1:80")

    def sent() -> Arrival | None:
        arrivals = (each for synced, _ in copies for peer in kit.peers for each in kit.arrivals(synced, peer))
        return next(arrivals, None)

    claimed = poll_local(sent)

    # The reader's own VERIFY shows that a round has passed; before that silence about the other client proves nothing.
    await kit.arrange_sent("VERIFY", reader.id)
    await kit.never(claimed, for_ms=kit.timings.sync_ms, what="the node does not own them")
    for synced, _ in copies:
        reply = await kit.peer.delete(synced)
        kit.note(f"{kit.peer.address} sends DELETE of {synced}: {reply}")
    await kit.never(claimed, for_ms=2 * kit.timings.sync_ms, what="the node did not own them")
