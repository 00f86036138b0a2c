"""Answers to malformed requests, whose connections survive (docs/protocol #wire-errors, #wire-checks,
#wire-envelope)."""

from __future__ import annotations

from distro_conformance.node.kit import Kit, services
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.connection import CLUSTER_LABELS, SDK_LABELS, Connection
from distro_conformance.wire.messages import DISTRO_REQUEST, distro_request, sync_data
from distro_protos import Json, Message

EMPTY: Json = {"headers": {}, "module": "internal"}
_KNOWN_MS = 12_000
"""Until a node knows the versions of its members by their reports."""
_FORBIDDEN = 403


@requirement("DISTRO-ERROR-001", MUST, "#wire-checks, #wire-errors")
async def unknown_type_is_no_handler(kit: Kit) -> None:
    """A request of an unknown type is answered with ErrorResponse 302, and its connection survives."""
    connection = await kit.connection(SDK_LABELS)
    _require_error(kit, await connection.ask("NobodyHandlesThisRequest", EMPTY), 302, "a request of an unknown type")
    await _require_alive(kit, connection)


@requirement("DISTRO-ERROR-002", MUST, "#wire-checks, #wire-errors")
async def unreadable_body_is_bad_gateway(kit: Kit) -> None:
    """A request whose body is not JSON is answered with ErrorResponse 502, and its connection survives."""
    connection = await kit.connection(SDK_LABELS)
    reply = await connection.ask_raw("ServiceQueryRequest", b"{")
    _require_error(kit, reply, 502, "a body of one brace")
    await _require_alive(kit, connection)


@requirement("DISTRO-ERROR-003", MUST, "#distro-envelope, #wire-envelope")
async def unknown_operation_is_unreadable(kit: Kit) -> None:
    """A Distro request with an unknown operation is answered with ErrorResponse 502, and its connection survives."""
    connection = await kit.connection(CLUSTER_LABELS)
    body = {**distro_request("SNAPSHOT"), "dataOperation": "EXPLODE"}
    _require_error(kit, await connection.ask(DISTRO_REQUEST, body), 502, "the operation EXPLODE")
    await _require_alive(kit, connection)


@requirement("DISTRO-ERROR-004", MUST, "#wire-envelope")
async def unknown_fields_are_ignored(kit: Kit) -> None:
    """Fields that a member does not know are ignored, in a request and inside its content."""
    client, service = kit.foreign_client(), kit.service()
    content = {**sync_data(client, 1, [(service, "10.0.0.1", 80)]), "since9": {"a": [1]}}
    content["attributes"]["clientAttributes"]["since9"] = True
    body = {**distro_request("CHANGE", client, target=kit.target.address, content=content), "since9": "x"}
    reply = await kit.peer.send(body)
    kit.note(f"{kit.peer.address} sends CHANGE of {client} with unknown fields: {reply}")
    copy = await kit.peer.query(client)
    kit.require(reply.succeeded and services(copy) == [service], f"{client} to publish {service}", copy)


@requirement("DISTRO-ERROR-006", MUST, "#wire-envelope, #wire-errors")
async def codes_agree(kit: Kit) -> None:
    """Every answer reports success in both codes, or in neither."""
    client, service = kit.foreign_client(), kit.service()
    replies = {
        "CHANGE": await kit.peer.sync(client, 1, (service, "10.0.0.1", 80)),
        "VERIFY": await kit.peer.verify(client, 1),
        "wrong VERIFY": await kit.peer.verify(kit.foreign_client(), 1),
        "DELETE": await kit.peer.delete(client),
    }
    for what, reply in replies.items():
        codes = (reply.body.get("resultCode"), reply.body.get("errorCode"))
        kit.note(f"{what}: {reply}")
        kit.require((codes[0] == 200) == (codes[1] == 0), f"codes that agree in the answer to {what}", reply.body)


@requirement("DISTRO-SECURITY-001", MUST, "#member-auth, #wire-checks", since="2.4.3")
async def members_requests_are_refused_on_the_sdk_port(kit: Kit) -> None:
    """Distro requests and member reports are refused on the port for SDKs, with ErrorResponse 502."""
    connection = await kit.connection(SDK_LABELS)
    for type_name, body in (
        (DISTRO_REQUEST, distro_request("SNAPSHOT")),
        ("MemberReportRequest", {"headers": {}, "node": kit.peer.as_member(), "module": "cluster"}),
    ):
        _require_error(kit, await connection.ask(type_name, body), 502, f"{type_name} on the SDK port")
    await _require_alive(kit, connection)


@requirement("DISTRO-SECURITY-002", MUST, "#member-auth", since="3.0.0")
async def members_without_the_identity_are_refused(kit: Kit) -> None:
    """Once all members are 3.x, Distro requests and reports without the identity of the cluster, or with another one,
    are refused with 403 and change nothing."""
    identity = kit.identity()
    client = kit.foreign_client()
    content = sync_data(client, 1, [(kit.service(), "10.0.0.1", 80)])
    requests = (
        (DISTRO_REQUEST, distro_request("SNAPSHOT")),
        (DISTRO_REQUEST, distro_request("CHANGE", client, target=kit.target.address, content=content)),
        ("MemberReportRequest", {"headers": {}, "node": kit.peer.as_member(), "module": "cluster"}),
    )
    for headers, which in ({}, "no identity"), (dict.fromkeys(identity, "another"), "another identity"):
        connection = await kit.connection(CLUSTER_LABELS, headers=headers)
        for type_name, body in requests:

            async def refused(ask: Connection = connection, type_name: str = type_name, body: Json = body) -> bool:
                return (await ask.ask(type_name, body)).body.get("errorCode") == _FORBIDDEN

            await kit.eventually(refused, within_ms=_KNOWN_MS, what=f"{_FORBIDDEN} for {type_name} with {which}")
    copy = await kit.peer.query(client)
    kit.require(copy is None, f"no {client}", copy)


def _require_error(kit: Kit, reply: Message, code: int, what: str) -> None:
    kit.note(f"{what}: {reply}")
    is_error = reply.type == "ErrorResponse" and reply.body.get("errorCode") == code
    kit.require(is_error, f"ErrorResponse {code} for {what}", reply)


async def _require_alive(kit: Kit, connection: Connection) -> None:
    health = await connection.ask("HealthCheckRequest", EMPTY)
    kit.require(health.succeeded, "a connection that survives", health)
