"""Answers to malformed requests, whose connections survive (docs/protocol #wire-errors, #wire-checks,
#wire-envelope)."""

from __future__ import annotations

from collections.abc import Iterator

from distro_conformance.node.kit import Kit, services
from distro_conformance.node.peer import REPORT_REQUEST
from distro_conformance.node.player import GROUP, batch_request, instance_request, query_request, service_request
from distro_conformance.requirements.requirement import MUST, requirement
from distro_conformance.wire.connection import CLUSTER_LABELS, SDK_LABELS, Connection
from distro_conformance.wire.messages import DISTRO_REQUEST, distro_request, sync_data
from distro_protos import Json, Message

EMPTY: Json = {"headers": {}, "module": "internal"}
_KNOWN_MS = 12_000
"""Until a node knows the versions of its members by their reports."""
_FORBIDDEN = 403
_CHANGING = ("ADD", "CHANGE", "DELETE", "VERIFY")
"""Distro requests that are not sent to a node that the kit did not start."""


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
    """Fields that a node does not know are ignored, in a request of a member or a client and inside its content."""
    client, service = kit.foreign_client(), kit.service()
    content = {**sync_data(client, 1, [(service, "10.0.0.1", 80)]), "since9": {"a": [1]}}
    content["attributes"]["clientAttributes"]["since9"] = True
    body = {**distro_request("CHANGE", client, target=kit.target.address, content=content), "since9": "x"}
    reply = await kit.peer.send(body)
    kit.note(f"{kit.peer.address} sends CHANGE of {client} with unknown fields: {reply}")
    copy = await kit.peer.query(client)
    kit.require(reply.succeeded and services(copy) == [service], f"{client} to publish {service}", copy)
    own = await kit.client()
    body = {**instance_request("registerInstance", service, "10.0.0.1", 80, {}), "since9": "x"}
    body["instance"]["since9"] = {"a": [1]}
    reply = await own.ask("InstanceRequest", body)
    kit.note(f"{own.id} registers {service} with unknown fields: {reply}")
    copy = await kit.peer.query(own.id)
    kit.require(reply.succeeded and services(copy) == [service], f"{own.id} to publish {service}", copy)


@requirement("DISTRO-ERROR-006", MUST, "#wire-envelope, #wire-errors")
async def codes_agree(kit: Kit) -> None:
    """Every answer, to a member or a client, or an ErrorResponse, reports success in both codes and in the field
    `success`, or in none of them."""
    client, service = kit.foreign_client(), kit.service()
    replies = {
        "CHANGE": await kit.peer.sync(client, 1, (service, "10.0.0.1", 80)),
        "VERIFY": await kit.peer.verify(client, 1),
        "wrong VERIFY": await kit.peer.verify(kit.foreign_client(), 1),
        "QUERY": await kit.peer.send(distro_request("QUERY", client, target=kit.target.address)),
        "SNAPSHOT": await kit.peer.send(distro_request("SNAPSHOT")),
        "DELETE": await kit.peer.delete(client),
        "a report": await kit.peer.report(),
        "a request without a set-up": await kit.bare_connection().ask("HealthCheckRequest", EMPTY),
        **await _answers_to_a_client(kit, service),
    }
    for what, reply in replies.items():
        kit.note(f"{what}: {reply}")
        found = (reply.body.get("resultCode") == 200, reply.body.get("errorCode") == 0, reply.body.get("success"))
        kit.require(found in (3 * (True,), 3 * (False,)), f"codes that agree in the answer to {what}", reply.body)


async def _answers_to_a_client(kit: Kit, service: str) -> dict[str, Message]:
    """The answers by what was asked, some of which is refused."""
    client = await kit.client()
    registration = instance_request("registerInstance", service, "10.0.0.1", 80, {})
    subscription = {**service_request(service), "subscribe": True, "clusters": ""}
    services_of_a_group = {"namespace": "public", "serviceName": "", "groupName": GROUP, "pageNo": 1, "pageSize": 10}
    batch = {"BatchInstanceRequest": batch_request(service, [("10.0.0.1", 80, {})])} if kit.has_batches else {}
    requests = {
        "ServerCheckRequest": EMPTY,
        "HealthCheckRequest": EMPTY,
        "InstanceRequest": registration,
        "SubscribeServiceRequest": subscription,
        "ServiceQueryRequest": query_request(service),
        "ServiceListRequest": {**EMPTY, **services_of_a_group},
        "NobodyHandlesThisRequest": EMPTY,
        **batch,
    }
    answers = {each: await client.ask(each, body) for each, body in requests.items()}
    refused = {**registration, "type": "explode"}
    answers["an unknown type of InstanceRequest"] = await client.ask("InstanceRequest", refused)
    answers["a body of one brace"] = await (await kit.connection(SDK_LABELS)).ask_raw("ServiceQueryRequest", b"{")
    return answers


@requirement("DISTRO-SECURITY-001", MUST, "#member-auth, #wire-checks", since="2.4.3")
async def members_requests_are_refused_on_the_sdk_port(kit: Kit) -> None:
    """All Distro requests, and member reports, are refused on the port for SDKs, with ErrorResponse 502, and change
    nothing."""
    connection, takes_syncs = await kit.connection(SDK_LABELS), kit.target.limits.takes_syncs
    client, (copy, service) = kit.foreign_client(), await kit.synced() if takes_syncs else (kit.foreign_client(), None)
    for what, type_name, body in _of_members(kit, client, copy):
        if takes_syncs or what not in _CHANGING:
            _require_error(kit, await connection.ask(type_name, body), 502, f"{what} on the SDK port")
    await _require_alive(kit, connection)
    await _require_unchanged(kit, client, copy, service)


@requirement("DISTRO-SECURITY-002", MUST, "#member-auth", since="3.0.0")
async def members_without_the_identity_are_refused(kit: Kit) -> None:
    """Once all members are 3.x, all Distro requests, and reports, without the identity of the cluster, or with another
    one, are refused with 403 and change nothing."""
    identity, client = kit.identity(), kit.foreign_client()
    copy, service = await kit.synced()
    for headers, which in ({}, "no identity"), (dict.fromkeys(identity, "another"), "another identity"):
        connection = await kit.connection(CLUSTER_LABELS, headers=headers)
        for name, type_name, body in _of_members(kit, client, copy):

            async def refused(ask: Connection = connection, type_name: str = type_name, body: Json = body) -> bool:
                return (await ask.ask(type_name, body)).body.get("errorCode") == _FORBIDDEN

            await kit.eventually(refused, within_ms=_KNOWN_MS, what=f"{_FORBIDDEN} for {name} with {which}")
    await _require_unchanged(kit, client, copy, service)


def _of_members(kit: Kit, client: str, copy: str) -> Iterator[tuple[str, str, Json]]:
    """A request of each kind: what it is, its type, and its body. `client` is not known at the node, and `copy` is held
    with the revision 1."""
    contents = {
        "CHANGE": sync_data(client, 1, [(kit.service(), "10.0.0.1", 80)]),
        "ADD": sync_data(client, 1, [(kit.service(), "10.0.0.1", 80)]),
        "VERIFY": {"clientId": copy, "revision": 1},
    }
    yield "SNAPSHOT", DISTRO_REQUEST, distro_request("SNAPSHOT")
    for operation, about in (("QUERY", copy), ("VERIFY", copy), ("ADD", client), ("CHANGE", client), ("DELETE", copy)):
        content = contents.get(operation)
        yield operation, DISTRO_REQUEST, distro_request(operation, about, target=kit.target.address, content=content)
    yield "a report", REPORT_REQUEST, {"headers": {}, "node": kit.peer.as_member(), "module": "cluster"}


async def _require_unchanged(kit: Kit, client: str, copy: str, service: str | None) -> None:
    """`service` of the copy; None: no copy was sent."""
    found = [services(await kit.peer.query(each)) for each in (client, copy)]
    kit.require(found == [None, service and [service]], f"no {client}, and {copy} with {service}", found)


def _require_error(kit: Kit, reply: Message, code: int, what: str) -> None:
    kit.note(f"{what}: {reply}")
    is_error = reply.type == "ErrorResponse" and reply.body.get("errorCode") == code
    kit.require(is_error, f"ErrorResponse {code} for {what}", reply)


async def _require_alive(kit: Kit, connection: Connection) -> None:
    health = await connection.ask("HealthCheckRequest", EMPTY)
    kit.require(health.succeeded, "a connection that survives", health)
