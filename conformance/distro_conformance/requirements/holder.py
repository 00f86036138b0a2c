"""The holder's side of anti-entropy: which copy it confirms, and what stays gone (docs/protocol #receive-change,
#verify-round).

Only what a holder does not confirm is ever repaired, so a confirmation too many hides a wrong copy for good.
"""

from __future__ import annotations

from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_protos import Message


@requirement(
    "DISTRO-HOLDER-001",
    MUST,
    since="2.1.2",
    source="docs/protocol #verify-accept, docs/reference/mutants.md B02",
    text="A VERIFY of another revision than that of the copy fails.",
)
async def verify_of_another_revision_fails(kit: Kit) -> None:
    client = kit.foreign_client()
    await _synced(kit, client)
    _require_typed_failure(kit, await _verified(kit, client, 2), f"VERIFY of {client} revision 2")


@requirement(
    "DISTRO-HOLDER-002",
    MUST,
    source="docs/protocol #verify-accept",
    text="A VERIFY of an unknown client fails, every time.",
)
async def verify_of_an_unknown_client_fails(kit: Kit) -> None:
    client = kit.foreign_client()
    for _ in range(2):  # asking must not make it known
        _require_typed_failure(kit, await _verified(kit, client, 0), f"VERIFY of {client}, which nobody has synced")


@requirement(
    "DISTRO-HOLDER-003",
    MUST,
    source="docs/protocol #receive-late, #defect-d3, docs/reference/mutants.md B26",
    text="A CHANGE that comes after the DELETE of its client does not bring the client back.",
)
async def late_change_is_not_applied(kit: Kit) -> None:
    client = kit.foreign_client()
    await _synced(kit, client)
    reply = await kit.peer.delete(client)
    kit.note(f"{kit.peer.address} sends DELETE of {client}: {reply.body}")
    kit.presuppose(reply.succeeded, f"an acknowledged DELETE of {client}", reply.body)
    late = kit.service()
    reply = await _changed(kit, client, late)
    copy = await kit.peer.query(client)
    kit.require(
        copy is None,
        f"{client} to stay deleted",
        f"the node answers {reply.body} and holds {copy}",
        observed={"acknowledged": reply.succeeded, "sent": [late], "published": services(copy)},
    )
    kit.require(not reply.succeeded, "a failure for a CHANGE that is not applied", reply.body)


async def _synced(kit: Kit, client: str) -> None:
    reply = await _changed(kit, client)
    kit.presuppose(reply.succeeded, f"an acknowledged CHANGE of {client}", reply.body)


async def _changed(kit: Kit, client: str, service: str | None = None) -> Message:
    reply = await kit.peer.sync(client, 1, (service or kit.service(), "10.0.0.1", 80))
    kit.note(f"{kit.peer.address} sends CHANGE of {client} revision 1: {reply.body}")
    return reply


async def _verified(kit: Kit, client: str, revision: int) -> Message:
    reply = await kit.peer.verify(client, revision)
    kit.note(f"{kit.peer.address} sends VERIFY of {client} revision {revision}: {reply.body}")
    return reply


def _require_typed_failure(kit: Kit, reply: Message, what: str) -> None:
    """Any other bad end of a VERIFY brings nothing (docs/protocol #defect-d10)."""
    is_typed = reply.type == "DistroDataResponse"
    kit.require(is_typed and not reply.succeeded, f"a typed failure for {what}", f"{reply.type} {reply.body}")
