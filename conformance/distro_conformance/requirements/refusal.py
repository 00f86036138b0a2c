"""A node must not acknowledge a request that it cannot handle: a success means that the data was applied (B16).

A sender reads only `resultCode`: it treats a failure that is only in `errorCode` as a success, and the sync is lost.
"""

from __future__ import annotations

from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.messages import UNKNOWN_RESOURCE_TYPE, distro_request, sync_data
from distro_protos import Json

_UNDECODABLE = "ew=="
"""Base64 of an opening brace, and nothing more."""


@requirement("DISTRO-REFUSAL-001", MUST, "#receive-raised, #defect-d5", bug="B16")
async def undecodable_content_is_refused(kit: Kit) -> None:
    """A CHANGE whose content cannot be decoded is answered with failure."""
    body = _change(kit, kit.foreign_client())
    body["distroData"]["content"] = _UNDECODABLE
    await _require_failure(kit, body, "a CHANGE with the content '{'")


@requirement("DISTRO-REFUSAL-002", MUST, "#distro-unknown, #defect-d6", bug="B16-unhandled")
async def unknown_resource_type_is_refused(kit: Kit) -> None:
    """A CHANGE of an unknown resource type is answered with failure."""
    body = _change(kit, kit.foreign_client())
    body["distroData"]["distroKey"]["resourceType"] = UNKNOWN_RESOURCE_TYPE
    await _require_failure(kit, body, f"a CHANGE of the resource type {UNKNOWN_RESOURCE_TYPE}")


@requirement("DISTRO-REFUSAL-003", MUST, "#distro-unknown, #defect-d6", bug="B16-unhandled")
async def unknown_operation_is_refused(kit: Kit) -> None:
    """A sync whose data names an operation that is not a sync is answered with failure."""
    body = _change(kit, kit.foreign_client())
    body["distroData"]["type"] = "QUERY"
    await _require_failure(kit, body, "a CHANGE whose data has the type QUERY")


@requirement("DISTRO-REFUSAL-004", MUST, "#receive-raised, #receive-change")
async def undecodable_content_changes_nothing(kit: Kit) -> None:
    """A CHANGE whose content cannot be decoded leaves the copy of its client as it was."""
    client, service = await kit.synced(3)
    body = _change(kit, client)
    body["distroData"]["content"] = _UNDECODABLE
    reply = await kit.peer.send(body)
    kit.note(f"{kit.peer.address} sends a CHANGE of {client} with the content '{{': {reply}")
    copy = await kit.peer.query(client)
    kit.require(services(copy) == [service], f"{client} with {service}, as before", copy)
    await kit.eventually_listed(await kit.client(), service, "10.0.0.1:80")


@requirement("DISTRO-ERROR-005", MUST, "#distro-envelope, #receive-raised", bug="B16")
async def data_without_a_type_is_refused(kit: Kit) -> None:
    """A CHANGE whose data has no type is answered with failure."""
    body = _change(kit, kit.foreign_client())
    del body["distroData"]["type"]
    await _require_failure(kit, body, "a CHANGE without the inner type")


def _change(kit: Kit, client: str) -> Json:
    content = sync_data(client, 1, [(kit.service(), "10.0.0.1", 80)])
    return distro_request("CHANGE", client, target=kit.target.address, content=content)


async def _require_failure(kit: Kit, body: Json, what: str) -> None:
    plain = await kit.peer.send(_change(kit, kit.foreign_client()))
    # A node that refuses every request of this member does not refuse this one for the tested reason.
    kit.assume(plain.succeeded, "an acknowledged CHANGE without a fault", plain)
    reply = await kit.peer.send(body)
    kit.note(f"{kit.peer.address} sends {what}: {reply}")
    copy = await kit.peer.query(body["distroData"]["distroKey"]["resourceKey"])
    kit.require(
        not reply.succeeded,
        f"a failure for {what}",
        reply,
        observed={"error_code": reply.body.get("errorCode"), "held": copy is not None},
    )
