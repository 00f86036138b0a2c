"""A member's handling of the revisions that an owner sends (docs/protocol #receive-change, #verify-round)."""

from __future__ import annotations

import re

from distro_conformance.node.kit import Kit
from distro_conformance.requirements.requirement import MUST, requirement


@requirement("DISTRO-REVISION-001", MUST, "#receive-revision", bug="B10", since="2.1.2")
async def verify_after_change_succeeds(kit: Kit) -> None:
    """After an acknowledged CHANGE the next VERIFY of the same revision succeeds, also when nothing but the revision
    has changed, for a client of either kind, and of a lower one for a client of the HTTP API, whose revision is a
    hash."""
    for client in (kit.foreign_client(), kit.http_client(kit.peer.address).id):
        service = kit.service()
        for revision in (1, 2):
            await kit.synced(revision, client=client, service=service, round=str(revision))
        verified = await kit.peer.verify(client, 2)
        kit.note(f"{kit.peer.address} sends VERIFY of {client} revision 2: {verified}")
        kit.require(
            verified.succeeded,
            f"success for VERIFY of {client} revision 2",
            verified,
            observed=await _stamped(kit, client),
        )
        await kit.synced(3, client=client, service=service, round="2")
        verified = await kit.peer.verify(client, 3)
        kit.require(verified.succeeded, f"success for VERIFY of {client} revision 3, of the same content", verified)
    await kit.synced(-4, client=client, service=service, round="2")
    verified = await kit.peer.verify(client, -4)
    kit.require(verified.succeeded, f"success for VERIFY of {client} revision -4, which is lower", verified)


async def _stamped(kit: Kit, client: str) -> dict[str, object]:
    """The content that the node holds, and the revisions of which a VERIFY succeeds."""
    copy = await kit.peer.query(client)
    found = re.search(r'"round": ?"(\d)"', copy.published[0].attributes) if copy and copy.published else None
    confirmed = [revision for revision in (1, 2) if (await kit.peer.verify(client, revision)).succeeded]
    return {"round": found[1] if found else None, "verified_as": confirmed}
